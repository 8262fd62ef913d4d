"""File edits and file snapshots: record, query and forget them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import apsw

from bethink.model import ChunkDigest, DayCount, FileEdit, FileHistory, FileSnapshot, Intent
from bethink.ports import ForgottenFiles
from bethink.store.sqlite import erase
from bethink.store.sqlite.db import history as journal
from bethink.store.sqlite.db.connection import Connections, select
from bethink.store.sqlite.db.sql_functions import from_ms, from_ms_or_none, to_ms

MIN_INTENT_LENGTH = 20  # characters; shorter ones say nothing ("fix it")
_MAX_LISTED = 50

_INSERT_EDIT = """
    INSERT OR IGNORE INTO file_edit (path, operation, at, intent, session, turn, item)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
# Every text is some path's part, so neither % nor _ may mean more than themselves.
_PATH_CONTAINS = "instr(path, ?1) > 0"
# An edit is as secret as the memory it is told in.
_VISIBLE_OF_PATH = f"""
    {_PATH_CONTAINS} AND ?2 >= coalesce((SELECT i.classification FROM item AS i
        WHERE i.id = file_edit.item ORDER BY i.rev DESC LIMIT 1), 0)
"""
_SELECT_TOTAL = f"SELECT count(*), min(at), max(at) FROM file_edit WHERE {_VISIBLE_OF_PATH}"
_SELECT_PATHS = f"SELECT path FROM file_edit WHERE {_VISIBLE_OF_PATH} GROUP BY path ORDER BY count(*) DESC, path"
_SELECT_SESSIONS = f"""
    SELECT session FROM file_edit WHERE {_VISIBLE_OF_PATH} AND session <> ''
    GROUP BY session ORDER BY max(at) DESC, session
"""
_SELECT_DAYS = f"""
    SELECT date(at / 1000, 'unixepoch') AS day, operation, count(*)
    FROM file_edit WHERE {_VISIBLE_OF_PATH} GROUP BY day, operation ORDER BY day DESC, operation
"""
_SELECT_INTENTS = f"""
    SELECT intent, count(*), max(at) AS last FROM file_edit
    WHERE {_VISIBLE_OF_PATH} AND length(intent) > ?3
    GROUP BY intent ORDER BY last DESC, intent LIMIT ?4
"""
_SELECT_ITEMS = f"""
    SELECT item FROM file_edit WHERE {_VISIBLE_OF_PATH} AND item IS NOT NULL
    GROUP BY item ORDER BY max(at) DESC, item LIMIT ?3
"""
_COUNT_EDITS = f"SELECT count(*) FROM file_edit WHERE {_PATH_CONTAINS}"
_SNAPSHOT_PATHS = f"SELECT path FROM file_snapshot WHERE {_PATH_CONTAINS} ORDER BY path"
_DELETE_EDITS = f"DELETE FROM file_edit WHERE {_PATH_CONTAINS}"
_DELETE_SNAPSHOTS = f"DELETE FROM file_snapshot WHERE {_PATH_CONTAINS}"
_SELECT_SNAPSHOT = """
    SELECT path, sha256, mtime_ns, size, chunks, read_at, reads FROM file_snapshot WHERE path = ?
"""
_REPLACE_SNAPSHOT = """
    INSERT OR REPLACE INTO file_snapshot (path, sha256, mtime_ns, size, chunks, read_at, reads)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""


def add_edits(db: apsw.Connection, edits: Sequence[FileEdit]) -> int:
    """Add file edits; return how many were new."""
    new = 0
    for edit in edits:
        told = (edit.intent, edit.session or "", edit.turn or "", edit.item)
        db.execute(_INSERT_EDIT, (edit.path, edit.operation, to_ms(edit.at), *told))
        new += db.changes()
    return new


class PathQuery(NamedTuple):
    """A part of a path, and the highest classification that may be shown."""

    part: str
    max_classification: int


def read_history(db: apsw.Connection, query: PathQuery, intents: int, items: int) -> FileHistory:
    """Return all that happened to the files whose path contains this text."""
    count, first, last = select(db, _SELECT_TOTAL, query)[0]
    if not count:
        return FileHistory()
    return FileHistory(
        paths=_first_column(db, _SELECT_PATHS, query),
        edits=count,
        first_at=from_ms(first),
        last_at=from_ms_or_none(last),
        sessions=_first_column(db, _SELECT_SESSIONS, query),
        days=tuple(DayCount(*row) for row in select(db, _SELECT_DAYS, query)),
        intents=tuple(
            Intent(text, number, from_ms(at))
            for text, number, at in select(
                db, _SELECT_INTENTS, (*query, MIN_INTENT_LENGTH, intents)
            )
        ),
        items=tuple(row[0] for row in select(db, _SELECT_ITEMS, (*query, items))),
    )


def _first_column(db: apsw.Connection, sql: str, query: PathQuery) -> tuple[str, ...]:
    return tuple(row[0] for row in select(db, f"{sql} LIMIT {_MAX_LISTED}", query))


def count_matching(db: apsw.Connection, part: str) -> ForgottenFiles:
    """Count edits and snapshots of the files whose path contains this text."""
    looks = [row[0] for row in select(db, _SNAPSHOT_PATHS, (part,))]
    return ForgottenFiles(select(db, _COUNT_EDITS, (part,))[0][0], len(looks), tuple(looks))


def delete_matching(db: apsw.Connection, part: str) -> ForgottenFiles:
    """Delete edits and snapshots of the files whose path contains this text."""
    db.execute(_DELETE_EDITS, (part,))
    edits = db.changes()
    db.execute(_DELETE_SNAPSHOTS, (part,))
    return ForgottenFiles(edits, db.changes())


def read_snapshot(db: apsw.Connection, path: str) -> FileSnapshot | None:
    """Return the snapshot of the file's last read, if there is one."""
    for path_, digest, mtime, size, chunks, read_at, reads in select(db, _SELECT_SNAPSHOT, (path,)):
        marks = tuple(ChunkDigest(*mark) for mark in json.loads(chunks))
        return FileSnapshot(path_, digest, mtime, size, marks, from_ms(read_at), reads)
    return None


