"""The subset of JSON Schema that tools and prompts use, and its validation.

In a prompt's schema objects are closed and hold all their properties, and a bound of an
integer may be the name of the prompt's passages: then it is their count, so that an answer
can only point at a passage that was shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from bethink.core.characters import find_unstorable
from bethink.core.named_tuple import NamedTuple

Schema = Mapping[str, Any]

_LIMITS = frozenset(("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"))
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


Rule = Literal[
    "type", "required", "additionalProperties", "storable", "enum", "blank", "finite",
    "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum",
]  # fmt: skip
_BOUNDS: tuple[Rule, Rule] = ("minimum", "maximum")


class Violation(NamedTuple):
    """The first rule that a value breaks: the place, the rule, the value and its schema."""

    where: str
    rule: Rule
    value: Any
    schema: Schema


def find_violation(value: Any, schema: Schema, where: str) -> Violation | None:
    """Find the first rule of the schema that a value breaks; None if it breaks none."""
    kind = schema["type"]
    if not _has_type(value, kind):
        return Violation(where, "type", value, schema)
    if kind == "object":
        return _find_in_object(value, schema, where)
    if kind == "array":
        return _find_in_array(value, schema, where)
    rule = _broken_text_rule(value, schema) if kind == "string" else None
    if kind in ("integer", "number"):
        # Only floats: math.isfinite raises for an integer that no float can hold.
        is_finite = isinstance(value, int) or math.isfinite(value)
        rule = _broken_bound(value, schema, *_BOUNDS) if is_finite else "finite"
    return Violation(where, rule, value, schema) if rule is not None else None


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # a kind of int, to Python
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _find_in_object(value: dict[str, Any], schema: Schema, where: str) -> Violation | None:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if any(name not in value for name in schema.get("required", ())):
        return Violation(where, "required", value, schema)
    if schema.get("additionalProperties") is False and not properties.keys() >= value.keys():
        return Violation(where, "additionalProperties", value, schema)
    parts = (
        find_violation(value[name], part, f"{where}.{name}")
        for name, part in properties.items()
        if name in value
    )
    return next(filter(None, parts), None)


def _find_in_array(value: list[Any], schema: Schema, where: str) -> Violation | None:
    rule = _broken_bound(len(value), schema, "minItems", "maxItems")
    if rule is not None:
        return Violation(where, rule, value, schema)
    parts = (
        find_violation(part, schema["items"], f"{where}[{place}]")
        for place, part in enumerate(value)
    )
    return next(filter(None, parts), None)


def _broken_text_rule(value: str, schema: Schema) -> Rule | None:
    if find_unstorable(value) is not None:
        return "storable"
    if "enum" in schema and value not in schema["enum"]:
        return "enum"
    if schema.get("minLength") and not value.strip():
        return "blank"
    return _broken_bound(len(value), schema, "minLength", "maxLength")


def _broken_bound(value: float, schema: Schema, least: Rule, most: Rule) -> Rule | None:
    if value < schema.get(least, -math.inf):
        return least
    return most if value > schema.get(most, math.inf) else None


class SchemaViolation(ValueError):
    """A value that violates its schema. Names the place and the rule, never the value."""


def validate(value: Any, schema: Schema, where: str = "the answer") -> None:
    """Validate a value; raise at the first rule that is broken."""
    broken = find_violation(value, schema, where)
    if broken is not None:
        raise SchemaViolation(_describe_rule(broken))


def _describe_rule(broken: Violation) -> str:
    where, rule, value, schema = broken
    if rule == "required":
        return f"{where} lacks {next(one for one in schema['required'] if one not in value)!r}"
    if rule in schema and rule not in ("type", "enum", "additionalProperties"):
        measured = where if rule in _BOUNDS else f"the length of {where}"
        least = rule in ("minimum", "minItems", "minLength")
        return f"{measured} must be at {'least' if least else 'most'} {schema[rule]}"
    known = ", ".join(map(repr, schema.get("properties", ())))
    said = {
        "type": f"must be {with_article(schema['type'])}",
        "additionalProperties": f"has more than {known}",
        "storable": "holds a character that cannot be stored",
        "enum": f"must be one of {', '.join(schema.get('enum', ()))}",
        "blank": "must not be blank",
        "finite": "must be a finite number",
    }
    return f"{where} {said[rule]}"


def with_article(kind: str) -> str:
    """A type with its article, for a message."""
    return f"{'an' if kind[0] in 'aio' else 'a'} {kind}"


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
    made = {name: part for name, part in schema.items() if name not in _LIMITS}
    if "properties" in made:
        made["properties"] = {
            name: without_limits(part) for name, part in made["properties"].items()
        }
    if "items" in made:
        made["items"] = without_limits(made["items"])
    return made
