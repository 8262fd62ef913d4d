"""What was done to files, and how they looked when they were last read."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from recollect.model import ChunkMark, DayCount, FileEdit, FileHistory, FileSnapshot, Intent
from recollect.store.sqlite.clock import from_ms, from_ms_or_none, to_ms
from recollect.store.sqlite.connection import select

SHORT_INTENT = 20  # characters; shorter ones say nothing ("fix it")
_MOST_LISTED = 50

_NOTE = """
    INSERT OR IGNORE INTO file_edit (path, operation, at, intent, session, turn, item)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
# Every text is some path's part, so neither % nor _ may mean more than themselves.
_OF_PATH = "instr(path, ?1) > 0"
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
    WHERE {_OF_PATH} AND length(intent) > ?2
    GROUP BY intent ORDER BY last DESC, intent LIMIT ?3
"""
_ITEMS = f"""
    SELECT item FROM file_edit WHERE {_OF_PATH} AND item IS NOT NULL
    GROUP BY item ORDER BY max(at) DESC, item LIMIT ?2
"""
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


def file_history(db: apsw.Connection, part: str, intents: int, items: int) -> FileHistory:
    """All that happened to the files whose path holds this text."""
    count, first, last = select(db, _TOTAL, (part,))[0]
    if not count:
        return FileHistory()
    return FileHistory(
        paths=_first_of(db, _PATHS, part),
        edits=count,
        first_at=from_ms(first),
        last_at=from_ms_or_none(last),
        sessions=_first_of(db, _SESSIONS, part),
        days=tuple(DayCount(*row) for row in select(db, _DAYS, (part,))),
        intents=tuple(
            Intent(text, number, from_ms(at))
            for text, number, at in select(db, _INTENTS, (part, SHORT_INTENT, intents))
        ),
        items=tuple(row[0] for row in select(db, _ITEMS, (part, items))),
    )


def _first_of(db: apsw.Connection, sql: str, part: str) -> tuple[str, ...]:
    return tuple(row[0] for row in select(db, f"{sql} LIMIT {_MOST_LISTED}", (part,)))


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
