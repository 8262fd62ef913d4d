"""Private files, the journal's key, and the write lock: one writer among all processes.

SQLite's own busy wait polls and is unfair: with sixteen writers one may wait many
seconds. The kernel queues waiters for a file lock, and releases the lock of a process
that dies. The lock is on a file of its own, since closing any handle of the database
file would drop the locks that SQLite holds there.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bethink.core.atomic_write import atomic_replace, fsync_folder
from bethink.core.named_tuple import NamedTuple
from bethink.errors import StoreBusy, StoreError

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def make_private_folder(path: Path) -> None:
    """Create the folder and its missing parents, accessible to the owner alone.

    An existing folder is left as it is: it may not be ours.
    """
    missing = []
    folder = path
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    try:
        for folder in reversed(missing):
            # Two processes may create the same folder at once.
            folder.mkdir(FOLDER_MODE, exist_ok=True)
            folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise StoreError(
            f"the folder {path} cannot be created: {error.strerror}",
            remedy="choose a folder you own",
        ) from error


def make_private_file(path: Path) -> bool:
    """Create an empty private file; return False when it exists already."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC, FILE_MODE)
    except FileExistsError:
        return False
    except OSError as error:
        raise _open_error(path, error) from error
    os.close(handle)
    # The umask may have removed the owner's own bits.
    path.chmod(FILE_MODE)
    return True


def open_private(path: Path) -> int:
    """Open a private file, creating it if needed; return the file descriptor."""
    try:
        return os.open(path, os.O_RDWR | _CLOEXEC)
    except FileNotFoundError:
        make_private_file(path)
    except OSError as error:
        raise _open_error(path, error) from error
    try:
        return os.open(path, os.O_RDWR | _CLOEXEC)
    except OSError as error:
        raise _open_error(path, error) from error


def has_content(path: Path) -> bool:
    """Whether the file exists and is not empty."""
    return path.exists() and path.stat().st_size > 0


def wal_path(path: Path) -> Path:
    """Return the path of a database's write-ahead log."""
    return path.with_name(f"{path.name}-wal")


def key_path(path: Path) -> Path:
    """Return the path of the secret of a space's journal."""
    return path.with_name(f"{path.name}.key")


def is_private(path: Path) -> bool:
    """Whether group and others have no access. Always true where modes mean nothing."""
    if os.name != "posix":
        return True
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)


def _open_error(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path} cannot be opened: {error.strerror}",
        remedy="check the permissions of the file and its folder",
    )


_KEY_KIND = "bethink-journal-2"
_UNSEALED_KEY_KIND = "bethink-journal-1"
_SECRET_BYTES = 32


class Secret(NamedTuple):
    """A secret, and the line of the journal from which on it is used; empty where there is none.

    With ``seals`` every end of the journal since then has a seal, so that one without was cut.
    """

    value: bytes = b""
    since: int = 1
    seals: bool = False

    @property
    def id(self) -> str:
        """A name of the secret that does not tell it; empty where there is none."""
        return hashlib.sha256(b"id" + self.value).hexdigest()[:16] if self.value else ""

    def made(self, line: int) -> bool:
        """Whether a line of the journal was chained with it."""
        return bool(self.value) and line >= self.since

    def mac(self, text: bytes) -> str:
        """Return the code of a line that only this secret gives."""
        import hmac  # start-up time: a recall writes no journal

        return hmac.digest(self.value, text, "sha256").hex()


class JournalKey:
    """The secret of a space's journal, in a private file next to the space.

    Who can write the database alone cannot make a chain that the secret verifies. It is made
    with the first line that needs it. A space in memory has one that goes with it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        in_memory = Secret(os.urandom(_SECRET_BYTES), seals=True)
        self._in_memory = in_memory if path is None else Secret()
        self._known: tuple[tuple[int, ...], Secret] = ((), Secret())

    def read(self) -> Secret:
        """Return the secret as it is now; none where the file is missing or damaged."""
        if self.path is None:
            return self._in_memory
        try:
            found = self.path.stat()
        except OSError:
            return self._read_file(self.path)  # says what is wrong
        state = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if self._known[0] != state:
            self._known = (state, self._read_file(self.path))
        return self._known[1]

    @staticmethod
    def _read_file(path: Path) -> Secret:
        try:
            kind, since, secret = path.read_text(encoding="ascii").split()
            found = Secret(bytes.fromhex(secret), int(since), seals=kind == _KEY_KIND)
            is_known = kind in (_KEY_KIND, _UNSEALED_KEY_KIND)
            return found if is_known and len(found.value) == _SECRET_BYTES else Secret()
        except (FileNotFoundError, ValueError):
            return Secret()
        except OSError as error:
            raise _open_error(path, error) from error

    def ensure(self, line: int) -> Secret:
        """Return the secret; make it, where there is none, for the lines from this one on.

        Only the holder of the write lock may call it.
        """
        known = self.read()
        if known.value or self.path is None:
            return known
        new = Secret(os.urandom(_SECRET_BYTES), line, seals=True)
        content = f"{_KEY_KIND} {line} {new.value.hex()}\n"
        try:
            if self.path.exists():
                # Damaged, but perhaps not beyond a repair by hand.
                self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
            atomic_replace(self.path, content.encode(), mode=FILE_MODE)
            fsync_folder(self.path.parent)
        except OSError as error:
            raise _open_error(self.path, error) from error
        return new


TIMEOUT_S = 30.0


class WriteLock(Protocol):
    """The lock held around every write transaction, every checkpoint and the last close."""

    def acquire(self, timeout_s: float) -> bool:
        """Acquire the lock; return False when it timed out."""
        ...

    def release(self) -> None: ...


@contextmanager
def hold_lock(lock: WriteLock, name: str, timeout_s: float = TIMEOUT_S) -> Iterator[None]:
    """Hold the lock during the block; raise StoreBusy on timeout."""
    if not lock.acquire(timeout_s):
        raise StoreBusy(
            f"{name} was locked by another writer for {timeout_s:.0f} seconds",
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
            if _try_lock(handle):
                return handle
            acquired = _wait_for_lock(handle, deadline - time.monotonic())
        except OSError as error:
            os.close(handle)
            raise StoreError(
                f"{self._path} cannot be locked: {error.strerror}",
                remedy="keep spaces on a disk that supports file locks",
            ) from error
        return handle if acquired else None


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
