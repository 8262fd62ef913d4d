"""Whatever a tool is rightly asked, its answer keeps the schema that it promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import BethinkError
from bethink.render.wire import dumps
from bethink.server.tools import TOOLS
from bethink.server.tools.tool import Call, validate_arguments
from bethink.testing import FixedClock
from corpus import CONVERSATION, NOTES, NOW
from rows import each_row
from thorough import examples

WORDS = (
    "deploy key", "Priya", "SQLite", "when?", "2026-05-07", "last week", "yesterday", "default",
    "remind", "decision", "fact", "caveat", "app.py", "notes.txt", "", " ", "x" * 90,
)  # fmt: skip


def values(schema: dict[str, Any], ids: list[str]) -> st.SearchStrategy[Any]:
    """What a schema allows, most of it likely to be known."""
    kind = schema["type"]
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if kind == "string":
        return st.sampled_from([*WORDS, *ids]) | st.text(max_size=20)
    if kind == "integer":
        most = min(schema["maximum"], schema["minimum"] + 200)
        return st.integers(schema["minimum"], most)
    if kind == "number":
        return st.floats(schema["minimum"], schema["maximum"])
    if kind == "boolean":
        return st.booleans()
    return st.lists(st.sampled_from([*WORDS, *ids]), max_size=3)


def arguments(tool: str, ids: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of a tool: those it needs, and some of the others."""
    takes = TOOLS[tool].input_schema
    each = {name: values(part, ids) for name, part in takes["properties"].items()}
    needed = takes.get("required", [])
    return st.fixed_dictionaries(
        {name: each[name] for name in needed},
        optional={name: part for name, part in each.items() if name not in needed},
    )


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Notes, a conversation, files and threads, by words alone."""
    project: Path = tmp_path_factory.mktemp("project")
    (project / "notes.txt").write_text("a note\n")
    (project / "app.py").write_text("def run():\n    return 1\n")
    with Memory.open(
        ":memory:", embedder="none", clock=FixedClock(NOW), settings=Settings(project=project)
    ) as opened:
        stored = opened.remember_many([*NOTES, *CONVERSATION])
        opened.put_thread("Keys and where they live", [one.id for one in stored[:5]])
        opened.note_edits([{"path": "app.py", "operation": "edit", "intent": "faster"}])
        yield opened


@each_row("tool", TOOLS)
@settings(
    max_examples=examples(20, 40), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=st.data())
def test_an_answer_keeps_its_schema(memory: Memory, tool: str, drawn: st.DataObject) -> None:
    """As structured content and as text; a host that draws is told what JSON can hold."""
    ids = [item.id for item in memory.browse(limit=5)]
    told = drawn.draw(arguments(tool, ids))
    one = TOOLS[tool]

    try:
        reply = one(Call(memory, validate_arguments(told, one.input_schema), supports_views=True))
    except BethinkError:
        return  # what a refusal says is tested with hostile strings

    Draft202012Validator(one.output_schema).validate(reply.content)
    dumps([reply.content, reply.meta]).encode("utf-8")
    assert reply.text.strip()
