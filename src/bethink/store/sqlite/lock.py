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
        """Wait in the kernel's queue; on a timeout the thread that waits there keeps the handle.

        There is no way to wait for a file lock with a time limit, so a thread waits without one.
        Whichever comes second, the lock or the caller's timeout, closes the handle.
        """
        if timeout_s <= 0:
            os.close(handle)
            return False
        from concurrent.futures import Future  # start-up time: seldom does another process write

        locked: Future[None] = Future()

        def wait_in_queue() -> None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                locked.set_result(None)
            except OSError as error:
                locked.set_exception(error)

        threading.Thread(target=wait_in_queue, name="bethink-lock", daemon=True).start()
        try:
            locked.result(timeout_s)
        except TimeoutError:
            locked.add_done_callback(lambda _: os.close(handle))
            return False
        except OSError:
            raise
        except BaseException:
            locked.add_done_callback(lambda _: os.close(handle))
            raise
        return True
