"""Administration of a space: journal, statistics, backup, checks and their repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from bethink.errors import StoreBusy, StoreDamaged, StoreError
from bethink.ports import CheckResult, Event
from bethink.store.sqlite import erase, revisions
from bethink.store.sqlite.db import history
from bethink.store.sqlite.db.ceiling import is_below_ceiling
from bethink.store.sqlite.db.connection import Connections, LenientCursor, generation
from bethink.store.sqlite.db.lock import FILE_MODE, is_private
from bethink.store.sqlite.db.opening import schema_version
from bethink.store.sqlite.db.rows import SELECT_CONTENT, matches_hash
from bethink.store.sqlite.db.sql_functions import from_ms, from_ms_or_none, to_ms
from bethink.store.sqlite.entities import drop_invalid_vectors, verify_entity_vectors
from bethink.store.sqlite.search import abmind_queries, word_index
from bethink.store.sqlite.search.vectors import VectorIndex

_SIDE_FILES = ("", "-wal", "-shm", ".lock", ".key")
_MAX_LISTED = 10
_SELECT_HASHES = f"SELECT rid, id, rev, status, live_to, content_hash, {SELECT_CONTENT} FROM item"
_IS_LAST_REVISION = "SELECT NOT EXISTS (SELECT 1 FROM item WHERE id = ? AND rev > ?)"
_QUARANTINE_ROW = "UPDATE item SET status = 'quarantined' WHERE rid = ?"
_COUNT_UNINDEXED = """
    SELECT count(*) FROM item WHERE rid NOT IN (SELECT id FROM words_docsize)
"""
_COUNT_ORPHANED_INDEX_ENTRIES = """
    SELECT count(*) FROM words_docsize WHERE id NOT IN (SELECT rid FROM item)
"""
_EXTRA_LIVE_REVISIONS = """
    SELECT DISTINCT earlier.id FROM item AS earlier
    JOIN item AS later ON later.id = earlier.id AND later.rev > earlier.rev
    WHERE earlier.live_to IS NULL
"""
_VECTORS_WITHOUT_ROW = "SELECT count(*) FROM vector WHERE rid NOT IN (SELECT rid FROM item)"
_ORPHANED_MEMBERS = """
    SELECT thread, item FROM thread_member
    WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.id = thread_member.item)
    UNION SELECT thread, item FROM thread_event WHERE item IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM item WHERE item.id = thread_event.item)
"""
_EMPTY_THREADS = """
    SELECT id FROM thread WHERE NOT EXISTS (SELECT 1 FROM thread_member WHERE thread = thread.id)
"""

_UNSUPERSEDED = """
    SELECT i.id FROM item AS i WHERE i.live_to IS NULL AND i.status = 'superseded'
    AND NOT EXISTS (SELECT 1 FROM link AS l WHERE l.dst = i.id AND l.dst_kind = 'item'
        AND l.src_kind = 'item' AND l.type = 'supersedes') ORDER BY i.id
