"""Read files inside allowed folders, whatever lies or is put there.

A path is resolved first, then opened component by component from the allowed folder
without following links, so a link swapped in meanwhile is not followed either.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bethink.core.named_tuple import NamedTuple
from bethink.errors import NotFound, Refused, TooLarge

MAX_BYTES = 5 * 1024 * 1024
_MAX_PATH_CHARACTERS = 4096
_COMMON_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _COMMON_FLAGS
# Without waiting: opening a named pipe would wait for a writer.
_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON_FLAGS


class FileContent(NamedTuple):
    """A file's bytes, modification time and size."""

    path: Path
    content: bytes
    mtime_ns: int
    size: int


def read_within_roots(
    path: str | Path, roots: Iterable[Path], *, max_bytes: int = MAX_BYTES
) -> FileContent:
    """Read a regular file of at most ``max_bytes`` bytes inside one of the roots."""
    target = _resolve_path(path)
    allowed = [Path(os.path.realpath(root)) for root in roots]
    root = next((folder for folder in allowed if target.is_relative_to(folder)), None)
    if root is None:
        listed = ", ".join(map(str, allowed)) or "none"
        raise Refused(
            f"{path} is outside the folders that may be read",
            remedy=f"allowed: {listed}; the setting allowed_roots allows others",
        )
    with _open_beneath(root, target) as file:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode):
            raise Refused(f"{path} is not a regular file")
        if state.st_size > max_bytes:
            raise TooLarge(f"{path}", limit=max_bytes, actual=state.st_size)
        content = _read_up_to(file, max_bytes)
        if len(content) > max_bytes:
            raise TooLarge(f"{path}", limit=max_bytes, actual=len(content))
        after = os.fstat(file)
    return FileContent(target, content, after.st_mtime_ns, len(content))


def _resolve_path(path: str | Path) -> Path:
    text = os.fspath(path)
    if not text or "\0" in text or len(text) > _MAX_PATH_CHARACTERS:
        raise Refused("that is not a valid path")
    return Path(os.path.realpath(text))


@contextmanager
def _open_beneath(root: Path, target: Path) -> Iterator[int]:
    """Open the file from the root down without following links; yield its descriptor."""
    folders: list[int] = []
    try:
        if os.open in os.supports_dir_fd:
            *parents, name = target.relative_to(root).parts or ("",)
            folders.append(os.open(root, _FOLDER_FLAGS))
            for part in parents:
                folders.append(os.open(part, _FOLDER_FLAGS, dir_fd=folders[-1]))
            file = os.open(name or ".", _FILE_FLAGS, dir_fd=folders[-1])
        else:
            file = os.open(target, _FILE_FLAGS)
        folders.append(file)
    except OSError as error:
        for folder in folders:
            os.close(folder)
        raise _translate_os_error(target, error) from error
    try:
        yield file
    finally:
        for folder in folders:
            os.close(folder)


def _translate_os_error(path: Path, error: OSError) -> NotFound | Refused:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFound(f"there is no file {path}")
    return Refused(f"{path} cannot be read: {error.strerror}")


def _read_up_to(file: int, max_bytes: int) -> bytes:
    """Read up to one byte more than allowed: a file may grow while it is read."""
    parts = []
    left = max_bytes + 1
    while left > 0 and (part := os.read(file, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
