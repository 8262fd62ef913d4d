"""Filters of a LangGraph search: what passes, what does not, and what is no filter."""

from __future__ import annotations

from typing import Any

import pytest

from bethink.errors import Refused, TooLarge
from deferred import Deferred
from rows import each_row

integration = Deferred("bethink.integrations.langgraph", "bethink.integrations.values")

VALUE = {
    "n": 5,
    "f": 2.5,
    "s": "beta",
    "day": "2026-03-01",
    "digits": "10",
    "list": [1, {"a": 2}],
    "inner": {"deep": {"n": 1}, "s": "x"},
    "none": None,
    "yes": True,
    "big": 2**70,
}


@each_row(
    "wanted",
    [
        None,
        {},
        {"n": 5},
        {"n": 5.0, "s": "beta"},
        {"none": None, "missing": None},
        {"list": [1, {"a": 2}]},
        {"list": [1, {"a": {"$gt": 1}}]},
        {"inner": {"s": "x"}},
        {"inner": {"deep": {"n": {"$gte": 1}}}},
        {"n": {"$gt": 4, "$lt": 6}},
        {"n": {"$gte": 5, "$lte": 5}},
        {"n": {"$eq": 5, "$ne": 6}},
        {"f": {"$gt": 2}},
        {"digits": {"$gt": 9}},
        {"day": {"$gt": "2026-02-28"}},
        {"missing": {"$ne": 1}},
        {"big": {"$gt": 2**70 - 1}},
    ],
)
def test_what_passes(wanted: dict[str, Any] | None) -> None:
    """Equal fields, parts of inner objects, and every operator."""
    integration.check_filter(wanted)

    assert integration.matches_filter(VALUE, wanted)


@each_row(
    "wanted",
    [
        {"n": 6},
        {"n": "5"},
        {"n": 5, "s": "alpha"},
        {"missing": 1},
        {"list": [1]},
        {"list": {"a": 2}},
        {"s": ["beta"]},
        {"inner": {"deep": 1}},
        {"s": {"x": 1}},
        {"n": {"$gt": 5}},
        {"n": {"$lt": 5}},
        {"n": {"$ne": 5}},
        {"n": {"$eq": "5"}},
        {"s": {"$gt": 1}},
        {"none": {"$lt": 1}},
        {"missing": {"$gte": 0}},
        {"list": {"$gt": 0}},
        {"n": {"$gt": None}},
        {"n": {"$lt": "many"}},
        {"n": {"$gt": 4, "$lt": 5}},
        {"big": {"$gt": 2**70}},
    ],
)
def test_what_does_not(wanted: dict[str, Any]) -> None:
    """What is otherwise, is not there, or has no order; without an error."""
    integration.check_filter(wanted)

    assert not integration.matches_filter(VALUE, wanted)


@pytest.mark.parametrize(
    "wanted", [{"n": {"$in": [1]}}, {"a": {"b": {"$x": 1}}}, {"n": {"$gt": 1, "x": 2}}]
)
def test_unknown_operators_are_refused(wanted: dict[str, Any]) -> None:
    """Before anything is compared: an empty store says the same as a full one."""
    with pytest.raises(Refused, match="operator"):
        integration.check_filter(wanted)


@each_row("wanted", [[], "n", 5, [("n", 5)]])
def test_what_is_no_filter_is_refused(wanted: Any) -> None:
    """Rather than taken for one that leaves everything."""
    with pytest.raises(Refused, match="a JSON object"):
        integration.check_filter(wanted)


@pytest.mark.parametrize("wrap", [lambda inner: {"a": inner}, lambda inner: [inner]])
def test_a_filter_without_a_bottom_is_refused(wrap: Any) -> None:
    """Before it is followed there."""
    wanted: Any = 1
    for _ in range(5000):
        wanted = wrap(wanted)

    with pytest.raises(TooLarge, match="levels deep"):
        integration.check_filter({"a": wanted})
