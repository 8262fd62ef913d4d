"""Files that only their owner may read, whatever the umask says."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from recollect.errors import StoreError

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def make_folder(path: Path) -> None:
    """Makes the folder and those above it that are missing, for the owner alone.

    A folder that was there already is left as it is: it may not be ours.
    """
    missing = []
    folder = path
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    try:
        for folder in reversed(missing):
            # Two processes may make the same folder at once; both are content.
            folder.mkdir(FOLDER_MODE, exist_ok=True)
            folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise StoreError(
            f"the folder {path} cannot be made: {error.strerror}",
            remedy="choose a folder that is yours",
        ) from error


def make_file(path: Path) -> bool:
    """Makes an empty private file; False when there was one already."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC, FILE_MODE)
    except FileExistsError:
        return False
    except OSError as error:
        raise _cannot(path, error) from error
    os.close(handle)
    # The umask may have taken the owner's own bits away.
    path.chmod(FILE_MODE)
    return True


def open_private(path: Path) -> int:
    """A handle to a private file, made where it was missing."""
    try:
        return os.open(path, os.O_RDWR | _CLOEXEC)
    except FileNotFoundError:
        make_file(path)
    except OSError as error:
        raise _cannot(path, error) from error
    try:
        return os.open(path, os.O_RDWR | _CLOEXEC)
    except OSError as error:
        raise _cannot(path, error) from error


def has_content(path: Path) -> bool:
    """Whether there is such a file, and it is not empty."""
    return path.exists() and path.stat().st_size > 0


def log_of(path: Path) -> Path:
    """Where SQLite keeps the log of a database."""
    return path.with_name(f"{path.name}-wal")


def is_private(path: Path) -> bool:
    """Whether group and others are kept out. Always so where modes mean nothing."""
    if os.name != "posix":
        return True
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)


def _cannot(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path} cannot be opened: {error.strerror}",
        remedy="check the permissions of the file and its folder",
    )
