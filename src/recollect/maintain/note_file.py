"""A note as a file: written whole or not at all, and known as ours by its last line."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

_STAMP = re.compile(r"\n<!-- recollect ([0-9a-f]{64}) of ([^<>]*) -->\n?\Z")
# Neither followed nor waited for: a link may lead out of the folder, a pipe never ends.
_CAUTIOUSLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_MOST_BYTES = 4 * 1024 * 1024


class Note(NamedTuple):
    """A file of notes: all of it, the part above the stamp, and what the stamp says."""

    text: str
    body: str
    sources: frozenset[str]
    is_intact: bool

    def without(self, ids: AbstractSet[str]) -> str:
        """The file without the lines that name one of these memories."""
        kept = [line for line in self.body.split("\n") if not any(one in line for one in ids)]
        left = sorted(self.sources - ids)
        digest = hashlib.sha256(self.body.encode()).hexdigest()  # still not intact
        return f"{chr(10).join(kept)}\n<!-- recollect {digest} of {' '.join(left)} -->\n"


def stamped(body: str, ids: Iterable[str]) -> str:
    """A body with the line that says where it comes from."""
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f"{body}\n<!-- recollect {digest} of {' '.join(sorted(ids))} -->\n"


def read_note(path: Path) -> Note | None:
    """The note in a file; None where there is none."""
    try:
        handle = os.open(path, _CAUTIOUSLY)
    except FileNotFoundError:
        return None
    except OSError:
        return Note("", "", frozenset(), is_intact=False)  # a link or the like: not ours
    with os.fdopen(handle, "rb") as file:
        text = file.read(_MOST_BYTES).decode(errors="replace")
    stamp = _STAMP.search(text)
    if stamp is None:
        return Note(text, text, frozenset(), is_intact=False)
    body = text[: stamp.start()]
    intact = hashlib.sha256(body.encode()).hexdigest() == stamp[1]
    return Note(text, body, frozenset(stamp[2].split()), intact)


def is_ours(note: Note | None) -> bool:
    """Whether a file may be written: none is there yet, or one that nobody edited."""
    return note is None or note.is_intact


def write_note(path: Path, text: str) -> None:
    """Puts the text in place in one step, readable by nobody else."""
    _private_folder(path.parent.parent)
    _private_folder(path.parent)
    clear_unfinished(path)
    handle = os.open(_beside(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    _beside(path).replace(path)


def remove_note(path: Path) -> None:
    """Takes a note away."""
    path.unlink(missing_ok=True)


def clear_unfinished(path: Path) -> None:
    """Takes away what an interrupted writing left beside a note."""
    _beside(path).unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _private_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True)
        folder.chmod(0o700)
