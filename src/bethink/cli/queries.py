"""Questions of the command line: answered by a worker or, without one, in this process.

Where a worker answers, this process prints what the worker wrote, and loads no more than
that needs. Both find and write the answer by the same functions.
"""

from __future__ import annotations

import os
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING

from bethink.cli import process
from bethink.cli.app import App
from bethink.cli.output import Printer, dim
from bethink.core.json_values import Json
from bethink.worker import should_start_worker
from bethink.worker.query import QueryRequest

if TYPE_CHECKING:
    from bethink.memory import Memory

# Each takes the app, the memory, the question and how to show its answer, prints the answer
# and returns the exit code.
_ANSWERS = {
    "recall": "bethink.cli.answers:answer_recall",
    "why-not": "bethink.cli.recall:answer_why_not",
    "compare": "bethink.cli.recall:answer_comparison",
}


def run_query(app: App, kind: str, request: QueryRequest, **shown: object) -> int:
    """Find and print the answer to a question; return the exit code."""
    request = request._replace(id=os.urandom(8).hex())
    reply = _ask_worker(app, kind, request, shown)
    if reply is not None:
        app.out.raw(reply["text"])
        return int(reply["code"])
    from bethink.core.blas import load_numpy  # not where a worker answers

    load_numpy(keep_memory=process.runs_one_command)
    with app.open() as memory:
        return _find_answer(app, memory, kind, request, shown)


def _find_answer(app: App, memory: Memory, kind: str, request: QueryRequest, shown: Json) -> int:
    module, _, name = _ANSWERS[kind].partition(":")
    code: int = getattr(import_module(module), name)(app, memory, request, **shown)
    return code


def _ask_worker(app: App, kind: str, request: QueryRequest, shown: Json) -> Json | None:
    """Return what a worker wrote; None where this process must find the answer."""
    # Without the space a worker would create it.
    if not app.check_space() or app.settings.worker == "off":
        return None
    from bethink.worker.files import worker_paths  # not needed for help

    def note(message: str) -> None:
        if app.verbose:
            app.err.line(dim(f"{message}; using this process instead"))

    place = worker_paths()

    reranker = request.options.get("reranker")
    starts = should_start_worker(app.settings, reranker=reranker)
    if not (starts or place.is_open):
        note("no worker is running")
        return None
    from bethink.worker.client import request_worker, resolve_reranker_folder

    settings = app.settings
    if reranker is not None:
        named = resolve_reranker_folder(reranker)
        request = request._replace(options={**request.options, "reranker": named})
        settings = settings.changed(reranker=named)

    out = app.out
    terminal = out.width if out.terminal else 0
    style = {"json": app.json, "quiet": app.quiet, "columns": terminal, "color": out.color}
    payload = {"query": request.to_json(), "shown": shown, "style": style}
    reply = request_worker(kind, payload, settings=settings, start=starts, note=note, place=place)
    return reply if isinstance(reply, dict) else None


class _CallersApp(App):
    """The app of a caller, as the worker knows it: what it prints is collected."""

    def __init__(self, style: Json) -> None:
        super().__init__(json=style["json"])
        self.quiet = style["quiet"]
        self.written = StringIO()
        columns = style["columns"]
        self._out = Printer(self.written, columns > 0, style["color"], columns)

    @property
    def out(self) -> Printer:
        return self._out


def answer_for_caller(memory: Memory, kind: str, payload: Json) -> Json:
    """Answer a caller's question in the worker: the text to print, and the exit code."""
    app, request = _CallersApp(payload["style"]), QueryRequest.from_json(payload["query"])
    code = _find_answer(app, memory, kind, request, payload["shown"])
    return {"text": app.written.getvalue(), "code": code}
