"""A note as a file: written whole or not at all, and known as ours by its last line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from recollect.ingest.note_stamp import digest_of, mark_of, read_stamp, with_stamp

# Neither followed nor waited for: a link may lead out of the folder, a pipe never ends.
_CAUTIOUSLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_MOST_BYTES = 4 * 1024 * 1024


class Note(NamedTuple):
    """A file of notes: all of it, the part above the stamp, and what the stamp says."""

    text: str
    body: str
    sources: frozenset[str]
    is_intact: bool
    space: str = ""

    def without(self, ids: AbstractSet[str]) -> str:
        """The file without the lines that name one of these memories."""
        kept = [line for line in self.body.split("\n") if not any(one in line for one in ids)]
        left = sorted(self.sources - ids)
        digest = digest_of(self.body)  # still not intact
        return with_stamp("\n".join(kept), digest, self.space, left)


def stamped(body: str, ids: Iterable[str], space: str) -> str:
    """A body with the line that says where it comes from."""
    return with_stamp(body, digest_of(body), mark_of(space), ids)


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
    stamp = read_stamp(text)
    if stamp is None:
        return Note(text, text, frozenset(), is_intact=False)
    intact = digest_of(stamp.body) == stamp.digest
    return Note(text, stamp.body, stamp.sources, intact, stamp.space)


def is_ours(note: Note | None, space: str) -> bool:
    """Whether a space may write a file: none is there yet, or its own that nobody edited."""
    return note is None or (note.is_intact and note.space == mark_of(space))


def is_anothers(note: Note | None, space: str) -> bool:
    """Whether a file was written for another space."""
    return note is not None and note.space not in ("", mark_of(space))


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
