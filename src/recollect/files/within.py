"""Opens files inside allowed folders, and never one outside.

A path is resolved first; then it is walked from the allowed folder down, one component
at a time, without following links: what is swapped in between is not followed either.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from recollect.errors import NotFound, Refused, TooLarge

MOST_BYTES = 5 * 1024 * 1024
_LONGEST_PATH = 4096
_HERE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _HERE
# Without waiting: opening a named pipe would, for a writer that may never come.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _HERE


class Opened(NamedTuple):
    """A file's bytes, and what the file system says of them."""

    path: Path
    content: bytes
    mtime_ns: int
    size: int


def read_within(path: str | Path, roots: Iterable[Path], *, most: int = MOST_BYTES) -> Opened:
    """The file, if it is a regular one of at most ``most`` bytes inside one of the roots."""
    wanted = _resolved(path)
    allowed = [Path(os.path.realpath(root)) for root in roots]
    root = next((one for one in allowed if wanted.is_relative_to(one)), None)
    if root is None:
        shown = ", ".join(map(str, allowed)) or "none"
        raise Refused(
            f"{path} lies outside the folders that may be read",
            remedy=f"allowed: {shown}; --root FOLDER or the setting allowed_roots allows others",
        )
    with _opened(root, wanted) as file:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode):
            raise Refused(f"{path} is not a regular file")
        if state.st_size > most:
            raise TooLarge(f"{path}", limit=most, actual=state.st_size)
        content = _all_of(file, most)
        if len(content) > most:
            raise TooLarge(f"{path}", limit=most, actual=len(content))
        after = os.fstat(file)
    return Opened(wanted, content, after.st_mtime_ns, len(content))


def _resolved(path: str | Path) -> Path:
    told = os.fspath(path)
    if not told or "\0" in told or len(told) > _LONGEST_PATH:
        raise Refused("that is no path of a file")
    return Path(os.path.realpath(told))


@contextmanager
def _opened(root: Path, wanted: Path) -> Iterator[int]:
    """The file's descriptor, reached from the root without following a link."""
    folders: list[int] = []
    try:
        if os.open in os.supports_dir_fd:
            *above, name = wanted.relative_to(root).parts or ("",)
            folders.append(os.open(root, _FOLDER))
            for part in above:
                folders.append(os.open(part, _FOLDER, dir_fd=folders[-1]))
            file = os.open(name or ".", _FILE, dir_fd=folders[-1])
        else:
            file = os.open(wanted, _FILE)
        folders.append(file)
    except OSError as error:
        for folder in folders:
            os.close(folder)
        raise _told(wanted, error) from error
    try:
        yield file
    finally:
        for folder in folders:
            os.close(folder)


def _told(path: Path, error: OSError) -> NotFound | Refused:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFound(f"there is no file {path}")
    return Refused(f"{path} cannot be read: {error.strerror}")


def _all_of(file: int, most: int) -> bytes:
    """Up to one byte more than allowed: a file may grow while it is read."""
    parts = []
    left = most + 1
    while left > 0 and (part := os.read(file, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
