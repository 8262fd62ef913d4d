"""How much of what could be tried is tried: a part by `make test`, all by `make shuffle`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

THOROUGH = os.environ.get("TEST_EXAMPLES") == "shuffled"


def examples(few: int, many: int) -> int:
    """How many examples Hypothesis tries of a law that takes long."""
    return many if THOROUGH else few


def share(values: Sequence[T], number: int, of: int = 4) -> Sequence[T]:
    """Every fourth value, other ones for the next number: four neighbours try them all."""
    return values if THOROUGH else values[number % of :: of]
