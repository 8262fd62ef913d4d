"""The write lock: one writer at a time, among all threads and all processes.

SQLite's own waiting polls and is unfair: with sixteen writers somebody waits many
seconds. The kernel queues those who wait for a file lock, and lets go of the lock of
a process that dies. The lock is on a file of its own, since closing any handle of the
database file would drop the locks that SQLite holds there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from recollect.errors import StoreBusy, StoreError
from recollect.store.sqlite.files import open_private

TIMEOUT_S = 30.0


class WriteLock(Protocol):
    """Held around every transaction that writes, every checkpoint and the last close."""

    def acquire(self, timeout_s: float) -> bool:
        """Whether the lock was got in time."""
        ...

    def release(self) -> None: ...


@contextmanager
def holding(lock: WriteLock, name: str, timeout_s: float = TIMEOUT_S) -> Iterator[None]:
    """The lock, or StoreBusy when it was not to be had in time."""
    if not lock.acquire(timeout_s):
        raise StoreBusy(
            f"{name} was being written by others for {timeout_s:.0f} seconds",
            remedy="try again, or stop the other program",
        )
    try:
        yield
    finally:
        lock.release()


class ThreadLock:
    """The lock of a space in memory: there are no other processes. The thread that
    holds it may take it again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def acquire(self, timeout_s: float) -> bool:
        return self._lock.acquire(timeout=timeout_s)

    def release(self) -> None:
        self._lock.release()


class FileLock:
    """The lock of a space in a file, kept on a side file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._handle = -1

    def acquire(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        if not self._turn.acquire(timeout=timeout_s):
            return False
        try:
            handle = self._lock_file(deadline)
        except BaseException:
            self._turn.release()
            raise
        if handle is None:
            self._turn.release()
            return False
        self._handle = handle
        return True

    def release(self) -> None:
        handle, self._handle = self._handle, -1
        # Closing the only handle of this opening of the file unlocks it.
        os.close(handle)
        self._turn.release()

    def _lock_file(self, deadline: float) -> int | None:
        # A new opening each time: a wait that was given up must not end up sharing
        # the lock of a later one.
        handle = open_private(self._path)
        try:
            if _try_lock(handle):
                return handle
            got = _wait_for_lock(handle, deadline - time.monotonic())
        except OSError as error:
            os.close(handle)
            raise StoreError(
                f"{self._path} cannot be locked: {error.strerror}",
                remedy="keep spaces on a disk that knows file locks",
            ) from error
        return handle if got else None


if sys.platform == "win32":
    import msvcrt

    _PAUSE_S = 0.005

    def _try_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_for_lock(handle: int, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            if _try_lock(handle):
                return True
        os.close(handle)
        return False

else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_for_lock(handle: int, timeout_s: float) -> bool:
        if timeout_s <= 0:
            os.close(handle)
            return False
        wait = _Wait(handle)
        threading.Thread(target=wait.stand_in_line, name="recollect-lock", daemon=True).start()
        try:
            return wait.finish(timeout_s)
        except BaseException:
            if wait.give_up():
                os.close(handle)
            raise

    class _Wait:
        """A place in the kernel's queue, taken by a thread that may be left behind.

        There is no way to wait for a file lock with a time limit, so a thread
        waits without one. Whoever comes second, the lock or the end of the
        caller's patience, cleans up.
        """

        def __init__(self, handle: int) -> None:
            self._handle = handle
            self._settle = threading.Lock()
            self._over = threading.Event()
            self._given_up = False
            self._error: OSError | None = None

        def stand_in_line(self) -> None:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX)
            except OSError as error:
                self._error = error
            with self._settle:
                if self._given_up:
                    os.close(self._handle)
                else:
                    self._over.set()

        def finish(self, timeout_s: float) -> bool:
            """Whether the lock came in time; the handle is the queue's if it did not."""
            if not self._over.wait(timeout_s):
                return self.give_up()
            if self._error is not None:
                raise self._error
            return True

        def give_up(self) -> bool:
            """Leaves the handle to the queue, unless the lock came at the last moment."""
            with self._settle:
                self._given_up = not self._over.is_set()
                return not self._given_up
