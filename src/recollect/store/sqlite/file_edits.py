"""What was done to files, and how they looked when they were last read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from recollect.model import ChunkMark, DayCount, FileEdit, FileHistory, FileSnapshot, Intent
from recollect.ports import ForgottenFiles
from recollect.store.sqlite.clock import from_ms, from_ms_or_none, to_ms
from recollect.store.sqlite.connection import select

SHORT_INTENT = 20  # characters; shorter ones say nothing ("fix it")
_MOST_LISTED = 50

_NOTE = """
    INSERT OR IGNORE INTO file_edit (path, operation, at, intent, session, turn, item)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
# Every text is some path's part, so neither % nor _ may mean more than themselves.
_ANYBODYS = "instr(path, ?1) > 0"
# An edit is as secret as the memory it is told in.
_OF_PATH = f"""
    {_ANYBODYS} AND ?2 >= coalesce((SELECT i.classification FROM item AS i
        WHERE i.id = file_edit.item ORDER BY i.rev DESC LIMIT 1), 0)
"""
_TOTAL = f"SELECT count(*), min(at), max(at) FROM file_edit WHERE {_OF_PATH}"
_PATHS = f"SELECT path FROM file_edit WHERE {_OF_PATH} GROUP BY path ORDER BY count(*) DESC, path"
_SESSIONS = f"""
    SELECT session FROM file_edit WHERE {_OF_PATH} AND session <> ''
    GROUP BY session ORDER BY max(at) DESC, session
"""
_DAYS = f"""
    SELECT date(at / 1000, 'unixepoch') AS day, operation, count(*)
    FROM file_edit WHERE {_OF_PATH} GROUP BY day, operation ORDER BY day DESC, operation
"""
_INTENTS = f"""
    SELECT intent, count(*), max(at) AS last FROM file_edit
    WHERE {_OF_PATH} AND length(intent) > ?3
    GROUP BY intent ORDER BY last DESC, intent LIMIT ?4
"""
_ITEMS = f"""
    SELECT item FROM file_edit WHERE {_OF_PATH} AND item IS NOT NULL
    GROUP BY item ORDER BY max(at) DESC, item LIMIT ?3
"""
_KNOWN = f"SELECT count(*) FROM file_edit WHERE {_ANYBODYS}"
_LOOKED_AT = f"SELECT path FROM file_snapshot WHERE {_ANYBODYS} ORDER BY path"
_FORGET = f"DELETE FROM file_edit WHERE {_ANYBODYS}"
_FORGET_LOOKS = f"DELETE FROM file_snapshot WHERE {_ANYBODYS}"
_SNAPSHOT = """
    SELECT path, sha256, mtime_ns, size, chunks, read_at, reads FROM file_snapshot WHERE path = ?
"""
_KEEP = """
    INSERT OR REPLACE INTO file_snapshot (path, sha256, mtime_ns, size, chunks, read_at, reads)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""


def note_edits(db: apsw.Connection, edits: Sequence[FileEdit]) -> int:
    """Adds what was done; the same thing told again is known already."""
    new = 0
    for edit in edits:
        told = (edit.intent, edit.session or "", edit.turn or "", edit.item)
        db.execute(_NOTE, (edit.path, edit.operation, to_ms(edit.at), *told))
        new += db.changes()
    return new


class Asked(NamedTuple):
    """A part of a path, and the highest classification of what may be told."""

    part: str
    max_classification: int


def file_history(db: apsw.Connection, asked: Asked, intents: int, items: int) -> FileHistory:
    """All that happened to the files whose path holds this text."""
    count, first, last = select(db, _TOTAL, asked)[0]
    if not count:
        return FileHistory()
    return FileHistory(
        paths=_first_of(db, _PATHS, asked),
        edits=count,
        first_at=from_ms(first),
        last_at=from_ms_or_none(last),
        sessions=_first_of(db, _SESSIONS, asked),
        days=tuple(DayCount(*row) for row in select(db, _DAYS, asked)),
        intents=tuple(
            Intent(text, number, from_ms(at))
            for text, number, at in select(db, _INTENTS, (*asked, SHORT_INTENT, intents))
        ),
        items=tuple(row[0] for row in select(db, _ITEMS, (*asked, items))),
    )


def _first_of(db: apsw.Connection, sql: str, asked: Asked) -> tuple[str, ...]:
    return tuple(row[0] for row in select(db, f"{sql} LIMIT {_MOST_LISTED}", asked))


def known(db: apsw.Connection, part: str) -> ForgottenFiles:
    """How much there is of the files whose path holds this text."""
    looks = [row[0] for row in select(db, _LOOKED_AT, (part,))]
    return ForgottenFiles(select(db, _KNOWN, (part,))[0][0], len(looks), tuple(looks))


def forget(db: apsw.Connection, part: str) -> ForgottenFiles:
    """Removes all of it."""
    db.execute(_FORGET, (part,))
    edits = db.changes()
    db.execute(_FORGET_LOOKS, (part,))
    return ForgottenFiles(edits, db.changes())


def snapshot(db: apsw.Connection, path: str) -> FileSnapshot | None:
    """How the file looked when it was last read, if it was."""
    for path_, digest, mtime, size, chunks, read_at, reads in select(db, _SNAPSHOT, (path,)):
        marks = tuple(ChunkMark(*mark) for mark in json.loads(chunks))
        return FileSnapshot(path_, digest, mtime, size, marks, from_ms(read_at), reads)
    return None


def keep_snapshot(db: apsw.Connection, look: FileSnapshot) -> None:
    """Remembers how the file looks now."""
    chunks = json.dumps(look.chunks, ensure_ascii=False, separators=(",", ":"))
    state = (look.path, look.sha256, look.mtime_ns, look.size, chunks)
    db.execute(_KEEP, (*state, to_ms(look.read_at), look.reads))
