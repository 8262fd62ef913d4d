"""A worker's log: what it did and when, never of what; bounded in size."""

from __future__ import annotations

import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

MOST = 256 * 1024  # bytes; the log before is kept once


class Log:
    """Lines in a file of the user's own, or on a stream for who watches. A ``quiet`` one
    says nothing where its file cannot be written."""

    def __init__(
        self, path: Path | None, *, stream: TextIO | None = None, quiet: bool = False
    ) -> None:
        self._path = path
        self._stream = stream
        self._quiet = quiet
        self._turn = threading.Lock()

    def __call__(self, told: str) -> None:
        """Adds a line. A log that cannot be written is no reason to fail."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = f"{now} {os.getpid()} {' '.join(told.split())}\n"
        with self._turn:
            if self._stream is not None:
                self._stream.write(line)
                self._stream.flush()
            if self._path is not None:
                self._append(self._path, line.encode("utf-8", "backslashreplace"))

    def _append(self, path: Path, line: bytes) -> None:
        try:
            if path.exists() and path.stat().st_size + len(line) > MOST:
                path.replace(path.with_suffix(".log.1"))
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            if self._stream is None and not self._quiet and sys.stderr is not None:
                sys.stderr.write(f"{path}: {error.strerror}\n")