def write_snapshot(db: apsw.Connection, snapshot: FileSnapshot) -> None:
    """Store a snapshot of the file as it is now."""
    chunks = json.dumps(snapshot.chunks, ensure_ascii=False, separators=(",", ":"))
    state = (snapshot.path, snapshot.sha256, snapshot.mtime_ns, snapshot.size, chunks)
    db.execute(_REPLACE_SNAPSHOT, (*state, to_ms(snapshot.read_at), snapshot.reads))


class FileHistoryMixin:
    """Mixin of `SqliteStore`: file edits and snapshots."""

    _connections: Connections

    def note_edits(self, edits: Sequence[FileEdit], *, actor: str, now: datetime) -> int:
        with self._connections.writing() as db:
            new = add_edits(db, edits)
            line = journal.Line("file edits noted", None, f"{new} of {len(edits)} new")
            journal.write(db, [line], actor=actor, at=to_ms(now))
            return new

    def file_history(
        self, part: str, *, intents: int = 10, items: int = 20, max_classification: int = 3
    ) -> FileHistory:
        with self._connections.read_transaction() as db:
            asked = PathQuery(part, max_classification)
            return read_history(db, asked, intents, items)

    def file_snapshot(self, path: str) -> FileSnapshot | None:
        with self._connections.read_transaction() as db:
            return read_snapshot(db, path)

    def keep_file_snapshot(self, look: FileSnapshot) -> None:
        with self._connections.writing() as db:
            write_snapshot(db, look)

    def files_known(self, part: str) -> ForgottenFiles:
        with self._connections.read_transaction() as db:
            return count_matching(db, part)

    def forget_files(self, part: str, *, actor: str, now: datetime) -> ForgottenFiles:
        with self._connections.writing() as db:
            gone = delete_matching(db, part)
            if not gone.edits and not gone.snapshots:
                return gone
            erase.mark_scrub_pending(db)
            # The journal outlives it, and a path is content.
            told = f"{gone.edits} edits, {gone.snapshots} snapshots"
            line = journal.Line("files forgotten", None, told)
            journal.write(db, [line], actor=actor, at=to_ms(now))
        return gone._replace(out_of_reach=erase.scrub(self._connections))
