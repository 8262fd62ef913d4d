"""Repair revisions that rot has changed: restore what a hash confirms, quarantine the rest.

Nothing that can still be read is lost: a file whose pages are broken is not changed, and one
whose indexes or values are is copied before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import apsw

from bethink.core.atomic_write import fsync_folder
from bethink.errors import StoreError
from bethink.store.sql import checks, history
from bethink.store.sql.checks import DOCTOR_ACTOR, SELECT_HASHES
from bethink.store.sql.connection import Database, Row, select
from bethink.store.sql.damage import LenientCursor, decode_leniently
from bethink.store.sql.rows import CONTENT, content_hash, matches_hash
from bethink.store.sql.sql_functions import to_ms
from bethink.store.sqlite.connection import SqliteConnections
from bethink.store.sqlite.files import UNFINISHED_COPY, copies_before_repair, make_private_file
from bethink.store.sqlite.schema import migrate, migrations, schema_version

_MAX_COPIES = 2
_OF_A_TREE = re.compile(r"(?m)^(Tree \d|Freelist)|2nd reference")
_SET_CONTENT = f"UPDATE item SET {', '.join(f'{name} = ?' for name in CONTENT)} WHERE rid = ?"
_INDEXES = """
    SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'item'
"""
_RESTORE_HASH = "UPDATE item SET content_hash = ? WHERE rid = ?"


def file_state(db: apsw.Connection) -> tuple[bool, bool]:
    """Return whether the pages of a file are as written, and whether a change can harm it.

    In a tree that is broken a page may belong to two tables, and a change of one would
    overwrite the other.
    """
    try:
        lines = [str(row[0]) for row in db.execute("PRAGMA integrity_check(100)")]
    except (apsw.CorruptError, apsw.NotADBError):
        return False, True
    return lines == ["ok"], any(_OF_A_TREE.search(line) for line in lines)


def copy_before_repair(connections: SqliteConnections) -> Path:
    """Copy the file page by page, as it is, to a private file in its folder; keep the last two."""
    assert connections.path is not None
    with connections.read_transaction() as db:
        return _copy_pages(db, connections.path)


def _copy_pages(db: apsw.Connection, path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    copy = path.with_name(f"{path.name}.{stamp}.damaged.bak")
    unfinished = path.with_name(f"{path.name}.{UNFINISHED_COPY}")
    with suppress(OSError):  # of a disk that cannot be written the next line tells more
        unfinished.unlink(missing_ok=True)
    make_private_file(unfinished)
    try:
        with closing(apsw.Connection(str(unfinished))) as target:
            target.execute("PRAGMA synchronous = FULL").fetchall()
            with target.backup("main", db, "main") as work:
                work.step()
        unfinished.replace(copy)
    except (apsw.Error, StoreError, OSError) as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise StoreError(f"no copy of the file could be made: {error}") from error
    fsync_folder(path.parent)
    for old in copies_before_repair(path)[:-_MAX_COPIES]:
        old.unlink(missing_ok=True)
    return copy


_SELECT_DEFINITIONS = (
    "SELECT type, name, CAST(sql AS BLOB) FROM sqlite_schema WHERE sql IS NOT NULL"
)
MOVED_TRIGGER = "moved_away"  # of a file whose space is now on a server
_NOT_IN_TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'"
_AROUND_MARKS = re.compile(r"\s*([(),])\s*")
Definitions = dict[tuple[str, str], str]


def verify_definitions(db: Database) -> str:
    """Name what is not defined as in a new file of this version; "" when all is.

    Tables that are not ours are left out: nothing reads them.
    """
    expected, found = _expected_definitions(schema_version(db)), _definitions(db)
    wrong = [
        f"{kind} {name} is {'missing' if (kind, name) not in found else 'defined otherwise'}"
        for (kind, name), sql in expected.items()
        if (present := found.get((kind, name), "")) != sql
        and _plain_sql(present) != _plain_sql(sql)
    ]
    wrong += [
        f"{kind} {name} is not one of ours"
        for kind, name in found.keys() - expected.keys()
        if kind != "table"
    ]
    return ", ".join(sorted(wrong))


def rebuild_definitions(db: Database) -> None:
    """Make indexes, triggers and views those of this version; no table is changed."""
    assert isinstance(db, apsw.Connection)  # which has savepoints
    expected, found = _expected_definitions(schema_version(db)), _definitions(db)
    for kind, name in sorted(expected.keys() | found.keys()):
        right, present = expected.get((kind, name), ""), found.get((kind, name), "")
        if kind == "table" or _plain_sql(right) == _plain_sql(present):
            continue
        # Of an index that cannot be made, because rows differ from it, all stays as it was.
        with suppress(apsw.ConstraintError), db:
            if present:
                quoted = name.replace('"', '""')
                db.execute(f'DROP {kind} "{quoted}"')
            if right:
                db.execute(right)


def _definitions(db: Database) -> Definitions:
    """Return the SQL of tables, indexes, triggers and views, without what FTS5 makes itself."""
    shadows = {row[0] for row in db.execute(_NOT_IN_TABLES)}
    return {
        (kind, name): decode_leniently(sql)
        for kind, name, sql in db.execute(_SELECT_DEFINITIONS)
        if name not in shadows and name != MOVED_TRIGGER and not name.startswith("sqlite_")
    }


@cache
def _expected_definitions(version: int) -> Definitions:
    with closing(apsw.Connection(":memory:")) as new:
        migrate(new, None, [step for step in migrations() if step.version <= version])
        return _definitions(new)


def _plain_sql(sql: str) -> str:
    """Return a definition without what a release of SQLite may write otherwise."""
    return _AROUND_MARKS.sub(r"\1", " ".join(sql.replace('"', "").split()))


_ADD_COUNTER = "INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)"


def restore_counters(db: Database) -> None:
    """Add the rows of ``meta`` without which nothing can be written.

    Versions go on with a number that no program has seen; posting lists are made anew after
    it. Only the lost row could tell whether the journal's last line is the last there was: a
    line says that from now on.
    """
    now = to_ms(datetime.now(UTC))
    versions = {"generation": f"{now}", "entities": f"{now}", "packed": f"0:{now}"}
    for name, value in versions.items():
        db.execute(_ADD_COUNTER, (name, value))
    head = history.JournalHead(*next(iter(select(db, history.LAST_LINE)), (0, "")))
    seal = history.JournalChain(db).seal(head)
    db.execute(_ADD_COUNTER, ("journal", ":".join(map(str, head._replace(seal=seal)))))
    if db.changes():
        line = history.JournalLine(history.END_RESTORED, None, "its end was lost")
        history.write_journal(db, [line], actor=DOCTOR_ACTOR, at=now)


def quarantine_damaged(db: Database) -> None:
    """Take damaged revisions out of recall; their content and hash stay as they are.

    Before that, what an index still has right is restored, where the hash confirms it.
    """
    _restore_content_hashes(db)
    damaged = [rid for rid, *_ in checks.damaged_rows(db)]
    if not damaged:
        return
    # All are looked up before the first is restored, which needs indexes that fit the table.
    restored = _read_by_indexes(db, damaged)
    with suppress(apsw.ConstraintError):  # two rows have one id: nothing is changed
        db.execute("REINDEX item")
    for rid, content in restored.items():
        with suppress(apsw.ConstraintError):  # there is more that is wrong with the row
            db.execute(_SET_CONTENT, (*content, rid))
    checks.quarantine_damaged(db)


def _restore_content_hashes(db: Database) -> None:
    """Correct a content hash that is damaged itself: the hash of the state tells what it was."""
    for state in history.wrong_states(db):
        for row in select(db, f"{SELECT_HASHES} WHERE rid = ?", (state.rid,)):
            try:
                hashed = content_hash(row[5:])
                if state._replace(content_hash=hashed.encode()).hash() == state.stored_hash:
                    db.execute(_RESTORE_HASH, (hashed, state.rid))
            except (TypeError, ValueError, apsw.ConstraintError):
                continue  # it has values of types that are never stored


def _read_by_indexes(db: Database, rids: Sequence[int]) -> dict[int, Row]:
    """Return the content of rows as an index has it, where the hash confirms that.

    A list reads ids and times from an index, and so shows rows whose own are damaged.
    """
    if not isinstance(db, apsw.Connection) or not db.filename:
        return {}  # in memory nothing rots
    found: dict[int, Row] = {}
    # SQLite makes no index anew in a connection that has found a broken one.
    with closing(apsw.Connection(db.filename, flags=apsw.SQLITE_OPEN_READONLY)) as reader:
        reader.cursor_factory = LenientCursor
        for name, sql in select(reader, _INDEXES):
            condition = re.search(r"\bWHERE\b.*", sql, re.DOTALL)
            query = f'{SELECT_HASHES} INDEXED BY "{name}" {condition[0] if condition else ""}'
            with suppress(apsw.CorruptError):  # its readable part has been used
                for rid, _, _, _, expected, *content in reader.execute(query):
                    if rid in rids and matches_hash(content, expected):
                        found[rid] = tuple(content)
    return found
