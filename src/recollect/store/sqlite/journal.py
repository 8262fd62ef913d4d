"""The journal: who did what to which memory, each line chained to the one before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw

from recollect.ports import Event
from recollect.store.sqlite.clock import from_ms

_INSERT = "INSERT INTO event (seq, at, kind, item, actor, detail, chain) VALUES (?,?,?,?,?,?,?)"
_HEAD = "SELECT value FROM meta WHERE name = 'journal'"
_SET_HEAD = "UPDATE meta SET value = ? WHERE name = 'journal'"
_PAGE = "SELECT seq, at, kind, item, actor, detail FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
_BACK = """
    SELECT seq, at, kind, item, actor, detail FROM event
    WHERE (?1 IS NULL OR item = ?1) AND (?2 IS NULL OR actor = ?2)
    ORDER BY seq DESC LIMIT ?3
"""
_ALL = "SELECT seq, at, kind, item, actor, detail, chain FROM event ORDER BY seq"


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Line(NamedTuple):
    """What happened to one memory, in words that hold nothing of its content."""

    kind: str
    item: str | None
    detail: str = ""


class ChainedLine(NamedTuple):
    """A line as the file keeps it."""

    seq: int
    at: int
    kind: str
    item: str | None
    actor: str
    detail: str
    chain: str


def write(db: apsw.Connection, lines: Iterable[Line], *, actor: str, at: int) -> None:
    """Adds lines at the end, in the caller's transaction."""
    seq, chain = head(db)
    chained = []
    for line in lines:
        seq += 1
        chain = link(chain, (seq, at, line.kind, line.item, actor, line.detail))
        chained.append(ChainedLine(seq, at, line.kind, line.item, actor, line.detail, chain))
    append(db, chained)


def append(db: apsw.Connection, lines: Sequence[ChainedLine]) -> None:
    """Adds lines that are chained already, in their order."""
    if lines:
        db.executemany(_INSERT, lines)
        db.execute(_SET_HEAD, (f"{lines[-1].seq}:{lines[-1].chain}",))


def head(db: apsw.Connection) -> tuple[int, str]:
    """The number and the chain of the last line."""
    seq, _, chain = db.execute(_HEAD).get.partition(":")
    return int(seq), chain


def link(previous: str, line: tuple[object, ...]) -> str:
    """The hash that ties a line to all lines before it."""
    return hashlib.sha256(f"{previous}\n{_ENCODER.encode(line)}".encode()).hexdigest()


def read(db: apsw.Connection, after: int, limit: int) -> list[Event]:
    """Lines after a number, oldest first."""
    return [
        Event(seq, from_ms(at), kind, item, actor, detail)
        for seq, at, kind, item, actor, detail in db.execute(_PAGE, (after, limit))
    ]


def read_back(db: apsw.Connection, item: str | None, actor: str | None, limit: int) -> list[Event]:
    """The last lines, newest first: of one memory, by one actor."""
    return [
        Event(seq, from_ms(at), kind, of, who, detail)
        for seq, at, kind, of, who, detail in db.execute(_BACK, (item, actor, limit))
    ]


def read_chained(db: apsw.Connection) -> Iterator[ChainedLine]:
    """Every line with its chain, oldest first."""
    return (ChainedLine(*row) for row in db.execute(_ALL))


def first_broken(lines: Iterable[ChainedLine], expected: tuple[int, str] | None) -> str:
    """What is wrong with a journal, in words; empty when nothing is.

    ``expected`` is the end it should have, where that is known.
    """
    seq, chain = 0, ""
    for line in lines:
        if line.seq != seq + 1:
            return f"line {seq + 1} is missing"
        seq, chain = line.seq, link(chain, line[:-1])
        if chain != line.chain:
            return f"line {line.seq} was changed, or one before it"
    if expected is not None and (seq, chain) != expected:
        return f"it ends at line {seq}, but should end at {expected[0]}"
    return ""
