"""Questions as the command line sends them to a worker, and answered here."""

from __future__ import annotations

from typing import Any

from bethink import Memory
from bethink.cli.queries import answer_for_caller
from bethink.core.json_values import Json
from bethink.worker.query import QueryRequest

STYLE = {"json": True, "quiet": False, "columns": 0, "color": False}


def asked(text: str, *given: Any, style: Json | None = None, **shown: Any) -> Json:
    """The payload of a question; ``given`` are the other fields of a request."""
    request = QueryRequest(text, *given)
    return {"query": request.to_json(), "shown": shown, "style": STYLE | (style or {})}


def answered_here(memory: Memory, kind: str, payload: Json) -> Json:
    """What this process would print, and its exit code."""
    return answer_for_caller(memory, kind, payload)
