"""Counts the round trips to a PostgreSQL server that a caller waits for, message by message.

The driver's library writes down what it sends. One answer is waited for after each ``Sync`` and
each simple ``Query``. The end of a transaction that only reads is sent by another thread, which
nobody waits for; it is left out.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.store.postgres import server

if TYPE_CHECKING:
    import pytest


class RoundTrips:
    """The messages of all connections that were opened since it was made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[int] = []
        self._read: Counter[Path] = Counter()
        self._found = 0

    def watch(self, connection: server.Connection) -> None:
        """Write down what a new connection sends."""
        name = self._folder / str(len(self._files))
        self._files.append(os.open(name, os.O_CREAT | os.O_WRONLY))
        connection.pgconn.trace(self._files[-1])

    def count(self) -> int:
        """Return how many answers were waited for so far."""
        for name in self._folder.iterdir():
            with name.open("rb") as file:
                file.seek(self._read[name])
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._read[name] += len(whole)
            for line in whole.decode(errors="replace").splitlines():
                parts = line.split("\t")
                if "F" in parts[:2] and ("Sync" in parts or ("Query" in parts)):
                    self._found += "COMMIT" not in line
        return self._found

    def of(self, work: Callable[[], object]) -> int:
        """Return how many answers are waited for while something is done."""
        before = self.count()
        work()
        return self.count() - before

    def close(self) -> None:
        """Stop writing."""
        for file in self._files:
            os.close(file)


@contextmanager
def round_trips(monkeypatch: pytest.MonkeyPatch) -> Iterator[RoundTrips]:
    """Count from now on, in connections that are opened from now on."""
    with tempfile.TemporaryDirectory() as folder:
        counted = RoundTrips(Path(folder))
        configure = server.configure

        def watched(connection: server.Connection) -> None:
            configure(connection)
            counted.watch(connection)

        monkeypatch.setattr(server, "configure", watched)
        try:
            yield counted
        finally:
            counted.close()
