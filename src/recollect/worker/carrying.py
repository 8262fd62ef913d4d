"""Frozen values as JSON and back, nothing lost: the types say how, and are checked.

A value of a class is the list of its fields. What a walk shares between its steps
(memories, reasons, candidates) is written once and pointed at. Nothing that comes in is
ever run, and only the classes that the wanted type names are made.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from recollect.jsonable import Json
from recollect.model import Candidate, Evidence, Item

T = TypeVar("T")

_SHARED = (Item, Evidence, Candidate)
_PLAIN = (str, int, bool)


class BadValue(Exception):
    """What came is not of the type that was asked for."""


def carried(value: Any) -> Json:
    """A value as a JSON object that ``delivered`` takes back."""
    packing = _Packing()
    return {"value": packing(value), "shared": packing.shared}


def delivered(told: Any, wanted: type[T]) -> T:
    """The value of that type which ``carried`` has told of; else BadValue."""
    if not isinstance(told, dict):
        raise BadValue("no object")
    shared, value = told.get("shared"), told.get("value")
    if not isinstance(shared, list):
        raise BadValue("no list of shared values")
    unpacking = _Unpacking()
    for one in shared:
        name, fields = _pair(one)
        kind = next((kind for kind in _SHARED if kind.__name__ == name), None)
        if kind is None:
            raise BadValue(f"{name!r:.40} is never shared")
        unpacking.shared.append(_made(kind, fields, unpacking))
    made: T = unpacking(value, wanted)
    return made


def _pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise BadValue("a shared value is a name and its fields")
    return value[0], value[1]


class _Packing:
    """Writes values, each shared one once."""

    def __init__(self) -> None:
        self.shared: list[list[Any]] = []
        # By identity; the values are kept with it, for an id is free once they are gone.
        self._places: dict[int, tuple[Any, int]] = {}

    def __call__(self, value: Any) -> Any:
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, Mapping):
            return {str(name): self(one) for name, one in value.items()}
        if isinstance(value, _SHARED):
            return self._pointer(value)
        return [self(one) for one in _several(value)]

    def _pointer(self, value: Any) -> int:
        known = self._places.get(id(value))
        if known is not None:
            return known[1]
        fields = [self(one) for one in value]
        place = len(self.shared)
        self.shared.append([type(value).__name__, fields])
        self._places[id(value)] = (value, place)
        return place


def _several(value: Any) -> Iterable[Any]:
    """What a value is made of, in an order that is always the same."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple | list):
        return value
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    raise BadValue(f"a {type(value).__name__} cannot be carried")


class _Unpacking:
    """Reads values, by the types they must have."""

    def __init__(self) -> None:
        self.shared: list[Any] = []

    def __call__(self, value: Any, wanted: Any) -> Any:
        origin = get_origin(wanted)
        if wanted is Any:
            return value
        if origin in _READERS:
            return _READERS[origin](value, wanted, self)
        if wanted in _PLAIN or wanted is float:
            return _plain(value, wanted)
        if wanted is datetime:
            return _moment(value)
        if wanted in _SHARED:
            return self._pointed_at(value, wanted)
        return _made(wanted, value, self)

    def _pointed_at(self, value: Any, wanted: Any) -> Any:
        if type(value) is not int or not 0 <= value < len(self.shared):
            raise BadValue(f"{value!r:.40} points at nothing")
        found = self.shared[value]
        if type(found) is not wanted:
            raise BadValue(f"{value} is no {wanted.__name__}")
        return found


def _plain(value: Any, wanted: type) -> Any:
    # A whole number is a fine float, and a bool is nobody's number.
    right = (int, float) if wanted is float else wanted
    if not isinstance(value, right) or (isinstance(value, bool) and wanted is not bool):
        raise BadValue(f"{value!r:.40} is no {wanted.__name__}")
    return value


def _moment(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise BadValue(f"{value!r:.40} is no moment") from error


def _made(kind: Any, value: Any, unpacking: _Unpacking) -> Any:
    """A value of a class from the list of its fields."""
    hints = _fields(kind)
    if not isinstance(value, list) or len(value) != len(hints):
        raise BadValue(f"not the fields of {kind.__name__}")
    return kind(*(unpacking(one, hint) for one, hint in zip(value, hints, strict=True)))


@cache
def _fields(kind: Any) -> tuple[Any, ...]:
    """The types of a class's fields, in their order."""
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        raise BadValue(f"{kind!r:.40} is never carried")
    hints = typing.get_type_hints(kind)
    names = kind._fields if hasattr(kind, "_fields") else [f.name for f in dataclasses.fields(kind)]
    return tuple(hints[name] for name in names)


def _tuple(value: Any, wanted: Any, unpacking: _Unpacking) -> tuple[Any, ...]:
    inner = get_args(wanted)
    listed = _list(value)
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(unpacking(one, inner[0]) for one in listed)
    if len(listed) != len(inner):
        raise BadValue(f"{len(listed)} values where {len(inner)} belong")
    return tuple(unpacking(one, hint) for one, hint in zip(listed, inner, strict=True))


def _frozenset(value: Any, wanted: Any, unpacking: _Unpacking) -> frozenset[Any]:
    (inner,) = get_args(wanted)
    return frozenset(unpacking(one, inner) for one in _list(value))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadValue(f"{value!r:.40} is no list")
    return value


def _either(value: Any, wanted: Any, unpacking: _Unpacking) -> Any:
    """One that may be missing."""
    kinds = [kind for kind in get_args(wanted) if kind is not types.NoneType]
    if value is None and len(kinds) < len(get_args(wanted)):
        return None
    if len(kinds) != 1:
        raise BadValue(f"{wanted} says nothing certain")
    return unpacking(value, kinds[0])


def _one_of(value: Any, wanted: Any, _: _Unpacking) -> Any:
    if value not in get_args(wanted) or isinstance(value, bool):
        raise BadValue(f"{value!r:.40} is none of {get_args(wanted)}")
    return value


def _mapping(value: Any, _: Any, __: _Unpacking) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadValue(f"{value!r:.40} is no object")
    return value


_READERS: Mapping[Any, Callable[[Any, Any, _Unpacking], Any]] = {
    tuple: _tuple,
    frozenset: _frozenset,
    Union: _either,
    types.UnionType: _either,
    Literal: _one_of,
    Mapping: _mapping,
}
