"""The worker's files: socket, lock, log and spool folder.

The lock is the kernel's, so that it is released when its holder dies. The log records
what was done and when, never any content, and is bounded in size.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from bethink.config.paths import APP_NAME, data_folder, make_private_folder, state_folder
from bethink.core.file_lock import try_lock
from bethink.core.named_tuple import NamedTuple

# The path of a Unix socket is limited to 104 to 108 bytes.
_MAX_SOCKET_PATH = 100
HAS_UNIX_SOCKETS = sys.platform != "win32"


class WorkerPaths(NamedTuple):
    """The files of one user's worker.

    ``folder`` lives as long as the login session, ``state`` is persistent.
    """

    folder: Path
    state: Path
    key: str
    unix: bool = HAS_UNIX_SOCKETS

    @property
    def socket_path(self) -> Path:
        """The socket, or the file that holds the port, which clients look for."""
        return self.folder / f"{self.key}.{'sock' if self.unix else 'port'}"

    @property
    def is_open(self) -> bool:
        """Whether a worker is listening; False where the folder cannot be read."""
        # Not Path.exists: before Python 3.14 it raises where a parent folder is not readable.
        return os.path.exists(self.socket_path)  # noqa: PTH110

    @property
    def lock(self) -> Path:
        """The lock file, locked by the running worker."""
        return self.folder / f"{self.key}.lock"

    @property
    def spool(self) -> Path:
        """The folder of queued jobs."""
        return self.state / "spool"

    @property
    def log(self) -> Path:
        return self.state / "worker.log"


def worker_paths() -> WorkerPaths:
    """Return the paths of this user's worker for this installation.

    Another installation, or another home, has its own worker: neither would get from the
    other's the answer it would have computed itself.
    """
    state = state_folder().absolute()
    identity = f"{installation_id()}\n{state}\n{data_folder().absolute()}"
    key = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:12]
    return WorkerPaths(_runtime_folder(state, key), state, key)


def installation_id() -> str:
    """Identify this installation by its interpreter and its package folder."""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{python} {sys.prefix} {Path(__file__).parents[1]}"


def _runtime_folder(state: Path, key: str) -> Path:
    """The session's runtime folder, else one next to the log; a short one if that is too long."""
    runtime_dir = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = (
        Path(runtime_dir) / APP_NAME
        if runtime_dir and _is_own_folder(Path(runtime_dir))
        else state / "run"
    )
    if len(os.fsencode(folder / f"{key}.sock")) <= _MAX_SOCKET_PATH:
        return folder
    import tempfile  # start-up time: few paths are that long

    mark = hashlib.sha256(os.fsencode(state)).hexdigest()[:8]
    return Path(tempfile.gettempdir()) / f"{APP_NAME}-{_user_id()}-{mark}"


def make_private(folder: Path) -> None:
    """Create a folder that only its user can read; refuse one of another user."""
    make_private_folder(folder)
    require_private(folder)


def require_private(folder: Path) -> None:
    """Raise PermissionError where others could have written to the folder."""
    if sys.platform == "win32":
        return
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not a folder of this user")
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def _is_own_folder(folder: Path) -> bool:
    """Whether the folder belongs to the user: after ``su`` the variable is another's."""
    if sys.platform == "win32" or not folder.is_absolute():
        return False
    try:
        found = folder.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _user_id() -> str:
    return "" if sys.platform == "win32" else str(os.geteuid())


def acquire_lock(path: Path) -> int | None:
    """Acquire the lock; return a handle that holds it, or None if it is taken.

    The file is never removed: one that came and went could be locked twice.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if try_lock(handle):
            return handle
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return None


def write_lock_pid(handle: int) -> None:
    """Write this process's id into the lock file."""
    os.lseek(handle, 0, os.SEEK_SET)
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())


def is_locked(path: Path) -> bool:
    """Whether any process holds the lock now."""
    if not path.exists():
        return False
    handle = acquire_lock(path)
    if handle is None:
        return True
    os.close(handle)
    return False


def lock_holder(path: Path) -> int | None:
    """Return the id of the process that holds the lock, if it is recorded."""
    try:
        content = path.read_bytes()[:16]
    except OSError:
        return None
    return int(content) if content.isdigit() and is_locked(path) else None


def lock_age_s(path: Path) -> float:
    """Return how long ago its holder wrote its id into the lock file, in seconds."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


MAX_LOG_BYTES = 256 * 1024  # bytes; one previous log is kept


class LogFile:
    """Append-only log file of the user, or a stream for foreground runs.

    A ``quiet`` log prints no warning where its file cannot be written.
    """

    def __init__(
        self, path: Path | None, *, stream: TextIO | None = None, quiet: bool = False
    ) -> None:
        self._path = path
        self._stream = stream
        self._quiet = quiet
        self._lock = threading.Lock()

    def __call__(self, message: str) -> None:
        """Append a line; a log that cannot be written never raises."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = f"{now} {os.getpid()} {' '.join(message.split())}\n"
        with self._lock:
            if self._stream is not None:
                self._stream.write(line)
                self._stream.flush()
            if self._path is not None:
                self._append(self._path, line.encode("utf-8", "backslashreplace"))

    def _append(self, path: Path, line: bytes) -> None:
        try:
            if path.exists() and path.stat().st_size + len(line) > MAX_LOG_BYTES:
                path.replace(path.with_suffix(".log.1"))
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            if self._stream is None and not self._quiet and sys.stderr is not None:
                sys.stderr.write(f"{path}: {error.strerror}\n")
