"""The part of JSON Schema that prompts use: whether a value keeps it, and if not, why.

Small on purpose. Objects are closed and hold all their properties, types are single,
and a bound of an integer may be the name of a prompt's passages: then it is how many
of them there are, so that an answer can only point at what was shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from recollect.text import unkeepable

Schema = Mapping[str, Any]

_LIMITS: dict[str, tuple[str, ...]] = {
    "object": (),
    "array": ("minItems", "maxItems"),
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
}
_PARTS: dict[str, tuple[str, ...]] = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items",),
    "string": ("enum",),
}

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


class Misfit(ValueError):
    """A value that does not keep its schema. Says where and which rule, never the value."""


def validate(value: Any, schema: Schema, where: str = "the answer") -> None:
    """Raises Misfit at the first rule that is broken."""
    kind = schema["type"]
    if not _is_a(value, kind):
        article = "an" if kind[0] in "aio" else "a"
        raise Misfit(f"{where} must be {article} {kind}")
    _CHECKS[kind](value, schema, where)


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # a kind of int, to Python
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _check_object(value: dict[str, Any], schema: Schema, where: str) -> None:
    properties = schema["properties"]
    for name in schema["required"]:
        if name not in value:
            raise Misfit(f"{where} lacks {name!r}")
    if len(value) > len(properties):
        raise Misfit(f"{where} has more than {', '.join(map(repr, properties))}")
    for name, part in properties.items():
        validate(value[name], part, f"{where}.{name}")


def _check_array(value: list[Any], schema: Schema, where: str) -> None:
    _check_range(len(value), schema, ("minItems", "maxItems"), f"the length of {where}")
    for place, part in enumerate(value):
        validate(part, schema["items"], f"{where}[{place}]")


def _check_string(value: str, schema: Schema, where: str) -> None:
    if unkeepable(value) is not None:
        raise Misfit(f"{where} holds a character that cannot be stored")
    if "enum" in schema and value not in schema["enum"]:
        raise Misfit(f"{where} must be one of {', '.join(schema['enum'])}")
    if schema.get("minLength") and not value.strip():
        raise Misfit(f"{where} must not be blank")
    _check_range(len(value), schema, ("minLength", "maxLength"), f"the length of {where}")


def _check_number(value: float, schema: Schema, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Misfit(f"{where} must be a finite number")
    _check_range(value, schema, ("minimum", "maximum"), where)


def _check_boolean(value: bool, schema: Schema, where: str) -> None:
    """Its type says it all."""


def _check_range(value: float, schema: Schema, names: tuple[str, str], where: str) -> None:
    least, most = (schema.get(name) for name in names)
    if least is not None and value < least:
        raise Misfit(f"{where} must be at least {least}")
    if most is not None and value > most:
        raise Misfit(f"{where} must be at most {most}")


_CHECKS: dict[str, Callable[[Any, Schema, str], None]] = {
    "object": _check_object,
    "array": _check_array,
    "string": _check_string,
    "integer": _check_number,
    "number": _check_number,
    "boolean": _check_boolean,
}


def check_schema(schema: Any, counted: Collection[str] = (), where: str = "the schema") -> None:
    """Raises Misfit unless this is a schema of the kind described above."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(kind, str) or kind not in _LIMITS:
        raise Misfit(f"{where} has no type of {', '.join(_LIMITS)}")
    known = {"type", "description", *_LIMITS[kind], *_PARTS.get(kind, ())}
    if not known.issuperset(schema):
        raise Misfit(f"{where} has other keys than {', '.join(sorted(known))}")
    for name in _LIMITS[kind]:
        bound = schema.get(name, 0)
        if not _is_a(bound, "number") and bound not in counted:
            raise Misfit(f"{where}: {name} is neither a number nor one of {', '.join(counted)}")
    if kind == "array":
        check_schema(schema.get("items"), counted, f"{where}[]")
    if kind == "object":
        _check_closed(schema, where)
        for name, part in schema["properties"].items():
            check_schema(part, counted, f"{where}.{name}")


def _check_closed(schema: Schema, where: str) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise Misfit(f"{where} has no properties")
    if schema.get("additionalProperties") is not False:
        raise Misfit(f"{where} must have additionalProperties: false")
    if sorted(schema.get("required", ())) != sorted(properties):
        raise Misfit(f"{where} must require all its properties")


def with_counts(schema: Schema, counts: Mapping[str, int]) -> dict[str, Any]:
    """The schema with the names of passages replaced by how many there are."""

    def settled(name: str, part: Any) -> Any:
        if name in ("minimum", "maximum") and isinstance(part, str):
            return counts[part]
        if name == "properties":
            return {key: with_counts(below, counts) for key, below in part.items()}
        return with_counts(part, counts) if name == "items" else part

    return {name: settled(name, part) for name, part in schema.items()}


def outline(schema: Schema) -> dict[str, Any]:
    """The schema without its limits: what every server can hold a model to.

    Some refuse a schema with limits on lengths, others need very long for them; they
    are checked afterwards.
    """
    made = {name: part for name, part in schema.items() if name not in _LIMITS[schema["type"]]}
    if "properties" in made:
        made["properties"] = {name: outline(part) for name, part in made["properties"].items()}
    if "items" in made:
        made["items"] = outline(made["items"])
    return made
