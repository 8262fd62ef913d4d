"""Laws of the JSON Schema checker."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bethink.core.json_schema import find_violation
from rows import each_row


@each_row("kind", ["integer", "number"])
@each_row(("value", "rule"), [(10**400, "maximum"), (-(10**400), "minimum")])
def test_an_integer_beyond_every_float_is_out_of_range(kind: str, value: int, rule: str) -> None:
    """An integer that no float can hold breaks its bound; it does not raise."""
    found: Any = find_violation(value, {"type": kind, "minimum": 0, "maximum": 5}, "k")

    assert (found.where, found.rule) == ("k", rule)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_must_be_finite(value: float) -> None:
    """NaN and infinity break the rule that numbers are finite."""
    found: Any = find_violation(value, {"type": "number", "minimum": 0, "maximum": 5}, "k")

    assert found.rule == "finite"