"""
_DOCTOR_ACTOR = "doctor"

Problem = str


class _Check(NamedTuple):
    """One integrity check: finds problems, and repairs them where possible."""

    name: str
    ok_message: str
    find_problem: Callable[[apsw.Connection], Problem]
    repair: Callable[[apsw.Connection], None] | None = None
    writes: bool = False
    warn: Callable[[apsw.Connection], str] | None = None  # of what cannot be checked
    remains: str = ""  # what a repair does to damage that cannot be undone


def run_checks(
    connections: Connections, vectors: VectorIndex, *, repair: bool
) -> list[CheckResult]:
    """Run all checks; return one finding each, also for those that passed."""
    findings = []
    for check in _checks(vectors):
        try:
            with _open_for(check, connections, repair=repair) as db:
                findings.append(_run_check(db, check, repair=repair))
        except StoreDamaged as error:
            findings.append(CheckResult(check.name, False, error.message))
    findings.append(_check_erasures(connections, repair=repair))
    if connections.path is not None:
        findings.append(_check_modes(connections.path, repair=repair))
    return findings


@contextmanager
def _open_for(
    check: _Check, connections: Connections, *, repair: bool
) -> Iterator[apsw.Connection]:
    """Open the transaction that a check needs; a copy where the file cannot be written."""
    with ExitStack() as stack:
        if not (repair or check.writes):
            yield stack.enter_context(connections.read_transaction())
            return
        try:
            db = stack.enter_context(connections.write_transaction(commit=repair))
        except (StoreDamaged, StoreBusy):
            raise
        except StoreError:
            if repair:
                raise
            db = stack.enter_context(_copy(connections))
        yield db


@contextmanager
def _copy(connections: Connections) -> Iterator[apsw.Connection]:
    """Copy the space into a temporary database, which goes with its connection."""
    with closing(apsw.Connection("")) as copy:
        with connections.read_transaction() as db, copy.backup("main", db, "main") as work:
            work.step()
        copy.cursor_factory = LenientCursor
        yield copy


def _checks(vectors: VectorIndex) -> Iterator[_Check]:
    # Rebuildable data first: SQLite reports a broken index as a fault of the file.
    # The FTS5 integrity check needs a write transaction.
    good = "the word index matches the memories"
    yield _Check("words", good, _check_words, word_index.rebuild_word_index, writes=True)
    good = "binary codes match the vectors"
    yield _Check("vectors", good, _vector_check(vectors), vectors.rebuild)
    good = "every text has a signature"
    yield _Check("signatures", good, _check_signatures, abmind_queries.rebuild_signatures)
    good = "right size, no orphans"
    yield _Check(
        "entity vectors",
        good,
        verify_entity_vectors,
        drop_invalid_vectors,
    )
    yield _Check("file", "SQLite reports no errors", _check_file, _rebuild_indexes)
    yield _Check("references", "no dangling references", _check_references)
    yield _Check(
        "content",
        "every revision matches its hash",
        _check_contents,
        _quarantine_damaged,
        remains="quarantined, not repaired: restore it from a backup, or erase it;"
        " an export holds its bytes",
    )
    yield _Check("revisions", "only the last revision of a memory is live", _check_revisions)
    good = "every memory's status matches its last recorded change"
    yield _Check("status", good, history.verify_status_history, history.repair_status_history)
    good = "every superseded memory has a successor"
    yield _Check("superseded", good, _check_superseded, _reactivate_unsuperseded)
    good = "the chain is unbroken"
    yield _Check("journal", good, _check_journal, warn=history.unchecked_lines)


def _run_check(db: apsw.Connection, check: _Check, *, repair: bool) -> CheckResult:
    problem = _find_problem(db, check)
    if not problem:
        warning = check.warn(db) if check.warn is not None else ""
        return CheckResult(check.name, True, warning or check.ok_message, warning=bool(warning))
    if not repair or check.repair is None:
        return CheckResult(check.name, False, problem)
    check.repair(db)
    if check.remains:
        return CheckResult(check.name, False, f"{problem}; {check.remains}")
    after = _find_problem(db, check)
    if after:
        return CheckResult(check.name, False, f"{problem}; the repair failed: {after}")
    return CheckResult(check.name, True, f"{problem}; rebuilt", repaired=True)


def _find_problem(db: apsw.Connection, check: _Check) -> Problem:
    try:
        return check.find_problem(db)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return f"cannot read it: {error}"


def _check_file(db: apsw.Connection) -> Problem:
    lines = [row[0] for row in db.execute("PRAGMA integrity_check(20)")]
    return "" if lines == ["ok"] else _summarise(lines)


def _rebuild_indexes(db: apsw.Connection) -> None:
    db.execute("REINDEX")


def _check_references(db: apsw.Connection) -> Problem:
    broken = [f"{row[0]} {row[1]} -> {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
    # A memory has many rows, so no foreign key can refer from a thread to it.
    broken += [f"thread {row[0]} -> memory {row[1]}" for row in db.execute(_ORPHANED_MEMBERS)]
    broken += [f"thread {row[0]} has no member" for row in db.execute(_EMPTY_THREADS)]
    return _summarise(broken)


def _check_contents(db: apsw.Connection) -> Problem:
    damaged = [
        f"{item} (revision {rev}{', quarantined' if status == 'quarantined' else ''})"
        for _, item, rev, status in _damaged_rows(db)
    ]
    return f"content does not match its hash: {_summarise(damaged)}" if damaged else ""


def _damaged_rows(db: apsw.Connection) -> Iterator[tuple[int, str, int, str]]:
    """Yield row id, id, revision and status of every revision that is not what was stored."""
    for rid, item, rev, status, live_to, expected, *content in db.execute(_SELECT_HASHES):
        if not matches_hash(content, expected) or not _is_time(live_to):
            yield rid, item, rev, status


def _is_time(ms: object) -> bool:
    try:
        return ms is None or (isinstance(ms, int) and bool(from_ms(ms)))
    except OverflowError:
        return False


def _quarantine_damaged(db: apsw.Connection) -> None:
    """Take damaged revisions out of recall; their content and hash stay as they are."""
    now = to_ms(datetime.now(UTC))
    for rid, item, rev, status in list(_damaged_rows(db)):
        if status == "quarantined":
            continue
        try:
            if db.execute(_IS_LAST_REVISION, (item, rev)).get:
                revisions.set_status(db, [item], "quarantined", actor=_DOCTOR_ACTOR, now=now)
            db.execute(_QUARANTINE_ROW, (rid,))
        except apsw.ConstraintError:
            # Its columns have moved, so that SQLite takes no change of the row. Its hash
            # keeps it out of every answer.
            continue


def _check_revisions(db: apsw.Connection) -> Problem:
    wrong = [row[0] for row in db.execute(_EXTRA_LIVE_REVISIONS)]
    return f"an earlier revision is live: {_summarise(wrong)}" if wrong else ""


def _check_superseded(db: apsw.Connection) -> Problem:
    ids = [row[0] for row in db.execute(_UNSUPERSEDED)]
    return f"superseded without a successor: {_summarise(ids)}" if ids else ""


def _reactivate_unsuperseded(db: apsw.Connection) -> None:
    ids = [row[0] for row in db.execute(_UNSUPERSEDED)]
    now = to_ms(datetime.now(UTC))
    revisions.set_status(db, ids, "active", actor=_DOCTOR_ACTOR, now=now)


def _check_words(db: apsw.Connection) -> Problem:
    problems = word_index.verify_word_index(db)
    missing, extra = db.execute(_COUNT_UNINDEXED).get, db.execute(_COUNT_ORPHANED_INDEX_ENTRIES).get
    if missing:
        problems.append(f"{missing} revisions are not in the index")
    if extra:
        problems.append(f"{extra} index entries have no revision")
    return _summarise(problems)


def _vector_check(vectors: VectorIndex) -> Callable[[apsw.Connection], Problem]:
    def find_problem(db: apsw.Connection) -> Problem:
        problems = vectors.verify(db)
        stray = db.execute(_VECTORS_WITHOUT_ROW).get
        if stray:
            problems = [*problems, f"{stray} vectors belong to no revision"]
        return _summarise(problems)

    return find_problem


def _check_signatures(db: apsw.Connection) -> Problem:
    return _summarise(abmind_queries.verify_signatures(db))


def _check_journal(db: apsw.Connection) -> Problem:
    return history.find_chain_break(db)


def _check_erasures(connections: Connections, *, repair: bool) -> CheckResult:
    with connections.read_transaction() as db:
        pending = erase.is_scrub_pending(db)
    if not pending:
        return CheckResult("erasures", True, "nothing erased is left in the file")
    problem = "erased data may remain in free pages or in the log"
    if not repair:
        return CheckResult("erasures", False, problem)
    left = erase.scrub(connections)
    with connections.read_transaction() as db:
        if erase.is_scrub_pending(db):
            return CheckResult("erasures", False, f"{problem}: {_summarise(left)}")
    return CheckResult("erasures", True, f"{problem}; cleaned", repaired=True)


def _check_modes(path: Path, *, repair: bool) -> CheckResult:
    files = [path.with_name(path.name + rest) for rest in _SIDE_FILES]
    exposed = [file for file in files if file.exists() and not is_private(file)]
    if not exposed:
        return CheckResult("permissions", True, "only the owner can read the files")
    problem = f"others can read {_summarise([file.name for file in exposed])}"
    if not repair:
        return CheckResult("permissions", False, problem)
    for file in exposed:
        file.chmod(FILE_MODE)
    return CheckResult("permissions", True, f"{problem}; permissions fixed", repaired=True)


def _summarise(entries: Sequence[str]) -> str:
    listed = ", ".join(entries[:_MAX_LISTED])
    more = len(entries) - _MAX_LISTED
    return f"{listed} and {more} more" if more > 0 else listed


_COUNTS = {
    "memories": "SELECT count(*) FROM item WHERE live_to IS NULL",
    "forgotten": "SELECT count(DISTINCT id) FROM item"
    " WHERE id NOT IN (SELECT id FROM item WHERE live_to IS NULL)",
    "revisions": "SELECT count(*) FROM item",
    "entities": "SELECT count(*) FROM entity",
    "links": "SELECT count(*) FROM link",
    "threads": "SELECT count(*) FROM thread",
    "words": "SELECT count(*) FROM term",
    "vectors": "SELECT count(*) FROM vector WHERE key = rid",
    "passages": "SELECT count(*) FROM vector WHERE key <> rid",
    "unembedded": "SELECT count(*) FROM item"
    " WHERE live_to IS NULL AND rid NOT IN (SELECT rid FROM vector)",
    "erased": "SELECT count(*) FROM tombstone",
    "events": "SELECT count(*) FROM event",
}
_GROUPED_COLUMNS = ("level", "kind", "layer", "tier", "status", "source_class")
_MODELS = """
    SELECT m.name, count(v.key) FROM model AS m
    LEFT JOIN vector AS v ON v.mid = m.mid AND v.key = v.rid
    GROUP BY m.mid ORDER BY m.name
