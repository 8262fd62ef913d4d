"""Administration of a space: journal, statistics, backup, checks and their repairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from bethink.core import with_progress
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused, StoreBusy, StoreDamaged, StoreError
from bethink.ports import CheckResult, Event, Progress
from bethink.store.sqlite import erase, revisions
from bethink.store.sqlite.db import history
from bethink.store.sqlite.db.ceiling import ceiling_of, is_below_ceiling, without_ceiling
from bethink.store.sqlite.db.checkpoint import SELECT_PENDING
from bethink.store.sqlite.db.connection import Connections, add_functions, generation, select
from bethink.store.sqlite.db.damage import LenientCursor, name_damage, unsound_values
from bethink.store.sqlite.db.lock import FILE_MODE, is_private
from bethink.store.sqlite.db.opening import schema_version
from bethink.store.sqlite.db.sql_functions import FIRST_MS, LAST_MS, from_ms_or_none, to_ms
from bethink.store.sqlite.entities import (
    drop_invalid_vectors,
    recount_mentions,
    verify_entity_vectors,
    verify_mentions,
)
from bethink.store.sqlite.repair import (
    DOCTOR_ACTOR,
    KEPT_TALLY,
    SORTS,
    TALLY,
    copy_before_repair,
    damaged_rows,
    file_state,
    quarantine_damaged,
    rebuild_definitions,
    recount,
    repair_states,
    restore_counters,
    verify_counters,
    verify_counts,
    verify_definitions,
)
from bethink.store.sqlite.search import abmind_queries, word_index
from bethink.store.sqlite.search.vectors import VectorIndex

_SIDE_FILES = ("", "-wal", "-shm", ".lock", ".key")
_MAX_LISTED = 10
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
    SELECT id FROM thread WHERE NOT EXISTS (SELECT 1 FROM thread_member WHERE thread = thread.id
        AND thread_member.classification = thread.classification)
"""
_ORPHANED_MENTIONS = """
    SELECT src, dst FROM link
    WHERE type IN ('mentions', 'mentioned') AND src_kind = 'item' AND dst_kind = 'entity' AND (
        NOT EXISTS (SELECT 1 FROM item WHERE item.id = link.src)
        OR NOT EXISTS (SELECT 1 FROM entity WHERE entity.id = link.dst))
"""
_ORPHANED_STATEMENTS = """
    SELECT src, type, dst FROM link WHERE stated_by <> ''
    AND NOT EXISTS (SELECT 1 FROM item WHERE item.id = link.stated_by)
"""
_UNSUPERSEDED = """
    SELECT i.id FROM item AS i WHERE i.live_to IS NULL AND i.status = 'superseded'
    AND NOT EXISTS (SELECT 1 FROM link AS l WHERE l.dst = i.id AND l.dst_kind = 'item'
        AND l.src_kind = 'item' AND l.type = 'supersedes') ORDER BY i.id
"""
_EXPORT = "what can be read stays readable: save it with bethink export, import it into a new space"
_BROKEN = f"pages of the file are broken, and a change could lose what can be read; {_EXPORT}"
_HIDDEN = "those who may see everything can tell"
_QUARANTINED = (
    "quarantined, not repaired: restore it from a backup, or erase it; an export holds its bytes"
)

Problem = str
_OF_AN_INDEX = re.compile("(from|in) index ")


class _Check(NamedTuple):
    """One integrity check: finds problems, and repairs them where possible."""

    name: str
    ok_message: str
    find_problem: Callable[[apsw.Connection], Problem]
    repair: Callable[[apsw.Connection], None] | None = None
    writes: bool = False
    warn: Callable[[apsw.Connection], str] | None = None  # of what cannot be checked
    remains: str = ""  # what a repair does to damage that cannot be undone
    done: str = "rebuilt"  # what a repair does to the rest


