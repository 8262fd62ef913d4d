"""The write lock: one at a time, in time or not at all."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from bethink.errors import NOT_SAVED, StoreBusy, StoreError
from bethink.store.sqlite.files import open_private
from bethink.store.sqlite.lock import FileLock, ThreadLock, WriteLock, hold_lock


@pytest.fixture(params=["file", "thread"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[WriteLock, WriteLock]:
    """Two sides of one lock: two openings of a file, or the same object twice."""
    if request.param == "file":
        return FileLock(tmp_path / "x.lock"), FileLock(tmp_path / "x.lock")
    lock = ThreadLock()
    return lock, lock


def in_thread(work: object) -> threading.Thread:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_only_one_holds_it(locks: tuple[WriteLock, WriteLock]) -> None:
    """Sixteen threads on two openings never meet inside."""
    inside = most = 0

    def work(lock: WriteLock) -> None:
        nonlocal inside, most
        for _ in range(20):
            with hold_lock(lock, "x"):
                inside += 1
                most = max(most, inside)
                time.sleep(0.0002)
                inside -= 1

    threads = [in_thread(lambda n=n: work(locks[n % 2])) for n in range(16)]
    for thread in threads:
        thread.join()

    assert most == 1


def test_patience_ends(locks: tuple[WriteLock, WriteLock]) -> None:
    """Who does not get it in time is told so in a sentence."""
    first, second = locks
    release = threading.Event()
    held = threading.Event()

    def hold() -> None:
        with hold_lock(first, "x"):
            held.set()
            release.wait()

    thread = in_thread(hold)
    held.wait()
    start = time.monotonic()
    with (
        pytest.raises(StoreBusy, match=r"another writer .* not saved"),
        hold_lock(second, "x", timeout_s=0.1, outcome=NOT_SAVED),
    ):
        pass
    waited = time.monotonic() - start
    release.set()
    thread.join()

    assert waited >= 0.1
    with hold_lock(second, "x", timeout_s=1):
        pass


def test_a_wait_that_was_given_up_holds_nothing(tmp_path: Path) -> None:
    """The thread left in the queue lets go as soon as it comes to its turn."""
    path = tmp_path / "x.lock"
    holder, waiter, later = FileLock(path), FileLock(path), FileLock(path)
    assert holder.acquire(1)
    for _ in range(5):
        assert not waiter.acquire(0.02)
    holder.release()

    for lock in (later, waiter, holder):
        assert lock.acquire(2)
        lock.release()


def test_trying_does_not_wait(locks: tuple[WriteLock, WriteLock]) -> None:
    """A patience of zero is a question, and leaves nobody in the queue."""
    first, second = locks
    assert first.acquire(0)
    got: list[bool] = []
    thread = in_thread(lambda: got.append(second.acquire(0)))
    thread.join()
    waiting = [one.name for one in threading.enumerate() if one.name == "bethink-lock"]
    first.release()

    assert (got, waiting) == ([False], [])


def test_a_lock_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    """A missing folder is said, not thrown up as a traceback."""
    with pytest.raises(StoreError, match="cannot be opened"):
        FileLock(tmp_path / "no" / "x.lock").acquire(1)


@pytest.mark.skipif(sys.platform == "win32", reason="there the lock is polled for")
def test_what_cannot_be_locked_is_an_error_of_ours(tmp_path: Path) -> None:
    """A handle that is no file's fails in the queue, and the waiter hears of it."""
    from bethink.store.sqlite.lock import _wait_for_lock

    handle = open_private(tmp_path / "x.lock")
    os.close(handle)

    with pytest.raises(OSError):
        _wait_for_lock(handle, 1)
