"""Spans of memory operations: which, with what, and never with a word of a memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bethink import Memory
from bethink.server.rest.routes import TOOL_ROUTES
from bethink.server.telemetry import CONTENT_VARIABLE, OPERATIONS
from bethink.server.tools import TOOLS
from rows import each_row
from server_app import Callers, make_guard, make_test_app, mcp, talk

HERON = "The staging database is called heron"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What is recorded meanwhile. A process has one provider, from the first test on."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    provider = trace.get_tracer_provider()
    assert isinstance(provider, TracerProvider)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.shutdown()


def ours(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    found = exporter.get_finished_spans()
    return [
        one
        for one in found
        if one.instrumentation_scope and one.instrumentation_scope.name == "bethink"
    ]


async def use(client: httpx.AsyncClient) -> None:
    """A memory stored, asked for, corrected and forgotten, by REST; then asked for by MCP."""
    item = (await client.post("/v1/memories", json={"text": HERON})).json()["id"]
    await client.get("/v1/recall", params={"q": "heron"})
    await client.patch(f"/v1/memories/{item}", json={"topic": "databases"})
    await client.post("/v1/forget", json={"ids": [item]})
    await client.post("/v1/forget", json={"ids": ["nothing-like-heron"]})
    await client.get("/v1/stats")
    asked = {"name": "recall", "arguments": {"query": "heron"}}
    await mcp(client, "tools/call", asked, {})


def test_operations_have_the_conventions_names(
    memory: Memory, tmp_path: Path, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the space, the memory and the count; an error by its kind; no content."""
    monkeypatch.delenv(CONTENT_VARIABLE, raising=False)

    talk(make_test_app(memory, make_guard(Callers(tmp_path))), use)

    found = ours(spans)
    assert [one.name for one in found] == [
        "create_memory", "search_memory", "update_memory", "delete_memory", "delete_memory",
        "search_memory",
    ]  # fmt: skip
    for one in found:
        assert one.attributes is not None
        assert one.attributes["gen_ai.operation.name"] == one.name
        assert one.attributes["gen_ai.memory.store.id"] == "memory"
    told: Any = [one.attributes for one in found]
    assert told[0]["gen_ai.memory.record.id"]
    assert told[1]["gen_ai.memory.record.count"] == 1
    assert told[4]["error.type"] == "NotFound"
    everything = "".join(one.to_json() for one in spans.get_finished_spans())
    assert "heron" not in everything.lower()


def test_content_is_recorded_where_it_is_asked_for(
    memory: Memory, tmp_path: Path, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the conventions' own variable, and by no other way."""
    monkeypatch.setenv(CONTENT_VARIABLE, "true")

    talk(make_test_app(memory, make_guard(Callers(tmp_path))), use)

    stored, asked, *_ = [one.attributes or {} for one in ours(spans)]
    assert json.loads(str(stored["gen_ai.memory.records"])) == [{"content": HERON}]
    assert asked["gen_ai.memory.query.text"] == "heron"
    assert json.loads(str(asked["gen_ai.memory.records"]))[0]["content"] == HERON


def test_every_operation_of_the_table_is_one() -> None:
    """A tool that is renamed is renamed there, too."""
    known = {*TOOLS, *(way.tool.name for way in TOOL_ROUTES)}

    assert OPERATIONS.keys() <= known
    assert set(OPERATIONS.values()) == {
        "search_memory", "create_memory", "update_memory", "delete_memory"
    }  # fmt: skip


PLAIN = """
import sys
from bethink import Memory
from bethink.server.tools.calls import ToolExecutor, ToolRequest
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.tools import TOOLS
from bethink.server.telemetry import start_tracing
from bethink.config.settings import Settings
from pathlib import Path

start_tracing(print)
calling = ToolExecutor(MemoryLoader(Settings(space="x", data_dir=Path(sys.argv[1]), embedder="none")))
calling.loader.start()
calling(ToolRequest(TOOLS["remember"], {"text": "Releases are cut on Tuesdays"}))
calling.loader.close()
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


@each_row(
    ("variables", "said"),
    [
        ({}, "[]"),
        ({"OTEL_TRACES_EXPORTER": "none"}, "[]"),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}, "[]"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "not otlp, console or none"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "create_memory"),
    ],
)
def test_spans_cost_nothing_unless_somebody_wants_them(
    tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    """Nothing is even imported; where they are wanted they come out."""
    ran = subprocess.run(
        [sys.executable, "-c", PLAIN, tmp_path], env=variables, capture_output=True, text=True,
        check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert said in ran.stdout + ran.stderr
    assert "Tuesdays" not in ran.stdout + ran.stderr