def run_checks(
    connections: Connections,
    vectors: VectorIndex,
    *,
    repair: bool,
    progress: Progress | None = None,
) -> list[CheckResult]:
    """Run all checks; return one finding each, also for those that passed."""
    findings, refusal = _prepare(connections) if repair else ([], "")
    for check in with_progress(_checks(vectors), progress):
        try:
            with _open_for(check, connections, repair=repair and not refusal) as (db, why_not):
                found = _run_check(db, check, repair=repair and not (refusal or why_not))
            findings.append(found if found.ok else _with_reason(found, refusal or why_not))
        except StoreDamaged as error:
            findings.append(_unreadable(check.name, error))
            # Indexes may have what the table has not: none is made anew from damaged rows.
            refusal = refusal or _BROKEN
        except StoreBusy:
            raise
        except StoreError as error:
            # Each check has its own transaction: what it could not do is as it was.
            unknown = f"it cannot be checked: {error.message}"
            findings.append(CheckResult(check.name, False, unknown))
    findings.append(_check_erasures(connections, repair=repair and not refusal))
    if connections.path is not None:
        findings.append(_check_modes(connections.path, repair=repair))
    return findings


def _prepare(connections: Connections) -> tuple[list[CheckResult], str]:
    """Before a repair: keep a copy of a damaged file, and say why not to change one."""
    if connections.path is None:
        return [], ""
    try:
        with connections.read_transaction() as db:
            state = file_state(db)
        if state.is_broken:
            return [], _BROKEN
        if state.is_whole:
            return [], ""
        copy = copy_before_repair(connections)
    except StoreBusy:
        raise
    except StoreError as error:
        return [], error.message
    return [CheckResult("copy", True, f"the file as it was before the repair: {copy}")], ""


def _unreadable(name: str, error: StoreDamaged) -> CheckResult:
    """Report damage that stops a check, and what saves the rest."""
    return CheckResult(name, False, f"{error.message}; {_EXPORT}")


@contextmanager
def _open_for(
    check: _Check, connections: Connections, *, repair: bool
) -> Iterator[tuple[apsw.Connection, str]]:
    """Open the transaction that a check needs; a copy, and why, if the file is not writable."""
    with ExitStack() as stack:
        if not (repair or check.writes):
            yield stack.enter_context(connections.read_transaction()), ""
            return
        try:
            db, why_not = stack.enter_context(connections.write_transaction(commit=repair)), ""
        except (StoreDamaged, StoreBusy):
            raise
        except StoreError as error:
            db, why_not = stack.enter_context(_copy(connections)), error.message
        with name_damage(db, connections.name):
            yield db, why_not if repair else ""


def _with_reason(found: CheckResult, why_not: str) -> CheckResult:
    """Add to a finding why it was not repaired."""
    if not why_not:
        return found
    return found._replace(detail=f"{found.detail}; not repaired: {why_not}")


@contextmanager
def _copy(connections: Connections) -> Iterator[apsw.Connection]:
    """Copy the space into a temporary database, which goes with its connection."""
    with closing(apsw.Connection("")) as copy:
        with connections.read_transaction() as db, copy.backup("main", db, "main") as work:
            work.step()
        copy.cursor_factory = LenientCursor
        add_functions(copy)
        yield copy


def _checks(vectors: VectorIndex) -> Iterator[_Check]:
    # What others are made from first.
    good = "tables and indexes are those of this version"
    yield _Check("schema", good, verify_definitions, rebuild_definitions)
    good = "every counter is there"
    yield _Check("counters", good, verify_counters, restore_counters, done="restored")
    good, done = "every revision matches its hash", "restored, as the hash confirms"
    repair = quarantine_damaged
    yield _Check("content", good, _check_contents, repair, remains=_QUARANTINED, done=done)
    # Rebuildable data before the file: SQLite reports a broken index as a fault of it.
    # The FTS5 integrity check needs a write transaction.
    good = "the word index matches the memories"
    yield _Check("words", good, _check_words, word_index.rebuild_word_index, writes=True)
    good = "binary codes match the vectors"
    yield _Check("vectors", good, _vector_check(vectors), vectors.rebuild)
    good = "every text has a signature"
    yield _Check("signatures", good, _check_signatures, abmind_queries.rebuild_signatures)
    good = "right size, no orphans"
    yield _Check("entity vectors", good, verify_entity_vectors, drop_invalid_vectors)
    good = "every revision has the end and the status that were stored"
    done = "restored from the journal"
    yield _Check("state", good, _check_states, repair_states, remains=_QUARANTINED, done=done)
    yield _Check("file", "SQLite reports no errors", _check_file, _rebuild_indexes)
    yield _Check("values", "every value is one that is stored", _check_values)
    yield _Check("references", "no dangling references", _check_references)
    good = "entities count the memories that mention them"
    yield _Check("mentions", good, verify_mentions, recount_mentions)
    yield _Check("revisions", "only the last revision of a memory is live", _check_revisions)
    good = "every memory's status matches its last recorded change"
    yield _Check("status", good, history.verify_status_history, history.repair_status_history)
    good = "every superseded memory has a successor"
    yield _Check("superseded", good, _check_superseded, _reactivate_unsuperseded)
    yield _Check("counts", "statistics count what there is", verify_counts, recount)
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
    after = _find_problem(db, check)
    if after and check.remains:
        return CheckResult(check.name, False, f"{problem}; {check.remains}")
    if after:
        return CheckResult(check.name, False, f"{problem}; the repair failed: {after}")
    return CheckResult(check.name, True, f"{problem}; {check.done}", repaired=True)