"""
_OF_THE_FILE = ("generation", "bytes", "erased")
_TIME_SPAN = """
    SELECT min(coalesce(occurred_at, stored_at)), max(coalesce(occurred_at, stored_at))
    FROM item WHERE live_to IS NULL
"""


def count_live(db: apsw.Connection) -> int:
    """Return the number of live items."""
    return int(db.execute(_COUNTS["memories"]).get)


def max_classification(db: apsw.Connection) -> int:
    """Return the highest classification of any revision, of forgotten items too."""
    return int(db.execute("SELECT coalesce(max(classification), 0) FROM item").get)


def space_stats(db: apsw.Connection, connections: Connections, space: str) -> dict[str, Any]:
    """Return all counts, sizes and versions of a space, by name."""
    first, last = db.execute(_TIME_SPAN).get
    stats = {
        "space": space,
        "path": None if connections.path is None else str(connections.path),
        "sqlite": apsw.sqlite_lib_version(),
        "schema": schema_version(db),
        "generation": generation(db),
        "bytes": _size_in_bytes(db, connections),
        "oldest": from_ms_or_none(first),
        "newest": from_ms_or_none(last),
        **{name: db.execute(sql).get for name, sql in _COUNTS.items()},
        **{f"by_{column}": _count_by(db, column) for column in _GROUPED_COLUMNS},
        "models": dict(db.execute(_MODELS)),
    }
    if not is_below_ceiling(db):
        return stats
    # The whole file tells of what is hidden.
    models = {name: count for name, count in stats["models"].items() if count}
    return {name: stats[name] for name in stats if name not in _OF_THE_FILE} | {"models": models}


def _count_by(db: apsw.Connection, column: str) -> dict[str, int]:
    sql = (
        f"SELECT {column}, count(*) FROM item WHERE live_to IS NULL AND {column} IS NOT NULL"
        f" GROUP BY {column} ORDER BY count(*) DESC, {column}"
    )
    return dict(db.execute(sql))


def _size_in_bytes(db: apsw.Connection, connections: Connections) -> int:
    if connections.path is None:
        pages = db.execute("PRAGMA page_count").get
        return int(pages * db.execute("PRAGMA page_size").get)
    files = (connections.path.with_name(connections.path.name + rest) for rest in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


class SqliteAdmin:
    """Journal, statistics, backup and checks of a space: `StoreAdmin` in SQLite."""

    def __init__(self, connections: Connections, vectors: VectorIndex, space: str) -> None:
        self._connections = connections
        self._vectors = vectors
        self._space = space

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        with self._connections.read_transaction() as db:
            return history.read_journal(db, after, limit)

    def changes(self, *, item: str | None, actor: str | None, limit: int) -> list[Event]:
        with self._connections.read_transaction() as db:
            return history.read_newest_events(db, item, actor, limit)

    def log(self, kind: str, *, item: str | None, actor: str, detail: str, now: datetime) -> None:
        with self._connections.write_transaction() as db:
            line = history.JournalLine(kind, item, detail)
            history.write_journal(db, [line], actor=actor, at=to_ms(now))

    def count(self) -> int:
        with self._connections.read_transaction() as db:
            return count_live(db)

    def most_classified(self) -> int:
        with self._connections.read_transaction() as db:
            return max_classification(db)

    def stats(self) -> dict[str, Any]:
        with self._connections.read_transaction() as db:
            return space_stats(db, self._connections, self._space)

    def generation(self) -> int:
        with self._connections.read_transaction() as db:
            return generation(db)

    def dump(self) -> Iterator[dict[str, Any]]:
        # start-up time: a recall needs none of it
        from bethink.store.sqlite.transfer import dump_records

        return dump_records(self._connections, self._space)

    def load(self, records: Iterable[Mapping[str, Any]], *, actor: str, now: datetime) -> int:
        # start-up time: a recall needs none of it
        from bethink.store.sqlite.transfer import load_records

        with self._connections.write_transaction() as db:
            return load_records(db, records, actor=actor, now=to_ms(now))

    def check(self, *, repair: bool = False) -> list[CheckResult]:
        return run_checks(self._connections, self._vectors, repair=repair)
