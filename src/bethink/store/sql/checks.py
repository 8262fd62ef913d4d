"""The integrity checks that every store has, and their repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import apsw

from bethink.core.named_tuple import NamedTuple
from bethink.ports import CheckResult
from bethink.store.sql import entities, history, revisions
from bethink.store.sql.connection import Database
from bethink.store.sql.damage import decode_leniently
from bethink.store.sql.rows import SELECT_CONTENT, matches_hash
from bethink.store.sql.search import vector_index, word_index
from bethink.store.sql.sql_functions import to_ms

DOCTOR_ACTOR = "doctor"
_LAST_ROW = "SELECT rid FROM item WHERE id = ? ORDER BY rev DESC LIMIT 1"
SELECT_HASHES = f"SELECT rid, id, rev, status, content_hash, {SELECT_CONTENT} FROM item"
_MAX_LISTED = 10
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
EXPORT = "what can be read stays readable: save it with bethink export, import it into a new space"
QUARANTINED = (
    "quarantined, not repaired: restore it from a backup, or erase it; an export holds its bytes"
)

Problem = str | Sequence[str]  # what is wrong; nothing where all is right


class Check(NamedTuple):
    """One integrity check: finds problems, and repairs them where possible."""

    name: str
    ok_message: str
    find_problem: Callable[[Database], Problem]
    repair: Callable[[Database], None] | None = None
    writes: bool = False
    warn: Callable[[Database], str] | None = None  # of what cannot be checked
    remains: str = ""  # what a repair does to damage that cannot be undone
    done: str = "rebuilt"  # what a repair does to the rest


def shared_checks() -> dict[str, Check]:
    """Return the checks of every store by name; what others are made from comes first."""
    good = "every revision matches its hash"
    checks = [Check("content", good, _check_contents, quarantine_damaged, remains=QUARANTINED)]
    good = "the word index matches the memories"
    # The check of the word tables needs a write transaction.
    verify = word_index.verify_word_index
    checks += [Check("words", good, verify, word_index.rebuild_word_index, writes=True)]
    good = "binary codes match the vectors"
    checks += [Check("vectors", good, _check_vectors, vector_index.rebuild_chunks)]
    good = "right size, no orphans"
    checks += [
        Check("entity vectors", good, entities.verify_entity_vectors, entities.drop_invalid_vectors)
    ]
    good = "every revision has the end and the status that were stored"
    done = "restored from the journal"
    checks += [Check("state", good, _check_states, repair_states, remains=QUARANTINED, done=done)]
    checks += [Check("references", "no dangling references", check_references)]
    good = "entities count the memories that mention them"
    checks += [Check("mentions", good, entities.verify_mentions, entities.recount_mentions)]
    checks += [Check("revisions", "only the last revision of a memory is live", _check_revisions)]
    good = "every memory's status matches its last recorded change"
    repair = history.repair_status_history
    checks += [Check("status", good, history.verify_status_history, repair)]
    good = "every superseded memory has a successor"
    checks += [Check("superseded", good, _check_superseded, _reactivate_unsuperseded)]
    good = "the chain is unbroken"
    checks += [Check("journal", good, history.find_chain_break, warn=history.unchecked_lines)]
    return {check.name: check for check in checks}


def run_check(db: Database, check: Check, *, repair: bool) -> CheckResult:
    """Run one check; repair what it finds, if asked to."""
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


def _find_problem(db: Database, check: Check) -> str:
    try:
        found = check.find_problem(db)
        return found if isinstance(found, str) else summarise(found)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return f"cannot read it: {error}; {EXPORT}"


def check_references(db: Database, broken: Sequence[str] = ()) -> Problem:
    """Name references to what does not exist; ``broken`` are those that the database names."""
    # A memory has many rows, so no foreign key can refer from a thread to it.
    broken = [
        *broken,
        *(f"thread {row[0]} -> memory {row[1]}" for row in db.execute(_ORPHANED_MEMBERS)),
    ]
    broken += [f"thread {row[0]} has no member" for row in db.execute(_EMPTY_THREADS)]
    broken += [f"mention {row[0]} -> {row[1]}" for row in db.execute(_ORPHANED_MENTIONS)]
    broken += [" ".join(row) for row in db.execute(_ORPHANED_STATEMENTS)]
    return broken


def _check_contents(db: Database) -> Problem:
    damaged = _name_rows(damaged_rows(db))
    return f"content does not match its hash: {damaged}" if damaged else ""


def _check_states(db: Database) -> Problem:
    wrong = _name_rows(_wrong_rows(db))
    return f"its end or status does not match its hash: {wrong}" if wrong else ""


def _check_revisions(db: Database) -> Problem:
    wrong = [row[0] for row in db.execute(_EXTRA_LIVE_REVISIONS)]
    return f"an earlier revision is live: {summarise(wrong)}" if wrong else ""


def _check_superseded(db: Database) -> Problem:
    ids = [row[0] for row in db.execute(_UNSUPERSEDED)]
    return f"superseded without a successor: {summarise(ids)}" if ids else ""


def _reactivate_unsuperseded(db: Database) -> None:
    ids = [row[0] for row in db.execute(_UNSUPERSEDED)]
    now = to_ms(datetime.now(UTC))
    revisions.set_status(db, ids, "active", actor=DOCTOR_ACTOR, now=now)


def _check_vectors(db: Database) -> Problem:
    problems = vector_index.verify_chunks(db)
    if stray := db.execute(_VECTORS_WITHOUT_ROW).get:
        problems.append(f"{stray} vectors belong to no revision")
    return problems


def summarise(entries: Sequence[str]) -> str:
    """Name the first entries, and how many more there are."""
    listed = ", ".join(entries[:_MAX_LISTED])
    more = len(entries) - _MAX_LISTED
    return f"{listed} and {more} more" if more > 0 else listed


DamagedRow = tuple[int, str, int, str]  # row, memory, revision and status


def damaged_rows(db: Database) -> Iterator[DamagedRow]:
    """Yield every revision whose content is not what was stored."""
    for rid, item, rev, status, expected, *content in db.execute(SELECT_HASHES):
        if not matches_hash(content, expected):
            yield rid, item, rev, status


def _wrong_rows(db: Database) -> list[DamagedRow]:
    """Return every revision whose end or status is not what was stored."""
    rows = history.wrong_states(db)
    return [(row.rid, row.id, row.rev, decode_leniently(row.status or b"")) for row in rows]


def _name_rows(rows: Iterable[DamagedRow]) -> str:
    return summarise(
        [
            f"{item} (revision {rev}{', quarantined' if status == 'quarantined' else ''})"
            for _, item, rev, status in rows
        ]
    )


def quarantine_damaged(db: Database) -> None:
    """Take damaged revisions out of recall; their content and hash stay as they are."""
    _quarantine(db, list(damaged_rows(db)))


def _quarantine(db: Database, damaged: Iterable[DamagedRow]) -> None:
    now = to_ms(datetime.now(UTC))
    for rid, item, _, status in damaged:
        if status == "quarantined":
            continue
        try:
            # A damaged number or id must not put another revision into quarantine.
            if db.execute(_LAST_ROW, (item,)).get == rid:
                revisions.set_status(db, [item], "quarantined", actor=DOCTOR_ACTOR, now=now)
            history.change_states(db, {rid: {"status": "quarantined"}})
        except apsw.ConstraintError:
            # Its columns have moved, so that SQLite takes no change of the row. Its hash
            # keeps it out of every answer.
            continue


def repair_states(db: Database) -> None:
    """Restore what the hash or the journal confirms, and quarantine the rest."""
    history.restore_states(db)
    _quarantine(db, _wrong_rows(db))
