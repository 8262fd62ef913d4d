"""What is known of a project's files: who touched them, why, and how they last looked."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

Operation = Literal["read", "edit", "write", "bash", "other"]
OPERATIONS: tuple[Operation, ...] = ("read", "edit", "write", "bash", "other")


class FileEdit(NamedTuple):
    """Something that was done to a file, by which session and to what end."""

    path: str
    operation: Operation
    at: datetime
    intent: str = ""
    session: str | None = None
    turn: str | None = None
    item: str | None = None


class DayCount(NamedTuple):
    """How often something was done to a file on one day."""

    day: str
    operation: str
    times: int


class Intent(NamedTuple):
    """What somebody wanted when they changed a file, how often, and when last."""

    text: str
    times: int
    last_at: datetime


class FileHistory(NamedTuple):
    """Everything that happened to the files whose path holds some text."""

    paths: tuple[str, ...] = ()
    edits: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    sessions: tuple[str, ...] = ()
    days: tuple[DayCount, ...] = ()
    intents: tuple[Intent, ...] = ()
    items: tuple[str, ...] = ()


class ChunkMark(NamedTuple):
    """A piece of a file, known by its name and what it hashes to, without its text."""

    id: str
    hash: str
    first_line: int
    last_line: int


class FileSnapshot(NamedTuple):
    """How a file looked when it was last read."""

    path: str
    sha256: str
    mtime_ns: int
    size: int
    chunks: tuple[ChunkMark, ...]
    read_at: datetime
    reads: int = 1