def _find_problem(db: apsw.Connection, check: _Check) -> Problem:
    try:
        return check.find_problem(db)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return f"cannot read it: {error}; {_EXPORT}"


def _check_file(db: apsw.Connection) -> Problem:
    lines = [row[0] for row in db.execute("PRAGMA integrity_check(20)")]
    if lines == ["ok"]:
        return ""
    problem = _summarise(lines)
    return problem if all(_OF_AN_INDEX.search(line) for line in lines) else f"{problem}; {_EXPORT}"


def _rebuild_indexes(db: apsw.Connection) -> None:
    db.execute("REINDEX")


def _check_references(db: apsw.Connection) -> Problem:
    broken = [f"{row[0]} {row[1]} -> {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
    # A memory has many rows, so no foreign key can refer from a thread to it.
    broken += [f"thread {row[0]} -> memory {row[1]}" for row in db.execute(_ORPHANED_MEMBERS)]
    broken += [f"thread {row[0]} has no member" for row in db.execute(_EMPTY_THREADS)]
    broken += [f"mention {row[0]} -> {row[1]}" for row in db.execute(_ORPHANED_MENTIONS)]
    broken += [" ".join(row) for row in db.execute(_ORPHANED_STATEMENTS)]
    return _summarise(broken)


def _check_contents(db: apsw.Connection) -> Problem:
    damaged = [
        f"{item} (revision {rev}{', quarantined' if status == 'quarantined' else ''})"
        for _, item, rev, status in damaged_rows(db)
    ]
    return f"content does not match its hash: {_summarise(damaged)}" if damaged else ""


def _check_states(db: apsw.Connection) -> Problem:
    wrong = [
        f"{row.id} (revision {row.rev}{', quarantined' if row.status == b'quarantined' else ''})"
        for row in history.wrong_states(db)
    ]
    return f"its end or status does not match its hash: {_summarise(wrong)}" if wrong else ""


def _check_values(db: apsw.Connection) -> Problem:
    # The content of memories has its hashes.
    return _summarise(list(unsound_values(db, without="item")))


def _check_revisions(db: apsw.Connection) -> Problem:
    wrong = [row[0] for row in db.execute(_EXTRA_LIVE_REVISIONS)]
    return f"an earlier revision is live: {_summarise(wrong)}" if wrong else ""


def _check_superseded(db: apsw.Connection) -> Problem:
    ids = [row[0] for row in db.execute(_UNSUPERSEDED)]
    return f"superseded without a successor: {_summarise(ids)}" if ids else ""


def _reactivate_unsuperseded(db: apsw.Connection) -> None:
    ids = [row[0] for row in db.execute(_UNSUPERSEDED)]
    now = to_ms(datetime.now(UTC))
    revisions.set_status(db, ids, "active", actor=DOCTOR_ACTOR, now=now)


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
    try:
        with connections.read_transaction() as db:
            pending = bool(select(db, SELECT_PENDING))
    except StoreDamaged as error:
        return _unreadable("erasures", error)
    if not pending:
        return CheckResult("erasures", True, "nothing erased is left in the file")
    problem = "erased data may remain in free pages or in the log"
    if not repair:
        return CheckResult("erasures", False, problem)
    try:
        left = erase.scrub(connections)
    except StoreError as error:
        return CheckResult("erasures", False, f"{problem}; not repaired: {error.message}")
    with connections.read_transaction() as db:
        if select(db, SELECT_PENDING):
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
    try:
        for file in exposed:
            file.chmod(FILE_MODE)
    except OSError as error:
        return CheckResult("permissions", False, f"{problem}; not repaired: {error.strerror}")
    return CheckResult("permissions", True, f"{problem}; permissions fixed", repaired=True)


def _summarise(entries: Sequence[str]) -> str:
    listed = ", ".join(entries[:_MAX_LISTED])
    more = len(entries) - _MAX_LISTED
    return f"{listed} and {more} more" if more > 0 else listed


# One that several memories state counts once. These are found by the index of them: as an
# expression the source asks for no other order.
_COUNT_LINKS = """
    SELECT (SELECT count(*) FROM link) - (SELECT count(*) FROM link WHERE stated_by <> '')
        + (SELECT count(*) FROM (SELECT DISTINCT s.src || '', s.type, s.dst FROM link AS s
            WHERE s.stated_by <> '' AND NOT EXISTS (SELECT 1 FROM link AS c WHERE c.src = s.src
                AND c.type = s.type AND c.dst = s.dst AND c.src_kind = 'entity'
                AND c.dst_kind = 'entity' AND c.stated_by = '')) AS stated)
"""
_COUNTS = {
    "memories": "SELECT count(*) FROM item WHERE live_to IS NULL",
    "forgotten": "SELECT count(DISTINCT e.id) FROM item AS e WHERE e.live_to IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM item AS l WHERE l.id = e.id AND l.live_to IS NULL)",
    "revisions": "SELECT count(*) FROM item",
    "entities": "SELECT count(*) FROM entity",
    "links": _COUNT_LINKS,
    "threads": "SELECT count(DISTINCT id) FROM thread",
    "words": "SELECT count(*) FROM term",
    "vectors": "SELECT count(*) FROM vector WHERE key = rid",
    "passages": "SELECT count(*) FROM vector WHERE key <> rid",
    "unembedded": "SELECT count(*) FROM item"
    " WHERE live_to IS NULL AND rid NOT IN (SELECT rid FROM vector)",
    "erased": "SELECT count(*) FROM tombstone",
    "events": "SELECT count(*) FROM event",
}
# All without those that ended: a count without a condition reads no row.
_COUNT_LIVE = """
    SELECT (SELECT count(*) FROM item) - (SELECT count(*) FROM item WHERE live_to IS NOT NULL)
"""
# By the index of those above 1; of the others the first one seen mostly tells.
_MOST_CLASSIFIED = """
    SELECT coalesce((SELECT max(classification) FROM item WHERE classification > 1),
        (SELECT classification FROM item WHERE classification = 1 LIMIT 1), 0)
"""
_GROUPED_COLUMNS = tuple(SORTS.split(", "))
_MODELS = """
    SELECT m.name, count(v.key) FROM model AS m
    LEFT JOIN vector AS v ON v.mid = m.mid AND v.key = v.rid
    GROUP BY m.mid ORDER BY m.name
"""
_OF_THE_FILE = ("generation", "bytes", "erased")
_OLDEST = f"""
    SELECT coalesce(occurred_at, stored_at) FROM item WHERE live_to IS NULL
        AND coalesce(occurred_at, stored_at) BETWEEN {FIRST_MS} AND {LAST_MS}
    ORDER BY coalesce(occurred_at, stored_at) LIMIT 1
"""
_TIME_SPAN = f"SELECT ({_OLDEST}), ({_OLDEST.replace(' LIMIT', ' DESC LIMIT')})"
# What the models themselves count, for a connection that sees everything.
_VECTORS = "SELECT name, slots - passages, passages FROM model ORDER BY name"
# What is kept, for the same.
_KEPT = {
    "memories": "SELECT coalesce(sum(count), 0) FROM tally",
    "links": "SELECT coalesce((SELECT count FROM link_tally), 0)",
    # No line is ever removed.
    "events": "SELECT coalesce((SELECT max(seq) FROM event) - (SELECT min(seq) FROM event) + 1, 0)",
    "revisions": "SELECT (SELECT coalesce(sum(count), 0) FROM tally)"
    " + (SELECT count(*) FROM item WHERE live_to IS NOT NULL)",
}


def count_live(db: apsw.Connection) -> int:
    """Return the number of live items."""
    return int(db.execute(_COUNTS["memories"] if is_below_ceiling(db) else _COUNT_LIVE).get)


def max_classification(db: apsw.Connection) -> int:
    """Return the highest classification of any revision, of forgotten items too."""
    return int(db.execute(_MOST_CLASSIFIED).get)


def space_stats(db: apsw.Connection, connections: Connections, space: str) -> dict[str, Any]:
    """Return all counts, sizes and versions of a space, by name."""
    first, last = db.execute(_TIME_SPAN).get
    stats: dict[str, Any] = {
        "space": space,
        "path": None if connections.path is None else str(connections.path),
        "sqlite": apsw.sqlite_lib_version(),
        "schema": schema_version(db),
        "generation": generation(db),
        "bytes": _size_in_bytes(db, connections),
        "oldest": from_ms_or_none(first),
        "newest": from_ms_or_none(last),
        **_count_all(db),
        **_count_groups(db),
        "models": {},
    }
    if not is_below_ceiling(db):
        return stats | {"models": {name: own for name, own, _ in select(db, _VECTORS)}}
    stats["models"] = dict(db.execute(_MODELS))
    # The whole file tells of what is hidden.
    models = {name: count for name, count in stats["models"].items() if count}
    return {name: stats[name] for name in stats if name not in _OF_THE_FILE} | {"models": models}


def _count_all(db: apsw.Connection) -> dict[str, int]:
    """Return how many there are of each kind of thing; vectors as their models count them."""
    if is_below_ceiling(db):
        return {name: db.execute(sql).get for name, sql in _COUNTS.items()}
    models = select(db, _VECTORS)
    known = {
        "vectors": sum(own for _, own, _ in models),
        "passages": sum(passages for _, _, passages in models),
        "unembedded": 0,
    }
    queries = {name: sql for name, sql in {**_COUNTS, **_KEPT}.items() if name not in known}
    counts = {name: db.execute(sql).get for name, sql in queries.items()} | known
    if counts["vectors"] < counts["revisions"]:
        counts["unembedded"] = db.execute(_COUNTS["unembedded"]).get
    return {name: counts[name] for name in _COUNTS}


def _count_groups(db: apsw.Connection) -> dict[str, dict[str, int]]:
    """Count live items by each of some columns, most first."""
    rows = select(db, TALLY if is_below_ceiling(db) else KEPT_TALLY)
    found = {}
    for place, column in enumerate(_GROUPED_COLUMNS):
        counts: Counter[str] = Counter()
        for row in rows:
            if row[place] is not None:
                counts[row[place]] += row[-1]
        by_count = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        found[f"by_{column}"] = dict(by_count)
    return found


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
        from bethink.store.sqlite.export import dump_records

        return dump_records(self._connections, self._space)

    def load(self, records: Iterable[Mapping[str, Any]], *, actor: str, now: datetime) -> int:
        # start-up time: a recall needs none of it
        from bethink.store.sqlite.load import load_records

        with self._connections.write_transaction() as db:
            ceiling = ceiling_of(self._connections)
            return load_records(db, records, actor=actor, now=to_ms(now), ceiling=ceiling)

    def check(self, *, repair: bool = False, progress: Progress | None = None) -> list[CheckResult]:
        whole = without_ceiling(self._connections)
        if whole is self._connections:
            return self._run_checks(whole, repair=repair, progress=progress)
        if repair:
            raise Refused("only those who may see everything can repair the store")
        found = self._run_checks(whole, repair=False, progress=progress)
        # What is wrong may be above the ceiling.
        fine = {one.name for one in found if one.ok and not one.warning}
        return [one if one.name in fine else one._replace(detail=_HIDDEN) for one in found]

    def _run_checks(
        self, whole: Connections, *, repair: bool, progress: Progress | None
    ) -> list[CheckResult]:
        return run_checks(whole, self._vectors, repair=repair, progress=progress)
