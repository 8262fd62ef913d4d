"""Standard input and output reserved for MCP messages, one a line; parent watchdog.

The descriptors 0 and 1 are moved away: what a dependency prints goes to standard error, and
what it reads is empty. The process exits when its parent is gone, even if the pipe is still
held open.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import sleep
from typing import BinaryIO, NamedTuple

from bethink.core.json_values import Json
from bethink.server.mcp.early_handshake import EarlyHandshake

POLL_INTERVAL_S = 1.0


def watch_parent(
    exit_process: Callable[[int], None] = os._exit,
    *,
    get_parent: Callable[[], int] = os.getppid,
    interval_s: float = POLL_INTERVAL_S,
) -> Thread:
    """Start a thread that exits the process once its parent has changed."""
    parent = get_parent()

    def watch() -> None:
        while get_parent() == parent:
            sleep(interval_s)
        exit_process(0)

    thread = Thread(target=watch, name="bethink-parent", daemon=True)
    thread.start()
    return thread


LINGER_S = 1.5  # grace period for running calls after the end of input


class Pipe(NamedTuple):
    """The streams that MCP messages are read from and written to."""

    reader: BinaryIO
    writer: BinaryIO


def take_over_stdio() -> Pipe:
    """Move descriptors 0 and 1 away for MCP and leave harmless ones in their place."""
    sys.stdout.flush()
    come, go = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Pipe(os.fdopen(come, "rb"), os.fdopen(go, "wb"))


class StdioBridge:
    """Both directions of one conversation: lines are answered early or queued for the library."""

    def __init__(
        self, pipe: Pipe, handshake: EarlyHandshake, exit_process: Callable[[int], None] = os._exit
    ) -> None:
        self._pipe, self._handshake, self._exit_process = pipe, handshake, exit_process
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._taken_over = Event()
        self._finished = Event()
        self._lock = Lock()
        self._answered: set[int | str] = set()

    def start(self) -> None:
        """Start reading in a thread."""
        Thread(target=self._read_loop, name="bethink-lines", daemon=True).start()

    def finish(self) -> None:
        """Signal that everything is done and the process may exit by itself."""
        self._finished.set()

    def _read_loop(self) -> None:
        for line in self._pipe.reader:
            if not line.strip():
                continue
            reply = None if self._taken_over.is_set() else self._handshake.reply(line)
            if reply is None:
                self._queue.put(line)
                continue
            if reply["id"] == self._handshake.first_request_id:
                self._answered.add(reply["id"])
                self._queue.put(line)
            self._send(json.dumps(reply, ensure_ascii=False, separators=(",", ":")) + "\n")
        self._queue.put(b"")
        # A call that does not end must not keep the process alive: its writes are durable.
        if not self._finished.wait(LINGER_S):
            self._exit_process(0)

    def read(self) -> str:
        """Return the next line for the library; empty at the end of input."""
        self._taken_over.set()
        return self._queue.get().decode("utf-8", "replace")

    def write(self, line: str) -> None:
        """Write one message of the library, dropping its duplicate handshake answer."""
        if not (self._answered and self._is_duplicate_reply(line)):
            self._send(line)

    def _send(self, line: str) -> None:
        with self._lock:
            try:
                self._pipe.writer.write(line.encode("utf-8", "backslashreplace"))
                self._pipe.writer.flush()
            except BrokenPipeError:
                self._exit_process(0)  # the client is gone

    def _is_duplicate_reply(self, line: str) -> bool:
        message: Json = json.loads(line)
        if message.get("id") not in self._answered or "method" in message:
            return False
        self._answered.discard(message["id"])
        if "error" in message and self._handshake.is_initialized:
            sys.stderr.write(f"bethink mcp: the client's initialize request was refused: {line}")
            self._exit_process(1)
        return True


class BridgeInput(io.TextIOWrapper):
    """Text stream from which the library reads its input."""

    def __init__(self, bridge: StdioBridge) -> None:
        super().__init__(io.BytesIO())
        self._lines = bridge

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        return self._lines.read()


class BridgeOutput(io.TextIOWrapper):
    """Text stream to which the library writes its output."""

    def __init__(self, bridge: StdioBridge) -> None:
        super().__init__(io.BytesIO())
        self._lines = bridge

    def write(self, text: str, /) -> int:
        self._lines.write(text)
        return len(text)
