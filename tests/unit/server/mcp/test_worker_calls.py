"""A server asks the worker, and does without where there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event

import pytest

from bethink.config.settings import Settings
from bethink.errors import BadProfile, MissingExtra, ModelError, NotFound, Refused, StoreBusy
from bethink.server.mcp.worker_calls import WorkerCalls, call_for_server, call_json
from bethink.server.tools import TOOLS
from bethink.worker import client

CALL = call_json(TOOLS["recall"], {}, "test", supports_views=False)


def test_without_a_worker_the_server_opens_the_memory_and_starts_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where processes cannot be started each attempt would cost every read the same time."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delitem(sys.modules, "opentelemetry.sdk.trace", raising=False)
    starts: list[object] = []

    def refuse(*given: object, **_: object) -> bool:
        starts.append(given)
        return False

    monkeypatch.setattr(client, "start_worker", refuse)
    calls, opened = WorkerCalls(Settings(data_dir=tmp_path)), Event()
    calls.start(otherwise=opened.set)

    assert opened.wait(60)
    assert calls.answer(CALL, 1.0) is None
    assert len(starts) == 1


def test_an_error_of_the_workers_own_is_not_the_answer() -> None:
    """A model that it cannot load, a part that it does not know: the server may do better."""

    class Failing:
        settings = Settings()

        def below(self, _: int) -> None:
            raise self.error

    failing = Failing()
    for error in (MissingExtra("x", extra="x"), BadProfile("x"), ModelError("x"), StoreBusy("x")):
        failing.error = error
        with pytest.raises(type(error)):
            call_for_server(failing, CALL)
    for told in (NotFound("there is none"), Refused("it is too long")):
        failing.error = told
        assert call_for_server(failing, CALL)["error"][2] == type(told).__name__


def test_one_that_is_off_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "request_worker", lambda *_, **__: pytest.fail("it was asked"))
    calls, opened = WorkerCalls(Settings(worker="off")), Event()
    calls.start(otherwise=opened.set)

    assert opened.is_set()
    assert calls.answer(CALL, 1.0) is None
