"""Spans of memory operations, by OpenTelemetry's conventions for generative AI.

The conventions are in development and the Python constants do not have these names yet,
so they stand here. Without a tracer provider nothing is recorded and nothing imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from recollect.jsonable import Json

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from recollect.mcp.calling import Asked

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
STORE = "gen_ai.memory.store.id"
RECORD = "gen_ai.memory.record.id"
COUNT = "gen_ai.memory.record.count"
QUERY = "gen_ai.memory.query.text"
RECORDS = "gen_ai.memory.records"
ERROR = "error.type"
# What people write may only be recorded where this says so.
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
def spanned(asked: Asked, space: str) -> Iterator[Callable[[Json], None]]:
    """A span around an operation on the memory, if somebody collects spans."""
    operation = OPERATIONS.get(asked.tool.name)
    tracer = _tracer() if operation is not None else None
    if operation is None or tracer is None:
        yield lambda _: None
        return
    given = {OPERATION: operation, PROVIDER: "recollect", STORE: space}
    # An error's words may be somebody's: its kind is recorded, not its text.
    with tracer.start_as_current_span(
        operation, attributes=given, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield lambda content: _note(span, asked, content)
        except Exception as error:
            _fail(span, error)
            raise


def _tracer() -> Tracer | None:
    """None where nobody has set a provider up: then there is nothing to pay for."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return None
    from opentelemetry import trace  # there, since a provider is

    return trace.get_tracer("recollect")


def _note(span: Span, asked: Asked, content: Json) -> None:
    if not span.is_recording():
        return
    span.set_attributes(_told(content))
    if os.environ.get(CONTENT_VARIABLE, "").lower() == "true":
        span.set_attributes(_content(asked.arguments, content))


def _told(content: Json) -> dict[str, str | int]:
    found = content.get("memories", content.get("results"))
    told: dict[str, str | int] = {}
    if isinstance(found, list):
        told[COUNT] = len(found)
    if isinstance(content.get("id"), str):
        told |= {RECORD: content["id"], COUNT: 1}
    return told


def _content(arguments: Mapping[str, Any], content: Json) -> dict[str, str]:
    told = {}
    if isinstance(arguments.get("query"), str):
        told[QUERY] = arguments["query"]
    found = content.get("memories")
    if isinstance(found, list):
        records = [{"id": one.get("id"), "content": one.get("text")} for one in found]
        told[RECORDS] = json.dumps(records, ensure_ascii=False)
    elif isinstance(arguments.get("text"), str):
        told[RECORDS] = json.dumps([{"content": arguments["text"]}], ensure_ascii=False)
    return told


def _fail(span: Span, error: Exception) -> None:
    from opentelemetry.trace import StatusCode  # there, since the span is

    span.set_attribute(ERROR, type(error).__name__)
    span.set_status(StatusCode.ERROR)
