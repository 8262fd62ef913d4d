"""Sends spans where the environment says, if it says so: OpenTelemetry's own variables."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_OTLP = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_EXPORTER = "OTEL_TRACES_EXPORTER"


def begin_tracing(note: Callable[[str], None], env: Mapping[str, str] = os.environ) -> None:
    """Sets a provider up, once, where one is asked for and none is set.

    What is missing for that is said; it keeps no server from starting.
    """
    wanted = env.get(_EXPORTER) or ("otlp" if any(env.get(name) for name in _ENDPOINTS) else "none")
    if wanted == "none" or env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        note("spans are not sent: pip install 'recollect[otel]'")
        return
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return  # somebody's own, for example opentelemetry-instrument's
    exporter = _exporter(wanted, note)
    if exporter is not None:
        provider = TracerProvider(resource=_resource())
        provider.add_span_processor(BatchSpanProcessor(exporter))
        trace.set_tracer_provider(provider)


def _resource() -> Resource:
    from opentelemetry.sdk.resources import Resource as Made

    from recollect.version import __version__

    return Made.create({"service.name": "recollect", "service.version": __version__})


def _exporter(wanted: str, note: Callable[[str], None]) -> SpanExporter | None:
    if wanted == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    if wanted != "otlp":
        note(f"spans are not sent: {_EXPORTER} is {wanted!r:.40}, not otlp, console or none")
        return None
    try:
        found = import_module(_OTLP)
    except ModuleNotFoundError:
        note("spans are not sent: pip install opentelemetry-exporter-otlp-proto-http")
        return None
    exporter: SpanExporter = found.OTLPSpanExporter()
    return exporter
