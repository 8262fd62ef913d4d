"""OpenTelemetry tracing of memory operations, by the conventions for generative AI.

The conventions are in development and the Python constants do not have these names yet, so
they are defined here. Without a tracer provider, such as opentelemetry-instrument sets up,
nothing is recorded and nothing imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bethink.core.json_values import Json

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from bethink.server.tools.calls import ToolRequest


OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
STORE = "gen_ai.memory.store.id"
RECORD = "gen_ai.memory.record.id"
COUNT = "gen_ai.memory.record.count"
QUERY = "gen_ai.memory.query.text"
RECORDS = "gen_ai.memory.records"
ERROR = "error.type"
# Stored texts and questions are recorded only if this variable allows it.
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

OPERATIONS: Mapping[str, str] = {
    "recall": "search_memory",
    "explain": "search_memory",
    "list_memories": "search_memory",
    "remember": "create_memory",
    "remember_many": "create_memory",
    "update_memory": "update_memory",
    "restore": "update_memory",
    "undo": "update_memory",
    "consolidate": "update_memory",
    "forget": "delete_memory",
}


@contextmanager
def trace_call(request: ToolRequest, space: str) -> Iterator[Callable[[Json], None]]:
    """Record a span around a memory operation if a tracer provider is set up."""
    operation = OPERATIONS.get(request.tool.operation or request.tool.name)
    tracer = _tracer() if operation is not None else None
    if operation is None or tracer is None:
        yield lambda _: None
        return
    given = {OPERATION: operation, PROVIDER: "bethink", STORE: space}
    # An error's message may contain stored text: only its type is recorded.
    with tracer.start_as_current_span(
        operation, attributes=given, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield lambda content: _record_result(span, request, content)
        except Exception as error:
            _record_error(span, error)
            raise


def _tracer() -> Tracer | None:
    """Return the tracer; None without a tracer provider, at no cost."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return None
    from opentelemetry import trace  # there, since a provider is

    return trace.get_tracer("bethink")


def _record_result(span: Span, request: ToolRequest, content: Json) -> None:
    if not span.is_recording():
        return
    span.set_attributes(_result_attributes(content))
    if os.environ.get(CONTENT_VARIABLE, "").lower() == "true":
        span.set_attributes(_content_attributes(request.arguments, content))


def _result_attributes(content: Json) -> dict[str, str | int]:
    found = content.get("memories", content.get("results"))
    attributes: dict[str, str | int] = {}
    if isinstance(found, list):
        attributes[COUNT] = len(found)
    if isinstance(content.get("id"), str):
        attributes |= {RECORD: content["id"], COUNT: 1}
    return attributes


def _content_attributes(arguments: Mapping[str, object], content: Json) -> dict[str, str]:
    attributes = {}
    query = arguments.get("query")
    if isinstance(query, str):
        attributes[QUERY] = query
    found = content.get("memories")
    if isinstance(found, list):
        records = [{"id": entry.get("id"), "content": entry.get("text")} for entry in found]
        attributes[RECORDS] = json.dumps(records, ensure_ascii=False)
    elif isinstance(arguments.get("text"), str):
        attributes[RECORDS] = json.dumps([{"content": arguments["text"]}], ensure_ascii=False)
    return attributes


def _record_error(span: Span, error: Exception) -> None:
    from opentelemetry.trace import StatusCode  # there, since the span is

    span.set_attribute(ERROR, type(error).__name__)
    span.set_status(StatusCode.ERROR)
