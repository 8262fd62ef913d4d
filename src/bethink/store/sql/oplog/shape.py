"""Whether an operation that another machine sends can be one: its types, by its kind.

What passes can be folded and stored. What does not is held: kept and passed on as it came,
until a version that understands it reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from bethink.core.characters import find_unstorable
from bethink.core.json_values import Json
from bethink.model.fields import ITEM_FIELDS
from bethink.ports import is_span
from bethink.store.sql.rows import CONTENT

OWN_FIELDS = tuple(name for name in CONTENT if name not in ("id", "rev", "live_from"))
_FIELDS = {field.name: field for field in ITEM_FIELDS if field.name in OWN_FIELDS}
_EMPTY = {"words": "[]", "object": "{}"}
# Values that are not said; they are part of the format, and never change.
DEFAULTS: Json = {"about": "", "sketch": []}
DEFAULTS |= {name: _EMPTY[one.kind] for name, one in _FIELDS.items() if one.kind in _EMPTY}
DEFAULTS |= {name: None for name, one in _FIELDS.items() if one.nullable}
# Fields that a whole revision always says, and one that only changes something never does.
WHOLE = frozenset({*OWN_FIELDS, "sketch"} - DEFAULTS.keys())
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # of a date
EDGE = ">"  # before the mark of a relation between entities: operations on it
MERGED = "same_as"
_PLACES = {"merge": "=", "split": "=", "edge": EDGE}
_DECODER = json.JSONDecoder(parse_constant=int)  # fails at infinite numbers
Shape = Any  # a type, a check, a list of one shape, a tuple of several, or a dict of names


def parse_op(line: str) -> tuple[list[Any] | None, bool]:
    """Return the operation of a line, if it can be kept, and whether it is understood."""
    try:
        line.encode()  # fails at half a character
        row = _DECODER.decode(line)
        is_head = isinstance(row, list) and [type(value) for value in row] == _HEAD
        if not is_head or not is_span(row[0], row[1:2] * 2) or row[5] == "erased":
            return None, False
        if not (_count(row[3]) and _time(row[4]) and _count(row[7])):
            return None, False
        if is_odd := "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()
            if not _fits(row[:8]):
                return None, False
    except (ValueError, TypeError, RecursionError):
        return None, False
    try:
        fits = _is(row[8], _SHAPES[row[5]]) and not (is_odd and not _fits(row[8]))
    except (ValueError, TypeError, LookupError, RecursionError, AttributeError):
        return row, False
    first = row[6][:1] if row[6][:1] in ("=", EDGE) else ""
    return row, fits and _PLACES.get(row[5], "") == first


def _is(value: Any, shape: Shape) -> bool:
    """Whether a value has a shape; a name that ends with ``?`` may be missing."""
    if isinstance(shape, type):
        return isinstance(value, shape) and not isinstance(value, bool)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_is(one, shape[0]) for one in value)
    if isinstance(shape, tuple):
        is_long = isinstance(value, list) and len(value) == len(shape)
        return is_long and all(map(_is, value, shape))
    if not isinstance(shape, dict):
        return bool(shape(value))
    return isinstance(value, dict) and all(
        name[-1] == "?" if (key := name.rstrip("?")) not in value else _is(value[key], inner)
        for name, inner in shape.items()
    )


def _fits(value: Any) -> bool:
    """Whether a database keeps all texts of it."""
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else ()
        return all(map(_fits, value)) and all(map(_fits, inner))
    return not isinstance(value, str) or not find_unstorable(value)


def _all(key: Callable[[str], object], shape: Shape) -> Callable[[Any], bool]:
    """Return the shape of objects with any number of such names and values."""
    return lambda value: (
        isinstance(value, dict)
        and all(key(name) and _is(one, shape) for name, one in value.items())
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and -(2**53) < value < 2**53


def _band(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _link(value: Any) -> bool:
    *texts, (weight, confidence, context, source, at) = value
    is_plain = _number(weight) and _number(confidence) and _time(at)
    is_plain = is_plain and (context is None or type(context) is str)
    return is_plain and [type(one) for one in (*texts, source)] == [str] * 7


def _edge(value: Any) -> bool:
    between = (value[0], value[3], value[5]) == ("entity", "entity", "")
    return _link(value) and between and value[2] != MERGED


def _count(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**53


def _time(value: Any) -> bool:
    return type(value) is int and _FIRST_MS <= value <= _LAST_MS


_PLAIN: dict[str, Shape] = {
    "whole": _count,
    "flag": lambda value: value in (0, 1),
    "time": _time,
    "number": _number,
    "words": lambda value: value == "[]" or (_is(said := json.loads(value), [str]) and _fits(said)),
    "object": lambda value: value == "{}" or isinstance(json.loads(value), dict),
}


_TEXTS = {name for name, one in _FIELDS.items() if one.kind in ("text", "word", "id")}


def _are_fields(fields: Any) -> bool:
    return all(
        (name in _TEXTS and type(value) is str)
        or (_is(value, [_band]) if name == "sketch" else _is_field(name, value))
        for name, value in fields.items()
    )


@lru_cache(maxsize=4096, typed=True)  # most memories have the same
def _is_field(name: str, value: Any) -> bool:
    """Whether a field of a memory can have a value; what this version does not know has none."""
    field = _FIELDS.get(name)
    if field is None:  # words to find it by, and its fingerprint
        return isinstance(value, str) and name in OWN_FIELDS
    if value is None or field.kind in _PLAIN:
        return field.nullable if value is None else _is(value, _PLAIN[field.kind])
    if field.kind == "scale":
        return _is(value, int) and field.low <= value <= field.high
    return isinstance(value, str) and (not field.choices or value in field.choices)


def _is_rev(data: Any) -> bool:
    return _is(data, _REV) and data.get("set", {}).keys() >= set(data.get("changed", ()))


_HEAD = [str, int, str, int, int, str, str, int, dict]
_REV = {
    "set?": _are_fields,
    "delta?": _all(lambda name: _FIELDS[name].kind == "words", ([str], [str])),
    "changed?": [str],
}
_KEY = (str,) * 6
_MERGE = {"kept": str}
_SHAPES: dict[str, Shape] = {
    "rev": _is_rev,
    "end": {"how": str},
    "status": {"status": lambda value: value in ("active", "superseded", "quarantined")},
    "parent": {"parent": str},
    "link": {
        "add": [_link],
        "drop?": [_KEY],
        "entities?": _all(str, (str, str, [str])),
    },
    "key": {"keys": [(str, str, _time)]},
    "use": {
        "recalls": _count,
        "stamps": [_time],
        "days": _all(re.compile(r"-?[0-9]{1,7}").fullmatch, _count),
    },
    "seen": _all(str, _count),
    "edge": {"add?": _edge},
    "merge": _MERGE,
    "split": _MERGE,
    "withdraw": {}, "settle": {}, "erase": {},
}  # fmt: skip
