"""Words to write a tool's JSON Schema with, and whether what a model sent keeps it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from recollect.errors import BadText, Refused, TooLarge
from recollect.jsonable import Json
from recollect.text import unkeepable

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_SHOWN = 60  # characters of a wrong value that are worth repeating
_BITS = 64  # of a whole number whose digits are worth writing out


def text(told: str, *, most: int = 1000, one_of: tuple[str, ...] = ()) -> Json:
    """A string of at most so many characters."""
    limit: Json = {"enum": list(one_of)} if one_of else {"maxLength": most}
    return {"type": "string", "description": told, **limit}


def whole(told: str, least: int, most: int) -> Json:
    """A whole number within bounds."""
    return {"type": "integer", "description": told, "minimum": least, "maximum": most}


def number(told: str, least: float, most: float) -> Json:
    """Any number within bounds."""
    return {"type": "number", "description": told, "minimum": least, "maximum": most}


def flag(told: str) -> Json:
    """True or false; false where nothing is said."""
    return {"type": "boolean", "description": told, "default": False}


def texts(told: str, *, most: int) -> Json:
    """A list of short strings."""
    return {
        "type": "array",
        "description": told,
        "items": {"type": "string", "maxLength": 1000},
        "maxItems": most,
    }


def arguments(properties: Json, *needed: str) -> Json:
    """What a tool takes: these and no others, so that a slip of the pen is told."""
    made: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | {"required": list(needed)} if needed else made


def listing(item: Json, told: str = "") -> Json:
    """A list in an answer."""
    return {"type": "array", "items": item} | ({"description": told} if told else {})


def answer(properties: Json, *optional: str) -> Json:
    """An object in an answer, everything in it always there but for what is ``optional``."""
    needed = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": needed}


STRING: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}
BOOLEAN: Json = {"type": "boolean"}
OBJECT: Json = {"type": "object"}


def maybe(schema: Json) -> Json:
    """The same, or null."""
    return schema | {"type": [schema["type"], "null"]}


def checked(given: Mapping[str, Any], schema: Json) -> dict[str, Any]:
    """The arguments that say something, or Refused with the rule that one breaks.

    Null stands for an argument that was left out: many models write it so.
    """
    known = schema["properties"]
    for name in given:
        if name not in known:
            raise Refused(
                f"there is no argument {_shown(name)}", remedy=f"allowed: {', '.join(known)}"
            )
    told = {name: value for name, value in given.items() if value is not None}
    for name in schema.get("required", ()):
        if name not in told:
            raise Refused(f"the argument {name} is missing", remedy=known[name]["description"])
    for name, value in told.items():
        _check(value, known[name], name)
    return told


def _check(value: Any, schema: Json, name: str) -> None:
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool) != (kind == "boolean"):
        article = "an" if kind[0] in "aio" else "a"
        raise Refused(f"{name} is {_shown(value)}, but must be {article} {kind}")
    if kind in _CHECKS:
        _CHECKS[kind](value, schema, name)


def _check_text(value: str, schema: Json, name: str) -> None:
    found = unkeepable(value)
    if found is not None:
        raise BadText(f"{name} holds a {found[1]} at character {found[0] + 1}", remedy="remove it")
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        raise Refused(f"{name} is {_shown(value)}", remedy=f"one of {', '.join(allowed)}")
    if len(value) > schema.get("maxLength", math.inf):
        limit = schema["maxLength"]
        raise TooLarge(name, limit=limit, actual=len(value), unit="characters")


def _check_number(value: float, schema: Json, name: str) -> None:
    least, most = schema["minimum"], schema["maximum"]
    if not least <= value <= most:  # NaN is not within any bounds
        raise Refused(f"{name} is {_shown(value)}, but must be from {least:,} to {most:,}")


def _check_list(value: list[Any], schema: Json, name: str) -> None:
    if len(value) > schema["maxItems"]:
        raise TooLarge(name, limit=schema["maxItems"], actual=len(value), unit="entries")
    for place, entry in enumerate(value):
        _check(entry, schema["items"], f"{name}[{place}]")


_CHECKS: dict[str, Callable[[Any, Json, str], None]] = {
    "string": _check_text,
    "integer": _check_number,
    "number": _check_number,
    "array": _check_list,
}


def _shown(value: Any) -> str:
    """A wrong value as a sentence can repeat it, however large or deep it is."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,}"
    if isinstance(value, int) and value.bit_length() > _BITS:
        return "a number beyond all bounds"
    told = repr(value)
    return told if len(told) <= _SHOWN else told[: _SHOWN - 1] + "…"
