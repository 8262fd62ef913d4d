"""Arguments are checked before anything happens, and a wrong one is told in a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bethink.errors import BadSetting, Refused
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.tools import TOOLS, select_tools
from bethink.server.tools.catalog import (
    DEFAULT_TOOLS,
    arguments,
    entries,
    flag,
    number,
    text,
    whole,
)
from bethink.server.tools.tool import validate_arguments
from rows import each_row

TAKES = arguments(
    "name",
    name=text("A name.", 5),
    way=text("A way.", choices=("left", "right")),
    count=whole("How many.", 1, 9),
    share=number("A share.", 0, 1),
    really=flag("Really."),
    tags=entries("Tags.", 2),
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 12), st.floats(allow_nan=False), st.text(max_size=7),
    st.sampled_from(["left", "right"]), st.lists(st.one_of(st.text(max_size=3), st.integers())),
)  # fmt: skip


@each_row(
    ("given_", "told"),
    [
        ({}, "name is missing"),
        ({"name": "long name"}, "name is 9 characters; the limit is 5"),
        ({"name": "a", "space": "other"}, "no argument 'space'"),
        ({"name": "a", "way": "up"}, "way is 'up'"),
        ({"name": "a", "count": 10}, "from 1 to 9"),
        ({"name": "a", "count": "3"}, "must be an integer"),
        ({"name": "a", "count": True}, "must be an integer"),
        ({"name": "a", "share": float("nan")}, "from 0 to 1"),
        ({"name": "a", "really": 1}, "must be a boolean"),
        ({"name": "a", "tags": ["a", "b", "c"]}, "tags is 3 entries"),
        ({"name": "a", "tags": [1]}, "tags[0] is 1"),
        ({"name": 7}, "must be a string"),
    ],
)
def test_a_broken_rule_is_told(given_: dict[str, Any], told: str) -> None:
    """By the argument's name, the value and the rule."""
    with pytest.raises(Refused) as refused:
        validate_arguments(given_, TAKES)

    assert told in refused.value.message


def test_null_is_nothing_said() -> None:
    """Models write null for what they leave out."""
    assert validate_arguments({"name": "a", "count": None}, TAKES) == {"name": "a"}


@given(st.dictionaries(st.sampled_from([*TAKES["properties"], "other"]), VALUES))
def test_it_judges_as_json_schema_does(given_: dict[str, Any]) -> None:
    """What passes here passes a validator of the standard, and the other way round."""
    told = {name: value for name, value in given_.items() if value is not None}
    # The standard takes 3.0 for an integer; a model that means three writes 3.
    strict = not any(isinstance(told.get(name), float) for name in ("count",))
    valid = Draft202012Validator(TAKES).is_valid(told)

    try:
        validate_arguments(given_, TAKES)
    except Refused:
        assert not (valid and strict)
    else:
        assert valid


@each_row("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_schemas_are_schemas(tool: Any) -> None:
    """Input and output, by the standard; an argument never names a space."""
    Draft202012Validator.check_schema(tool.input_schema)
    Draft202012Validator.check_schema(tool.output_schema)

    assert "space" not in tool.input_schema["properties"]
    assert tool.input_schema["additionalProperties"] is False
    assert all("description" in part for part in tool.input_schema["properties"].values())


def test_seven_tools_unless_more_are_asked_for() -> None:
    """Many tools cost every conversation that does not use them."""
    assert len(select_tools()) == len(DEFAULT_TOOLS) == 7
    assert [*select_tools(["undo", "timeline"])][7:] == ["undo", "timeline"]
    assert select_tools(["all"]) == TOOLS
    with pytest.raises(BadSetting, match="no tool 'nonsense'"):
        select_tools(["nonsense"])


def test_the_usual_offer_is_small() -> None:
    """What a host puts into every conversation is under 3,000 tokens, schemas included."""
    tools = ServerManifest(select_tools()).lists_for({})["tools/list"]["tools"]
    shown = [
        {name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools
    ]

    assert len(json.dumps(shown)) < 11_900
