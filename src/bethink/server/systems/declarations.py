"""The tools of other systems, read from their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.toml import parse_toml
from bethink.server.tools.tool import Tool

_MAX_TEXT_CHARS = 65_536
_MODULE = "bethink.server.systems.operations"
_READ = {"read_only": True}
_WITH_BUDGET = ("recall", "read_file")  # their texts have a budget of their own


class _Right(NamedTuple):
    """The row of the policy table that an operation has, and its hints."""

    operation: str
    hints: Mapping[str, bool]


_RIGHTS = {
    "recall": _Right("recall", _READ),
    "browse": _Right("list_memories", _READ),
    "get": _Right("get_memory", _READ),
    "topics": _Right("list_memories", _READ),
    "entities": _Right("list_entities", _READ),
    "timeline": _Right("timeline", _READ),
    "why": _Right("explain", _READ),
    "recall_file": _Right("recall_file", _READ),
    "stats": _Right("stats", _READ),
    "fixed": _Right("stats", _READ),
    "read_file": _Right("read_smart", {}),
    "remember": _Right("remember", {}),
    "update": _Right("update_memory", {"idempotent": True}),
    "boost": _Right("update_memory", {}),
    "forget": _Right("forget", {"destructive": True}),
    "restore": _Right("restore", {"idempotent": True}),
    "consolidate": _Right("consolidate", {"destructive": True}),
}


class System(NamedTuple):
    """One system: its profile, its tools, and the rows that declare them and its prompts.

    ``tools`` are those that its MCP server offers, ``rows`` also those that are commands only.
    """

    name: str
    profile: str
    instructions: str
    rows: Mapping[str, Json]
    tools: Mapping[str, Tool]
    prompts: Mapping[str, Json]


@cache
def load_system(name: str) -> System:
    """Read the declarations of a system."""
    text = files("bethink.systems").joinpath(name, "tools.toml").read_text(encoding="utf-8")
    read = parse_toml(text)
    rows: Json = read["tools"]
    tools = {key: make_tool(name, key, row) for key, row in rows.items() if row.get("mcp", True)}
    prompts = read.get("prompts", {})
    return System(name, read["profile"], read["instructions"], rows, tools, prompts)


def make_tool(system: str, name: str, row: Json) -> Tool:
    """Make the tool that a row declares."""
    right = _RIGHTS[row["does"]]
    arguments: Json = {
        "type": "object",
        "properties": {
            argument: _argument_schema(spec) for argument, spec in row.get("arguments", {}).items()
        },
        "additionalProperties": False,
    }
    if "required" in row:
        arguments["required"] = row["required"]
    fields = [field for field in row["answer"] if not field.endswith("?")]
    answer = {"type": "object", "properties": {field: {} for field in fields}, "required": fields}
    title = name.replace("_", " ").capitalize()
    made: Json = {"operation": right.operation, "system": system, **right.hints}
    if row["does"] in _WITH_BUDGET:
        made["max_text"] = None
    return Tool(name, title, row["about"], arguments, answer, _MODULE, **made)


def _argument_schema(spec: Json) -> Json:
    """The JSON Schema of an argument; one with ``within`` takes any number, as its system does."""
    schema: Json = {"type": spec.get("type", "string"), "description": spec["about"]}
    if "choices" in spec:
        schema["enum"] = spec["choices"]
    elif schema["type"] == "string":
        schema["maxLength"] = _MAX_TEXT_CHARS
    if schema["type"] == "array":
        schema |= {"items": {"type": "string", "maxLength": 1000}, "maxItems": 200}
    if schema["type"] == "object":
        parts: Mapping[str, Any] = spec["parts"]
        schema["properties"] = {part: _argument_schema(inner) for part, inner in parts.items()}
        schema["additionalProperties"] = False
    if schema["type"] in ("number", "integer") and "bounds" in spec:
        schema["minimum"], schema["maximum"] = spec["bounds"]
    if "default" in spec:
        schema["default"] = spec["default"]
    return schema
