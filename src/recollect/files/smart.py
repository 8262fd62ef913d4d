"""Reads a file again and says only what changed since the last time.

What a file holds is compared, not when it was written: two edits within one second, or
an editor that keeps the time, cannot hide a change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.errors import Refused
from recollect.files.chunks import Chunk, cut
from recollect.files.within import Opened
from recollect.model import ChunkMark, FileSnapshot

ReadStatus = Literal["first_read", "forced_full", "unchanged", "unchanged_content", "modified"]


class ReadChunk(NamedTuple):
    """A piece of the file; the text of one that stayed the same is left out."""

    id: str
    state: Literal["added", "modified", "unchanged"]
    first_line: int
    last_line: int
    hash: str
    text: str | None = None


class SmartRead(NamedTuple):
    """What a reader needs to know of a file they may have read before."""

    path: str
    status: ReadStatus
    chunks: tuple[ReadChunk, ...]
    removed: tuple[str, ...] = ()
    text: str | None = None
    tokens: int = 0
    whole_tokens: int = 0
    reads: int = 1
    notes: tuple[str, ...] = ()


def decoded(file: Opened) -> tuple[str, tuple[str, ...]]:
    """The file's text, and a note where it was not all UTF-8."""
    if b"\0" in file.content:
        raise Refused(f"{file.path} is not a text file")
    try:
        return file.content.decode(), ()
    except UnicodeDecodeError:
        note = "not all of it is UTF-8; what could not be read is shown as �"
        return file.content.decode(errors="replace"), (note,)


def snapshot_of(file: Opened, chunks: tuple[Chunk, ...], now: datetime, reads: int) -> FileSnapshot:
    """What is kept of a file: hashes and names, no text."""
    marks = tuple(ChunkMark(one.id, one.hash, one.first_line, one.last_line) for one in chunks)
    digest = hashlib.sha256(file.content).hexdigest()
    return FileSnapshot(str(file.path), digest, file.mtime_ns, file.size, marks, now, reads)


def read_smart(
    file: Opened,
    before: FileSnapshot | None,
    now: datetime,
    *,
    force: bool = False,
    count: Callable[[str], int],
) -> tuple[SmartRead, FileSnapshot]:
    """What to tell of the file, and what to keep for the next time."""
    text, notes = decoded(file)
    chunks = cut(str(file.path), text)
    after = snapshot_of(file, chunks, now, 1 if before is None else before.reads + 1)
    status = _status(before, after, force)
    full = status in ("first_read", "forced_full")
    known = {} if before is None else {mark.id: mark.hash for mark in before.chunks}
    told = tuple(_told(chunk, known, full=full) for chunk in chunks)
    removed = tuple(name for name in known if name not in {chunk.id for chunk in chunks})
    shown = text if full else "".join(chunk.text or "" for chunk in told)
    answer = SmartRead(
        path=str(file.path),
        status=status,
        chunks=told,
        removed=removed,
        text=text if full else None,
        tokens=count(shown) if shown else 0,
        whole_tokens=count(text) if text else 0,
        reads=after.reads,
        notes=notes,
    )
    return answer, after


def _status(before: FileSnapshot | None, after: FileSnapshot, force: bool) -> ReadStatus:
    if force:
        return "forced_full"
    if before is None:
        return "first_read"
    if before.sha256 != after.sha256:
        return "modified"
    return "unchanged" if before.mtime_ns == after.mtime_ns else "unchanged_content"


def _told(chunk: Chunk, known: dict[str, str], *, full: bool) -> ReadChunk:
    """A piece as the reader should get it; the whole text is given apart when it is."""
    mark = chunk.hash
    same = known.get(chunk.id) == mark
    state: Literal["added", "modified", "unchanged"] = (
        "unchanged" if same else "modified" if chunk.id in known else "added"
    )
    text = None if same or full else chunk.text
    return ReadChunk(chunk.id, state, chunk.first_line, chunk.last_line, mark, text)
