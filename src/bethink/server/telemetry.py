"""OpenTelemetry tracing of memory operations, by the conventions for generative AI.

The conventions are in development and the Python constants do not have these names yet, so
they are defined here. Without a tracer provider nothing is recorded and nothing imported.
The standard OTEL_* variables configure the export.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from bethink.core.json_values import Json
from bethink.errors import install_command
from bethink.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
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


_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_OTLP = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_EXPORTER = "OTEL_TRACES_EXPORTER"


def start_tracing(note: Callable[[str], None], env: Mapping[str, str] = os.environ) -> None:
    """Set up a tracer provider if the environment requests one and none is set.

    A missing package is reported; it does not keep a server from starting.
    """
    exporter_name = env.get(_EXPORTER) or (
        "otlp" if any(env.get(name) for name in _ENDPOINTS) else "none"
    )
    if exporter_name == "none" or env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        note(f"spans are not sent: {install_command('otel')}")
        return
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return  # set up by the environment, for example by opentelemetry-instrument
    exporter = _exporter(exporter_name, note)
    if exporter is not None:
        about = {"service.name": "bethink", "service.version": __version__}
        provider = TracerProvider(resource=Resource.create(about))
        provider.add_span_processor(BatchSpanProcessor(exporter))
        trace.set_tracer_provider(provider)


def _exporter(name: str, note: Callable[[str], None]) -> SpanExporter | None:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    if name != "otlp":
        note(f"spans are not sent: {_EXPORTER} is {name!r:.40}, not otlp, console or none")
        return None
    try:
        found = import_module(_OTLP)
    except ModuleNotFoundError:
        note("spans are not sent: pip install opentelemetry-exporter-otlp-proto-http")
        return None
    exporter: SpanExporter = found.OTLPSpanExporter()
    return exporter
