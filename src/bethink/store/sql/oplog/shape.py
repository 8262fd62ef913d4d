"""Whether an operation that another machine sends can be one: its types, by its kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bethink.core.characters import find_unstorable

_SERIES = re.compile(r"[\w-]{1,64}\.[0-3]")
_HEAD = (str, int, str, int, int, str, str, int, dict)
_STATUSES = ("active", "superseded", "quarantined")


def is_op(row: Any) -> bool:
    """Whether a parsed line is an operation; kinds of later versions are, and change nothing."""
    if not isinstance(row, list) or len(row) != len(_HEAD):
        return False
    if not all(_is(value, kind) for value, kind in zip(row, _HEAD, strict=True)):
        return False
    if not _SERIES.fullmatch(row[0]) or row[1] < 1 or not all(map(_fits, row[1:8])):
        return False
    check = _CHECKS.get(row[5])
    return check is None or (check(row[8]) and (row[5] in _OF_ENTITIES) == (row[6][:1] == "="))


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _fits(value: Any) -> bool:
    """Whether a database keeps it."""
    return not find_unstorable(value) if isinstance(value, str) else abs(value) < 2**62


def _all(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(_is(value, kind) for value in values)


def _rev(data: Any) -> bool:
    deltas = data.get("delta", {})
    return isinstance(data.get("set", {}), dict) and (
        isinstance(deltas, dict)
        and all(
            isinstance(pair, list) and len(pair) == 2 and all(_all(one, str) for one in pair)
            for pair in deltas.values()
        )
    )


def _link(data: Any) -> bool:
    added, dropped = data.get("add", []), data.get("drop", [])
    named = data.get("entities", {})
    return (
        isinstance(added, list)
        and isinstance(dropped, list)
        and isinstance(named, dict)
        and all(isinstance(one, list) and len(one) == 7 and _all(one[:6], str) for one in added)
        and all(_is_link(one[6]) for one in added)
        and all(_all(one, str) and len(one) == 6 for one in dropped)
        and all(isinstance(one, list) and len(one) == 3 for one in named.values())
        and all(_all(one[:2], str) and _all(one[2], str) for one in named.values())
    )


def _is_link(values: Any) -> bool:
    if not isinstance(values, list) or len(values) != 5:
        return False
    weight, confidence, context, source, created = values
    return (
        all(isinstance(one, int | float) for one in (weight, confidence))
        and (context is None or isinstance(context, str))
        and _is(source, str)
        and _is(created, int)
    )


def _use(data: Any) -> bool:
    days = data.get("days")
    return (
        _is(data.get("recalls"), int)
        and _all(data.get("stamps"), int)
        and isinstance(days, dict)
        and all(day.lstrip("-").isdecimal() and _is(n, int) for day, n in days.items())
    )


def _key(data: Any) -> bool:
    keys = data.get("keys")
    return isinstance(keys, list) and all(
        isinstance(one, list) and len(one) == 3 and _all(one[:2], str) and _is(one[2], int)
        for one in keys
    )


_OF_ENTITIES = ("merge", "split")
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "rev": _rev,
    "end": lambda data: _is(data.get("how"), str),
    "status": lambda data: str(data.get("status")) in _STATUSES,
    "link": _link,
    "key": _key,
    "use": _use,
    "seen": lambda data: all(_is(upto, int) for upto in data.values()),
    "merge": lambda data: _is(data.get("kept"), str),
    "split": lambda data: _is(data.get("kept"), str),
}
