"""Standard input and output as the protocol's own: one message a line, and nothing else.

The descriptors are moved out of everybody's reach: what a dependency prints goes to
standard error, and what it reads is empty.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import BinaryIO, NamedTuple

from recollect.jsonable import Json
from recollect.mcp.front import Front

LINGER_S = 1.5  # how long calls may go on after the end of input


class Pipe(NamedTuple):
    """Where messages come from, and where they go."""

    come: BinaryIO
    go: BinaryIO


def take_over() -> Pipe:
    """Takes descriptors 0 and 1 for the protocol and leaves harmless ones in their place."""
    sys.stdout.flush()
    come, go = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Pipe(os.fdopen(come, "rb"), os.fdopen(go, "wb"))


class Lines:
    """The two directions of one conversation: answered in front, or handed to the library."""

    def __init__(self, pipe: Pipe, front: Front, leave: Callable[[int], None] = os._exit) -> None:
        self._pipe, self._front, self._leave = pipe, front, leave
        self._waiting: SimpleQueue[bytes] = SimpleQueue()
        self._taken_over = Event()
        self._over = Event()
        self._lock = Lock()
        self._answered: set[int | str] = set()

    def begin(self) -> None:
        """Reads from now on, in a thread of its own."""
        Thread(target=self._read, name="recollect-lines", daemon=True).start()

    def end(self) -> None:
        """Says that everything is done and the process may end by itself."""
        self._over.set()

    def _read(self) -> None:
        for line in self._pipe.come:
            if not line.strip():
                continue
            reply = None if self._taken_over.is_set() else self._front.reply(line)
            if reply is None:
                self._waiting.put(line)
                continue
            if reply["id"] == self._front.opening:
                self._answered.add(reply["id"])
                self._waiting.put(line)
            self._send(json.dumps(reply, ensure_ascii=False, separators=(",", ":")) + "\n")
        self._waiting.put(b"")
        # A call that does not end must not keep the process: what it had to write is safe.
        if not self._over.wait(LINGER_S):
            self._leave(0)

    def read(self) -> str:
        """The next line for the library, empty at the end."""
        self._taken_over.set()
        return self._waiting.get().decode("utf-8", "replace")

    def write(self, line: str) -> None:
        """One whole message of the library's; its greeting after ours is dropped."""
        if not (self._answered and self._is_repeated(line)):
            self._send(line)

    def _send(self, line: str) -> None:
        with self._lock:
            try:
                self._pipe.go.write(line.encode("utf-8", "backslashreplace"))
                self._pipe.go.flush()
            except BrokenPipeError:
                self._leave(0)  # nobody listens any more

    def _is_repeated(self, line: str) -> bool:
        told: Json = json.loads(line)
        if told.get("id") not in self._answered or "method" in told:
            return False
        self._answered.discard(told["id"])
        if "error" in told and self._front.greeted:
            sys.stderr.write(f"recollect mcp: the client's greeting was refused: {line}")
            self._leave(1)
        return True


class Inlet(io.TextIOWrapper):
    """The library's side of what comes in."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(io.BytesIO())
        self._lines = lines

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        return self._lines.read()


class Outlet(io.TextIOWrapper):
    """The library's side of what goes out."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(io.BytesIO())
        self._lines = lines

    def write(self, text: str, /) -> int:
        self._lines.write(text)
        return len(text)
