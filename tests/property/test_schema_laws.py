"""The laws of the schema check: what keeps a schema passes, nothing else does, nothing is quoted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bethink.core.characters import find_unstorable
from bethink.core.json_schema import (
    SchemaViolation,
    validate,
    with_counts,
    without_limits,
)
from bethink.models.llm.providers import parse_object
from rows import each_row

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> dict[str, Any]:
    """Any schema of the kind prompts may have."""
    kinds = ["string", "integer", "number", "boolean", *(["object", "array"] if depth else [])]
    kind = draw(st.sampled_from(kinds))
    schema: dict[str, Any] = {"type": kind}
    if kind == "object":
        names = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True))
        properties = {name: draw(schemas(depth - 1)) for name in names}
        return schema | {
            "properties": properties, "required": names, "additionalProperties": False,
        }  # fmt: skip
    if kind == "array":
        schema["items"] = draw(schemas(depth - 1))
    if kind == "string" and draw(st.booleans()):
        return schema | {"enum": draw(st.lists(words, min_size=1, max_size=3, unique=True))}
    limits = {"array": ("minItems", "maxItems"), "string": ("minLength", "maxLength")}
    if kind != "boolean" and draw(st.booleans()):
        low, high = limits.get(kind, ("minimum", "maximum"))
        least = draw(st.integers(0, 3))
        schema |= {low: least, high: least + draw(st.integers(0, 4))}
    return schema


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that keep a schema, by a way of their own."""
    kind = schema["type"]
    if kind == "object":
        return st.fixed_dictionaries({n: values(s) for n, s in schema["properties"].items()})
    if kind == "array":
        low, high = schema.get("minItems", 0), schema.get("maxItems", 3)
        return st.lists(values(schema["items"]), min_size=low, max_size=high)
    if kind == "string":
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        low, high = schema.get("minLength", 0), schema.get("maxLength", 9)
        return st.text("abcé漢", min_size=low, max_size=high)
    if kind == "boolean":
        return st.booleans()
    low, high = schema.get("minimum"), schema.get("maximum")
    whole = st.integers(low, high)
    if kind == "integer":
        return whole
    return whole | st.floats(low, high, allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(st.data())
def test_what_keeps_a_schema_passes(data):
    """Whatever the schema, and through its text as well."""
    schema = data.draw(schemas())
    value = data.draw(values(schema))

    validate(value, schema)
    validate(value, without_limits(schema))
    if isinstance(value, dict):
        assert parse_object(json.dumps(value)) == value


def keeps(value: Any, schema: dict[str, Any]) -> bool:
    """The same question answered the plain way."""
    kind = schema["type"]
    if kind == "boolean":
        return value is True or value is False
    if value is True or value is False:
        return False
    if kind == "object":
        return (
            type(value) is dict
            and value.keys() == schema["properties"].keys()
            and all(keeps(value[name], part) for name, part in schema["properties"].items())
        )
    if kind == "array":
        return (
            type(value) is list
            and schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 99)
            and all(keeps(part, schema["items"]) for part in value)
        )
    if kind == "string":
        return (
            type(value) is str
            and find_unstorable(value) is None
            and value in schema.get("enum", [value])
            and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 99)
            and (bool(value.strip()) or not schema.get("minLength"))
        )
    right = type(value) is int or (kind == "number" and type(value) is float)
    low, high = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
    return right and abs(value) != float("inf") and low <= value <= high


@settings(deadline=None, max_examples=200)
@given(schema=schemas(), value=anything)
def test_nothing_else_passes(schema, value):
    """Any value at all is taken or refused with a sentence, as the plain way says."""
    try:
        validate(value, schema)
    except SchemaViolation:
        assert not keeps(value, schema)
    else:
        assert keeps(value, schema)


@settings(deadline=None)
@given(data=st.data())
def test_one_wrong_part_is_enough(data):
    """A key too many, one too few, or one of another kind, anywhere below."""
    schema = data.draw(schemas().filter(lambda made: made["type"] == "object"))
    value = data.draw(values(schema))
    name = data.draw(st.sampled_from(schema["required"]))
    how = data.draw(st.sampled_from(["drop", "add", "spoil"]))

    if how == "drop":
        del value[name]
    elif how == "add":
        value["one more"] = 1
    else:
        value[name] = None

    with pytest.raises(SchemaViolation):
        validate(value, schema)


@settings(deadline=None)
@given(schema=schemas(), secret=st.text("xyzXYZ ", min_size=6, max_size=30))
def test_a_refusal_never_quotes_the_value(schema, secret):
    """Neither a text nor a key that a model made up."""
    assume(secret.strip())
    for value in (secret, {secret: secret}, [secret], {"a": secret, secret: 1}):
        try:
            validate(value, schema)
        except SchemaViolation as misfit:
            assert secret not in str(misfit)  # noqa: PT017


@settings(deadline=None, max_examples=200)
@given(text=st.text(max_size=60) | st.text('{}[]":,`\n 01aeE+-.json<think/>', max_size=60))
def test_any_text_gives_an_object_or_a_misfit(text):
    """Whatever a model writes, and it is never quoted."""
    try:
        assert isinstance(parse_object(text), dict)
    except SchemaViolation as misfit:
        assert str(misfit)  # noqa: PT017


@each_row(
    ("value", "schema", "why"),
    [
        ("a\ud800", {"type": "string"}, "character that cannot be stored"),
        ("\x00", {"type": "string"}, "character that cannot be stored"),
        ("  ", {"type": "string", "minLength": 1}, "must not be blank"),
        (" " * 9, {"type": "string", "maxLength": 8}, "length of the answer must be at most 8"),
        (float("inf"), {"type": "number"}, "must be a finite number"),
        (float("nan"), {"type": "number", "maximum": 1}, "must be a finite number"),
        (True, {"type": "integer"}, "must be an integer"),
        (3.0, {"type": "integer"}, "must be an integer"),
        ("maybe", {"type": "string", "enum": ["yes", "no"]}, "must be one of yes, no"),
    ],
)
def test_the_rule_that_is_broken_is_named(value, schema, why):
    """So that a model can put it right."""
    with pytest.raises(SchemaViolation, match=why):
        validate(value, schema)


def test_a_bound_may_be_how_many_there_are():
    """An answer can point only at what was shown."""
    number = {"type": "integer", "minimum": 1, "maximum": "memories"}
    schema = {"type": "array", "items": number, "maxItems": 9}

    validate([1, 3], with_counts(schema, {"memories": 3}))
    for count, wrong in ((3, [4]), (0, [1]), (3, [0])):
        with pytest.raises(SchemaViolation, match=r"answer\[0\] must be at"):
            validate(wrong, with_counts(schema, {"memories": count}))
