"""The subset of JSON Schema that prompts use, and its validation.

Objects are closed and hold all their properties, types are single, and a bound of an
integer may be the name of a prompt's passages: then it is their count, so that an answer
can only point at a passage that was shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bethink.core.text import find_unstorable

Schema = Mapping[str, Any]

_LIMIT_KEYS: dict[str, tuple[str, ...]] = {
    "object": (),
    "array": ("minItems", "maxItems"),
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
}
_STRUCTURAL_KEYS: dict[str, tuple[str, ...]] = {
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


class SchemaViolation(ValueError):
    """A value that violates its schema. Names the place and the rule, never the value."""


def validate(value: Any, schema: Schema, where: str = "the answer") -> None:
    """Validate a value; raise at the first rule that is broken."""
    kind = schema["type"]
    if not _has_type(value, kind):
        article = "an" if kind[0] in "aio" else "a"
        raise SchemaViolation(f"{where} must be {article} {kind}")
    _CHECKS[kind](value, schema, where)


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # a kind of int, to Python
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _check_object(value: dict[str, Any], schema: Schema, where: str) -> None:
    properties = schema["properties"]
    for name in schema["required"]:
        if name not in value:
            raise SchemaViolation(f"{where} lacks {name!r}")
    if len(value) > len(properties):
        raise SchemaViolation(f"{where} has more than {', '.join(map(repr, properties))}")
    for name, part in properties.items():
        validate(value[name], part, f"{where}.{name}")


def _check_array(value: list[Any], schema: Schema, where: str) -> None:
    _check_range(len(value), schema, ("minItems", "maxItems"), f"the length of {where}")
    for place, part in enumerate(value):
        validate(part, schema["items"], f"{where}[{place}]")


def _check_string(value: str, schema: Schema, where: str) -> None:
    if find_unstorable(value) is not None:
        raise SchemaViolation(f"{where} holds a character that cannot be stored")
    if "enum" in schema and value not in schema["enum"]:
        raise SchemaViolation(f"{where} must be one of {', '.join(schema['enum'])}")
    if schema.get("minLength") and not value.strip():
        raise SchemaViolation(f"{where} must not be blank")
    _check_range(len(value), schema, ("minLength", "maxLength"), f"the length of {where}")


def _check_number(value: float, schema: Schema, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaViolation(f"{where} must be a finite number")
    _check_range(value, schema, ("minimum", "maximum"), where)


def _check_boolean(value: bool, schema: Schema, where: str) -> None:
    """Nothing to check beyond the type."""


def _check_range(value: float, schema: Schema, names: tuple[str, str], where: str) -> None:
    least, most = (schema.get(name) for name in names)
    if least is not None and value < least:
        raise SchemaViolation(f"{where} must be at least {least}")
    if most is not None and value > most:
        raise SchemaViolation(f"{where} must be at most {most}")


_CHECKS: dict[str, Callable[[Any, Schema, str], None]] = {
    "object": _check_object,
    "array": _check_array,
    "string": _check_string,
    "integer": _check_number,
    "number": _check_number,
    "boolean": _check_boolean,
}


def check_schema(
    schema: Any, passage_names: Collection[str] = (), where: str = "the schema"
) -> None:
    """Check that a schema uses only the supported subset; raise if it does not."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(kind, str) or kind not in _LIMIT_KEYS:
        raise SchemaViolation(f"{where} has no type of {', '.join(_LIMIT_KEYS)}")
    known = {"type", "description", *_LIMIT_KEYS[kind], *_STRUCTURAL_KEYS.get(kind, ())}
    if not known.issuperset(schema):
        raise SchemaViolation(f"{where} has other keys than {', '.join(sorted(known))}")
    for name in _LIMIT_KEYS[kind]:
        bound = schema.get(name, 0)
        if not _has_type(bound, "number") and bound not in passage_names:
            raise SchemaViolation(
                f"{where}: {name} is neither a number nor one of {', '.join(passage_names)}"
            )
    if kind == "array":
        check_schema(schema.get("items"), passage_names, f"{where}[]")
    if kind == "object":
        _check_closed(schema, where)
        for name, part in schema["properties"].items():
            check_schema(part, passage_names, f"{where}.{name}")


def _check_closed(schema: Schema, where: str) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise SchemaViolation(f"{where} has no properties")
    if schema.get("additionalProperties") is not False:
        raise SchemaViolation(f"{where} must have additionalProperties: false")
    if sorted(schema.get("required", ())) != sorted(properties):
        raise SchemaViolation(f"{where} must require all its properties")


def with_counts(schema: Schema, counts: Mapping[str, int]) -> dict[str, Any]:
    """The schema with passage names replaced by their counts."""

    def settled(name: str, part: Any) -> Any:
        if name in ("minimum", "maximum") and isinstance(part, str):
            return counts[part]
        if name == "properties":
            return {key: with_counts(below, counts) for key, below in part.items()}
        return with_counts(part, counts) if name == "items" else part

    return {name: settled(name, part) for name, part in schema.items()}


def without_limits(schema: Schema) -> dict[str, Any]:
    """The schema without its limits: the part every server can enforce.

    Some servers refuse limits on lengths, others are very slow with them; limits are
    validated afterwards.
    """
    made = {name: part for name, part in schema.items() if name not in _LIMIT_KEYS[schema["type"]]}
    if "properties" in made:
        made["properties"] = {
            name: without_limits(part) for name, part in made["properties"].items()
        }
    if "items" in made:
        made["items"] = without_limits(made["items"])
    return made
