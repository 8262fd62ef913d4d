"""The write lock of a space: one writer among all processes.

SQLite's own busy wait polls and is unfair: with sixteen writers one may wait many
seconds. The kernel queues waiters for a file lock, and releases the lock of a process
that dies. The lock is on a file of its own, since closing any handle of the database
file would drop the locks that SQLite holds there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bethink.core.file_lock import try_lock
from bethink.errors import StoreBusy, StoreError
from bethink.store.sqlite.files import open_private

TIMEOUT_S = 30.0


@contextmanager
def hold_lock(
    lock: WriteLock, name: str, timeout_s: float = TIMEOUT_S, *, outcome: str = ""
) -> Iterator[None]:
    """Hold the lock during the block; raise StoreBusy on timeout, which tells the outcome."""
    if not lock.acquire(timeout_s):
        raise StoreBusy(
            f"{name} was locked by another writer for {timeout_s:.0f} seconds{outcome}",
            remedy="try again, or stop the other program",
        )
    try:
        yield
    finally:
        lock.release()


class ThreadLock:
    """The lock of a space in memory, which no other process uses; reentrant."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def acquire(self, timeout_s: float) -> bool:
        return self._lock.acquire(timeout=timeout_s)

    def release(self) -> None:
        self._lock.release()


class FileLock:
    """The lock of a space in a file, held on a side file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread_lock = threading.Lock()
        self._handle = -1

    def acquire(self, timeout_s: float) -> bool:
        """Acquire the lock; return False when it timed out."""
        deadline = time.monotonic() + timeout_s
        if not self._thread_lock.acquire(timeout=timeout_s):
            return False
        try:
            handle = self._lock_file(deadline)
        except BaseException:
            self._thread_lock.release()
            raise
        if handle is None:
            self._thread_lock.release()
            return False
        self._handle = handle
        return True

    def release(self) -> None:
        handle, self._handle = self._handle, -1
        # Closing the only handle of this open file releases the lock.
        os.close(handle)
        self._thread_lock.release()

    def _lock_file(self, deadline: float) -> int | None:
        # A new handle each time: an abandoned wait must not share the lock of a later one.
        handle = open_private(self._path)
        try:
            if try_lock(handle):
                return handle
            acquired = _wait_for_lock(handle, deadline - time.monotonic())
        except OSError as error:
            os.close(handle)
            raise StoreError(
                f"{self._path} cannot be locked: {error.strerror}",
                remedy="keep spaces on a disk that supports file locks",
            ) from error
        return handle if acquired else None


# The lock held around every write transaction, every checkpoint and the last close.
WriteLock = ThreadLock | FileLock

if sys.platform == "win32":
    _PAUSE_S = 0.005

    def _wait_for_lock(handle: int, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            if try_lock(handle):
                return True
        os.close(handle)
        return False

else:
    import fcntl

    def _wait_for_lock(handle: int, timeout_s: float) -> bool:
        if timeout_s <= 0:
            os.close(handle)
            return False
        wait = _Wait(handle)
        threading.Thread(target=wait.wait_in_queue, name="bethink-lock", daemon=True).start()
        try:
            return wait.wait(timeout_s)
        except BaseException:
            if wait.abandon():
                os.close(handle)
            raise

    class _Wait:
        """A place in the kernel's lock queue, taken by a thread that may be abandoned.

        There is no way to wait for a file lock with a time limit, so a thread waits without
        one. Whichever comes second, the lock or the caller's timeout, cleans up.
        """

        def __init__(self, handle: int) -> None:
            self._handle = handle
            self._state_lock = threading.Lock()
            self._acquired = threading.Event()
            self._abandoned = False
            self._error: OSError | None = None

        def wait_in_queue(self) -> None:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX)
            except OSError as error:
                self._error = error
            with self._state_lock:
                if self._abandoned:
                    os.close(self._handle)
                else:
                    self._acquired.set()

        def wait(self, timeout_s: float) -> bool:
            """Wait for the lock; on timeout the waiting thread keeps the handle."""
            if not self._acquired.wait(timeout_s):
                return self.abandon()
            if self._error is not None:
                raise self._error
            return True

        def abandon(self) -> bool:
            """Leave the handle to the waiting thread, unless the lock came at the last moment."""
            with self._state_lock:
                self._abandoned = not self._acquired.is_set()
                return not self._abandoned
