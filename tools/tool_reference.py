"""The page docs/tools.md: every argument of every tool, with its type and an example."""

from __future__ import annotations

import json
from typing import Any

from bethink.server.tools import TOOLS

_ID = "6gy4k2m7xq0v0001"
_INTRO = """# Tools and their arguments

Call these tools over [MCP](mcp.md), as [functions](cookbook/openai-tools.md) of an \
OpenAI-compatible API, or by the [routes](serve.md#routes) of the REST server: names, arguments \
and limits are the same. Arguments that are not marked as required may be left out. This page is \
written by `make reference` from the code.
"""
# A value for each argument; true for flags, the first choice where there are choices.
EXAMPLES: dict[str, Any] = {
    "anchors": ["src/app.py::main"],
    "as_of": "yesterday",
    "at": "2026-03-01",
    "audience": "private",
    "caption": "Release day",
    "confidence": 0.7,
    "cursor": "osfE6qEBAADacBW4AGlDBzpaHBTY",
    "entities": ["person:Ana"],
    "entity": "Ana",
    "episode_k": 5,
    "id": _ID,
    "ids": [_ID],
    "importance": 0.9,
    "intent": "make the start-up twice as fast",
    "intents": 5,
    "item": _ID,
    "k": 5,
    "key": "chat-17",
    "kind": "decision",
    "layer": "caveat",
    "limit": 10,
    "max_tokens": 800,
    "min_age_days": 30,
    "min_confidence": 0.5,
    "min_memories": 2,
    "min_relevance": 0.2,
    "occurred_at": "last Friday",
    "offset": 10,
    "other": _ID,
    "own_session": "chat-17",
    "path": "src/app.py",
    "prefix": "Ana",
    "profile": "remind",
    "query": "when do we ship?",
    "reason": "out of date",
    "relations": [{"relation": "part_of", "other": _ID}],
    "revision": 3,
    "run": "maintain-1",
    "scope": {"topic": "billing"},
    "session": "chat-17",
    "share": 0.1,
    "similarity": 0.95,
    "since": "last week",
    "source": "https://example.org/decisions",
    "speaker": "Priya",
    "tag": "release",
    "tags": ["release"],
    "text": "Releases go out on Thursdays",
    "token": "5f2c",
    "topic": "release",
    "turns_before": ["The staging server was moved"],
    "until": "2026-03-01",
    "user": "anna",
    "valid_to": "2026-12-31",
    "weight": 0.8,
    "window": 3,
}


def example(name: str, schema: dict[str, Any]) -> Any:
    """Return a value for an argument that its schema allows."""
    if "enum" in schema and EXAMPLES.get(name) not in schema["enum"]:
        return schema["enum"][0]
    return True if schema.get("type") == "boolean" else EXAMPLES.get(name)


def page() -> str:
    """Return the page, one table for each tool."""
    parts = [_INTRO]
    for name, tool in TOOLS.items():
        required = tool.input_schema.get("required", ())
        rows = [
            _row(argument, schema, "Required. " if argument in required else "")
            for argument, schema in tool.input_schema["properties"].items()
        ]
        table = ["| argument | type | for example | meaning |", "|---|---|---|---|", *rows]
        parts.append(f"## `{name}`\n\n{tool.description}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def _row(argument: str, schema: dict[str, Any], note: str) -> str:
    shown = json.dumps(example(argument, schema), ensure_ascii=False)
    meaning = f"{note}{schema.get('description', '')}{_limits(schema)}"
    return f"| `{argument}` | {_type(schema)} | `{shown}` | {meaning} |"


def _type(schema: dict[str, Any]) -> str:
    inner = schema.get("items", {}).get("type")
    return f"list of {inner}s" if inner else str(schema.get("type", "any"))


def _limits(schema: dict[str, Any]) -> str:
    if choices := schema.get("enum"):
        return " One of " + ", ".join(f"`{one}`" for one in choices) + "."
    if "minimum" in schema and "maximum" in schema:
        return f" {schema['minimum']} to {schema['maximum']}."
    return ""
