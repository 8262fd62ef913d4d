"""Where a worker is found: its socket and its lock, its log, and what waits for it."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import sys
from pathlib import Path
from typing import NamedTuple

from recollect.places import APP, data_folder, make_private_folder, state_folder

# A socket's path has room for 104 to 108 bytes, whatever the file system allows.
_LONGEST = 100
HAS_UNIX = hasattr(socket, "AF_UNIX") and sys.platform != "win32"


class Place(NamedTuple):
    """The files of one user's worker. ``folder`` goes with the session, ``state`` stays."""

    folder: Path
    state: Path
    key: str
    unix: bool = HAS_UNIX

    @property
    def door(self) -> Path:
        """What a client looks for: the socket, or the file that says where to call."""
        return self.folder / f"{self.key}.{'sock' if self.unix else 'port'}"

    @property
    def is_open(self) -> bool:
        """Whether somebody has opened the door; nobody, where we may not even look."""
        # Not Path's own test: before Python 3.14 it raises where a parent is closed to us.
        return os.path.exists(self.door)  # noqa: PTH110

    @property
    def lock(self) -> Path:
        """Locked by the one worker there is, and by nobody once that is gone."""
        return self.folder / f"{self.key}.lock"

    @property
    def spool(self) -> Path:
        """What was handed over and is not done yet."""
        return self.state / "spool"

    @property
    def log(self) -> Path:
        return self.state / "worker.log"


def find_place() -> Place:
    """The place of this user's worker for this installation of Recollect.

    Another installation, or another home, has a worker of its own: neither would get
    from the other's what it would have answered itself.
    """
    state = state_folder().absolute()
    told = f"{installation()}\n{state}\n{data_folder().absolute()}"
    key = hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:12]
    return Place(_folder(state, key), state, key)


def installation() -> str:
    """What tells this installation from others: its interpreter and its package."""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{python} {sys.prefix} {Path(__file__).parents[1]}"


def _folder(state: Path, key: str) -> Path:
    """The session's folder where there is one, else beside the log; a short one at need."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    usual = Path(given) / APP if given and _is_ours(Path(given)) else state / "run"
    if len(os.fsencode(usual / f"{key}.sock")) <= _LONGEST:
        return usual
    import tempfile  # start-up time: few paths are that long

    mark = hashlib.sha256(os.fsencode(state)).hexdigest()[:8]
    return Path(tempfile.gettempdir()) / f"{APP}-{_user()}-{mark}"


def make_private(folder: Path) -> None:
    """Makes a folder that nobody else can look into; one that is not ours is refused."""
    make_private_folder(folder)
    require_private(folder)


def require_private(folder: Path) -> None:
    """Raises PermissionError where others could have put something into the folder."""
    if sys.platform == "win32":
        return
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not a folder of ours")
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder of the user: after ``su`` the variable is still another's."""
    if sys.platform == "win32" or not folder.is_absolute():
        return False
    try:
        found = folder.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _user() -> str:
    return "" if sys.platform == "win32" else str(os.geteuid())
