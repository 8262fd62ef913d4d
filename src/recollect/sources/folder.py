"""Files under a folder, in order; nothing leads out of it, and nothing is waited for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from recollect.errors import BadText, Refused, TooLarge
from recollect.sources.source import Gauge

FILE_BYTES = 8 * 1024 * 1024
_DEEPEST = 40
_SKIPPED = frozenset({"node_modules", "__pycache__"})
# Neither followed nor waited for: a link may lead out of the folder, a pipe never ends.
_CAUTIOUSLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BOM = b"\xef\xbb\xbf"


class TextFile(NamedTuple):
    """A file by its name inside the folder, with / between its parts, and its text."""

    name: str
    text: str | Refused


def names_under(root: Path, endings: tuple[str, ...]) -> Iterator[str]:
    """Names of the files below a folder that end so; hidden ones and links are left out."""
    waiting = [("", 0)]
    while waiting:
        folder, depth = waiting.pop()
        files, folders = _listed(root / folder)
        yield from (f"{folder}{name}" for name in files if name.lower().endswith(endings))
        if depth < _DEEPEST:
            waiting += ((f"{folder}{name}/", depth + 1) for name in reversed(folders))


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if entry.name.startswith(".") or entry.name in _SKIPPED:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
    except (PermissionError, FileNotFoundError):
        # A folder that may not be looked into, or is gone by now, holds nothing for us.
        return [], []
    return sorted(files), sorted(folders)


def texts_of(path: Path, endings: tuple[str, ...], gauge: Gauge) -> Iterator[TextFile]:
    """The texts of the files below a folder, or of the one file that it is."""
    if not path.is_dir():
        gauge.total, gauge.unit = 1, "files"
        # Who names a link means what it leads to.
        yield TextFile(told(path.name), read_text(path.resolve()))
        gauge.done = 1
        return
    names = list(names_under(path, endings))
    gauge.total, gauge.unit = len(names), "files"
    for name in names:
        yield TextFile(told(name), read_text(path / name))
        gauge.done += 1


def told(name: str) -> str:
    """A file's name in characters that can be stored."""
    return os.fsencode(name).decode("utf-8", "replace")


def read_text(path: Path) -> str | Refused:
    """The text of a file, or why there is none."""
    try:
        descriptor = os.open(path, _CAUTIOUSLY)
    except OSError as error:
        return Refused(f"it cannot be opened: {(error.strerror or str(error)).lower()}")
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        if not S_ISREG(state.st_mode):
            return Refused("it is no file")
        if state.st_size > FILE_BYTES:
            return TooLarge("the file", limit=FILE_BYTES, actual=state.st_size)
        content = file.read(FILE_BYTES + 1)
    try:
        return content.removeprefix(_BOM).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return BadText(f"not UTF-8 at byte {error.start + 1}", remedy="save the file as UTF-8")
