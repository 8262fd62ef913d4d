"""A place for a worker of a test's own, and what a process table says of it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bethink.config.settings import Settings
from bethink.core.json_values import Json
from bethink.worker.client import (
    control_worker,
    enqueue_job,
    ensure_worker,
    request_worker,
    stop_worker,
)
from bethink.worker.files import WorkerPaths, is_locked, lock_holder

PATIENCE_S = 60.0


class Desk:
    """One user's folders, the settings of a space in them, and the worker that may be there."""

    def __init__(self, folder: Path) -> None:
        # Short, for a socket's path has room for a hundred characters.
        self.runtime = Path(tempfile.mkdtemp(prefix="rw-"))
        self.place = WorkerPaths(self.runtime / "bethink", folder / "state", "test")
        self.settings = Settings(
            space="here", data_dir=folder / "data", embedder="none", worker="on", worker_idle=60
        )

    def make_request(self, kind: str, payload: Json, **more: object) -> object:
        given = {"settings": self.settings, "place": self.place} | more
        return request_worker(kind, payload, **given)

    def hand_over(self, kind: str, payload: Json) -> bool:
        return enqueue_job(kind, payload, settings=self.settings, place=self.place)

    def start(self) -> int:
        """A worker's process id."""
        found = ensure_worker(self.settings, self.place)
        assert found is not None
        return int(found["pid"])

    def status(self) -> Json | None:
        return control_worker("status", self.place)

    def is_alive(self) -> bool:
        return is_locked(self.place.lock)

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        # The next one may have been waiting for the lock.
        until(lambda: lock_holder(self.place.lock) != pid)

    def close(self) -> None:
        stop_worker(self.place)
        shutil.rmtree(self.runtime, ignore_errors=True)


@pytest.fixture
def desk(tmp_path):
    """Folders of a user's own; a worker in them ends with the test."""
    made = Desk(tmp_path)
    yield made
    made.close()


def until(holds: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Waits for something to become true."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)
