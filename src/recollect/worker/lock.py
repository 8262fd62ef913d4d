"""The lock by which there is one worker: the kernel's, so that it dies with its holder."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

_LOOK_EVERY_S = 0.01

if sys.platform == "win32":
    import msvcrt

    def _try(handle: int) -> bool:
        try:
            # Far behind the content, so that others can read that.
            os.lseek(handle, 1 << 20, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def take(path: Path, *, wait_s: float = 0.0) -> int | None:
    """A handle that holds the lock until it is closed; None where another has it.

    The file stays for ever: one that came and went could be locked twice.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + wait_s
    try:
        while not _try(handle):
            if time.monotonic() >= deadline:
                os.close(handle)
                return None
            time.sleep(_LOOK_EVERY_S)
    except OSError:
        os.close(handle)
        raise
    return handle


def sign(handle: int) -> None:
    """Writes down who holds the lock."""
    os.lseek(handle, 0, os.SEEK_SET)
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())


def is_held(path: Path) -> bool:
    """Whether anybody holds the lock now."""
    if not path.exists():
        return False
    handle = take(path)
    if handle is None:
        return True
    os.close(handle)
    return False


def holder(path: Path) -> int | None:
    """The process that holds the lock, if it has signed."""
    try:
        told = path.read_bytes()[:16]
    except OSError:
        return None
    return int(told) if told.isdigit() and is_held(path) else None
