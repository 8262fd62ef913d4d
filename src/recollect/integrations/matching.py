"""Whether a JSON value passes a filter of the kind LangGraph's stores take.

Everything happens on values in memory: a key of a filter is looked up and never becomes
part of a statement, whatever it says.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from recollect.errors import Refused, TooLarge
from recollect.integrations.exact import DEEPEST

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDERS)


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether every field that the filter names is as it asks."""
    return all(_matches(value.get(key), each) for key, each in (wanted or {}).items())


def check_filter(wanted: object) -> None:
    """Refuses what is no filter, and operators that do not exist, whether or not anything
    would be compared."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise Refused(f"a filter is a JSON object, not a {type(wanted).__name__}")
    for each in wanted.values():
        _check(each, 1)


def _check(wanted: object, depth: int) -> None:
    if depth > DEEPEST:
        raise TooLarge("the filter", limit=DEEPEST, actual=depth, unit="levels deep")
    if isinstance(wanted, Mapping):
        unknown = [key for key in wanted if key not in OPERATORS]
        if unknown and any(_is_operator(key) for key in wanted):
            raise Refused(
                f"there is no filter operator {unknown[0]!r:.40}",
                remedy=f"one of {', '.join(OPERATORS)}",
            )
        wanted = tuple(wanted.values())
    if isinstance(wanted, list | tuple):
        for each in wanted:
            _check(each, depth + 1)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$")


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(_is_operator(key) for key in wanted):
            return all(_compares(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and passes(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_matches(*pair) for pair in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _compares(value: Any, name: str, other: Any) -> bool:
    if name == "$eq":
        return bool(value == other)
    if name == "$ne":
        return bool(value != other)
    compared = _comparable(value, other)
    return compared is not None and _ORDERS[name](*compared)


def _comparable(value: Any, other: Any) -> tuple[Any, Any] | None:
    """Both as numbers where both are or read as numbers, both as texts where they are
    that, and None where there is no order between them."""
    if isinstance(value, int) and isinstance(other, int):
        return value, other
    try:
        return float(value), float(other)
    except (TypeError, ValueError, OverflowError):
        both_texts = isinstance(value, str) and isinstance(other, str)
        return (value, other) if both_texts else None
