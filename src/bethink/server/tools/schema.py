"""JSON Schemas of tools: arguments from their limits or a declaration, answers from types."""

from __future__ import annotations

from types import UnionType
from typing import Literal, Union, get_args, get_origin

from bethink.core.json_values import Json
from bethink.model.fields import ItemField, Limit

_NAMES: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NAMES |= {dict: "object"}


def text(description: str, longest: int = 1000, choices: tuple[str, ...] = ()) -> Json:
    """Schema of a text with a maximum length, or of one of several choices."""
    limit: Json = {"enum": list(choices)} if choices else {"maxLength": longest}
    return {"type": "string", "description": description, **limit}


def whole(description: str, low: int, high: int) -> Json:
    """Schema of a whole number within bounds."""
    return {"type": "integer", "description": description, "minimum": low, "maximum": high}


def number(description: str, low: float, high: float) -> Json:
    """Schema of a number within bounds."""
    return {"type": "number", "description": description, "minimum": low, "maximum": high}


def flag(description: str) -> Json:
    """Schema of a flag that is false by default."""
    return {"type": "boolean", "description": description, "default": False}


def entries(description: str, most: int, item: Json | None = None) -> Json:
    """Schema of a list of short texts, or of other items."""
    items = item or {"type": "string", "maxLength": 1000}
    return {"type": "array", "description": description, "items": items, "maxItems": most}


def arguments(*required: str, **properties: Json) -> Json:
    """Schema of a tool's arguments; unknown names are not allowed, to catch typos."""
    made: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | {"required": list(required)} if required else made


def declared_argument(hint: object) -> Json:
    """Schema of the argument for an annotated keyword: of its types the first, without null."""
    kind, *notes = get_args(hint)
    kinds = get_args(kind) or (kind,)
    description = next(note for note in notes if isinstance(note, str))
    limit = next((note for note in notes if isinstance(note, Limit)), Limit())
    return _argument(kinds[0], description, limit, is_nullable=type(None) in kinds)


def field_argument(field: ItemField) -> Json:
    """Schema of the argument that sets a field of a memory."""
    if field.kind == "words":
        return described(list[str], field.argument)  # the write pipeline has the limits
    kind = {"number": float, "scale": int, "flag": bool}.get(field.kind, str)
    limit = Limit(field.low, field.high, 100 if field.kind == "time" else field.longest)
    return _argument(kind, field.argument, limit, is_nullable=True)


def _argument(kind: type, description: str, limit: Limit, *, is_nullable: bool) -> Json:
    if kind is bool:
        # One that may be null has a default of its own, which is not false.
        return described(bool, description) if is_nullable else flag(description)
    if limit.is_list:
        return entries(description, limit.most, {"type": "string", "maxLength": limit.longest})
    if kind is str:
        return text(description, limit.longest, limit.choices)
    bounds = {"minimum": limit.low, "maximum": limit.high}
    return described(kind, description) | bounds


def record(*optional: str, **properties: object) -> Json:
    """Schema of an object in an answer by the types of its properties.

    All but ``optional`` are required. A type is a Python type, another schema, or a list that
    holds the one of its entries.
    """
    needed = [name for name in properties if name not in optional]
    schemas = {name: schema_of(kind) for name, kind in properties.items()}
    return {"type": "object", "properties": schemas, "required": needed}


def schema_of(kind: object) -> Json:
    """Schema of a value in an answer."""
    if isinstance(kind, dict):
        return kind
    if isinstance(kind, list):
        return {"type": "array", "items": schema_of(kind[0])}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": [*get_args(kind)]}
    if get_origin(kind) is list:
        return schema_of([*get_args(kind)])
    if get_origin(kind) in (Union, UnionType):
        return nullable(get_args(kind)[0])
    return {"type": _NAMES[kind]}


def described(kind: object, description: str) -> Json:
    """Schema of a value in an answer, with a description."""
    return schema_of(kind) | {"description": description}


def nullable(kind: object) -> Json:
    """Schema of a value that may also be null."""
    schema = schema_of(kind)
    return schema | {"type": [schema["type"], "null"]}
