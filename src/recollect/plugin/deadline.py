"""Does work until a moment and not a moment longer: a whole answer by then, or none.

The work is done in a child process that is killed at the limit, whatever it is busy with: a
thread cannot be ended, and a signal waits for whoever holds the interpreter. The store
survives being killed; what the child prints goes nowhere.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, NoReturn

MOST_BYTES = 1024 * 1024
_BEGUN = time.monotonic()
_ALONE_S = 1.0  # beyond its limit, for a child whose parent is not there to end it
_UNKNOWN_START_S = 0.06  # an interpreter takes about this long to get here


class Outcome(NamedTuple):
    """What the work answered; None where it did not come to an end, and then why."""

    answer: str | None
    why: str = ""


def process_age_s() -> float:
    """How long ago this process was started, the interpreter's own start included."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - pathlib takes longer
            fields = file.read().rpartition(b")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _BEGUN + _UNKNOWN_START_S


def at_work_s() -> float:
    """How long this process has been at it, the interpreter's own start left out."""
    return time.monotonic() - _BEGUN


def within(limit_s: float, work: Callable[[], str]) -> Outcome:
    """What the work answers if it is done in time."""
    deadline = time.monotonic() + limit_s
    if limit_s <= 0:
        return Outcome(None, "there was no time left")
    if not hasattr(os, "fork"):
        return _beside(limit_s, work)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing, limit_s + _ALONE_S)
    os.close(writing)
    answer = _received(reading, deadline)
    os.close(reading)
    if answer is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if answer is None:
        return Outcome(None, f"not done within {limit_s * 1000:.0f} ms")
    if status != 0:
        return Outcome(None, f"it ended with status {os.waitstatus_to_exitcode(status)}")
    return Outcome(answer.decode("utf-8", "replace"))


def read_input(deadline_s: float) -> bytes | None:
    """Standard input to its end; None where it is too long or does not end in time."""
    if sys.platform == "win32":
        return sys.stdin.buffer.read(MOST_BYTES)
    return _received(0, time.monotonic() + deadline_s)


def _work(work: Callable[[], str], writing: int, most_s: float) -> NoReturn:
    """In the child: the answer, whole, then the end. Nothing of the parent's is run."""
    code = 1
    try:
        # Where the host has killed the parent, the kernel ends the child all the same.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, most_s)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        left = memoryview(work().encode("utf-8", "replace"))
        while left:
            left = left[os.write(writing, left) :]
        code = 0
    finally:
        os._exit(code)


def _received(descriptor: int, deadline: float) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while (left_s := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left_s)[0]:
            return None
        part = os.read(descriptor, 65_536)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            return None
    return None


def _beside(limit_s: float, work: Callable[[], str]) -> Outcome:
    """Where processes cannot fork: on a thread, which the end of the process ends."""
    from threading import Thread  # start-up time: only where it is needed

    made: list[str] = []
    thread = Thread(target=lambda: made.append(work()), daemon=True)
    thread.start()
    thread.join(limit_s)
    return Outcome(made[0]) if made else Outcome(None, f"not done within {limit_s * 1000:.0f} ms")
