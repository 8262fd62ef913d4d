"""The store's doctor: looks at everything that could be wrong, mends what is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.errors import StoreDamaged
from recollect.ports import Finding
from recollect.store.sqlite import (
    entity_index,
    erase,
    journal,
    lifecycle,
    signatures,
    standing,
    words,
)
from recollect.store.sqlite.clock import to_ms
from recollect.store.sqlite.connection import Connections
from recollect.store.sqlite.files import FILE_MODE, is_private
from recollect.store.sqlite.rows import SELECT_CONTENT, content_hash
from recollect.store.sqlite.vectors import VectorIndex

_SIDE_FILES = ("", "-wal", "-shm", ".lock")
_SHOWN = 10
_HASHES = f"SELECT id, rev, content_hash, {SELECT_CONTENT} FROM item"
_UNINDEXED = """
    SELECT count(*) FROM item WHERE rid NOT IN (SELECT id FROM words_docsize)
"""
_UNSTORED = """
    SELECT count(*) FROM words_docsize WHERE id NOT IN (SELECT rid FROM item)
"""
_LIVES = """
    SELECT DISTINCT earlier.id FROM item AS earlier
    JOIN item AS later ON later.id = earlier.id AND later.rev > earlier.rev
    WHERE earlier.live_to IS NULL
"""
_VECTORS_WITHOUT_ROW = "SELECT count(*) FROM vector WHERE rid NOT IN (SELECT rid FROM item)"
_STRAY_MEMBERS = """
    SELECT thread, item FROM thread_member
    WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.id = thread_member.item)
    UNION SELECT thread, item FROM thread_event WHERE item IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM item WHERE item.id = thread_event.item)
"""
_EMPTY_THREADS = """
    SELECT id FROM thread WHERE NOT EXISTS (SELECT 1 FROM thread_member WHERE thread = thread.id)
"""

_UNHELD = """
    SELECT i.id FROM item AS i WHERE i.live_to IS NULL AND i.status = 'superseded'
    AND NOT EXISTS (SELECT 1 FROM link AS l WHERE l.dst = i.id AND l.dst_kind = 'item'
        AND l.src_kind = 'item' AND l.type = 'supersedes') ORDER BY i.id
"""
_DOCTOR = "doctor"

Problem = str


class _Check(NamedTuple):
    """One thing to look at: says what is wrong, and mends it where that can be done."""

    name: str
    good: str
    look: Callable[[apsw.Connection], Problem]
    mend: Callable[[apsw.Connection], None] | None = None
    writes: bool = False


def check(connections: Connections, vectors: VectorIndex, *, repair: bool) -> list[Finding]:
    """One finding for everything looked at, good ones too."""
    findings = []
    for one in _checks(vectors):
        alone = repair or one.writes
        try:
            with connections.writing(keep=repair) if alone else connections.reading() as db:
                findings.append(_examine(db, one, repair=repair))
        except StoreDamaged as error:
            findings.append(Finding(one.name, False, error.message))
    findings.append(_check_erasures(connections, repair=repair))
    if connections.path is not None:
        findings.append(_check_modes(connections.path, repair=repair))
    return findings


def _checks(vectors: VectorIndex) -> Iterator[_Check]:
    # First what can be made anew: SQLite counts a broken index among the file's faults.
    # FTS5 compares itself with the rows in the manner of a write.
    good = "the index holds what the rows say"
    yield _Check("words", good, _words, words.rebuild, writes=True)
    yield _Check("vectors", "bits and vectors agree", _vectors(vectors), vectors.rebuild)
    good = "every text has its own"
    yield _Check("signatures", good, _signatures, signatures.rebuild)
    good = "as long as their model's, and of entities that are there"
    yield _Check("entity vectors", good, entity_index.verify, entity_index.drop_faulty)
    yield _Check("file", "SQLite finds no fault in it", _file, _rebuild_indexes)
    yield _Check("references", "all of them lead somewhere", _references)
    yield _Check("content", "every revision is as it was written", _contents)
    yield _Check("revisions", "at most the last of each memory is live", _revisions)
    good = "what is told of each ends with what holds"
    yield _Check("standings", good, standing.verify, standing.mend)
    good = "each has a memory that superseded it"
    yield _Check("superseded", good, _unheld, _bring_back)
    yield _Check("journal", "the chain is unbroken", _journal)


def _examine(db: apsw.Connection, one: _Check, *, repair: bool) -> Finding:
    problem = _look(db, one)
    if not problem:
        return Finding(one.name, True, one.good)
    if not repair or one.mend is None:
        return Finding(one.name, False, problem)
    one.mend(db)
    after = _look(db, one)
    if after:
        return Finding(one.name, False, f"{problem}; still after a repair: {after}")
    return Finding(one.name, True, f"{problem}; rebuilt", repaired=True)


def _look(db: apsw.Connection, one: _Check) -> Problem:
    try:
        return one.look(db)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return f"cannot be read: {error}"


def _file(db: apsw.Connection) -> Problem:
    lines = [row[0] for row in db.execute("PRAGMA integrity_check(20)")]
    return "" if lines == ["ok"] else _some(lines)


def _rebuild_indexes(db: apsw.Connection) -> None:
    db.execute("REINDEX")


def _references(db: apsw.Connection) -> Problem:
    broken = [f"{row[0]} {row[1]} -> {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
    # Memories have many rows each, so no foreign key can hold what belongs to a thread.
    broken += [f"thread {row[0]} -> memory {row[1]}" for row in db.execute(_STRAY_MEMBERS)]
    broken += [f"thread {row[0]} has no member" for row in db.execute(_EMPTY_THREADS)]
    return _some(broken)


def _contents(db: apsw.Connection) -> Problem:
    changed = [
        f"{item} (revision {rev})"
        for item, rev, expected, *content in db.execute(_HASHES)
        if content_hash(content) != expected
    ]
    return f"not as it was written: {_some(changed)}" if changed else ""


def _revisions(db: apsw.Connection) -> Problem:
    wrong = [row[0] for row in db.execute(_LIVES)]
    return f"more than the last revision is live: {_some(wrong)}" if wrong else ""


def _unheld(db: apsw.Connection) -> Problem:
    alone = [row[0] for row in db.execute(_UNHELD)]
    return f"superseded, but by nothing: {_some(alone)}" if alone else ""


def _bring_back(db: apsw.Connection) -> None:
    alone = [row[0] for row in db.execute(_UNHELD)]
    now = to_ms(datetime.now(UTC))
    lifecycle.set_status(db, alone, "active", actor=_DOCTOR, now=now)


def _words(db: apsw.Connection) -> Problem:
    problems = words.verify(db)
    missing, extra = db.execute(_UNINDEXED).get, db.execute(_UNSTORED).get
    if missing:
        problems.append(f"{missing} revisions are not in the index")
    if extra:
        problems.append(f"{extra} index entries have no revision")
    return _some(problems)


def _vectors(vectors: VectorIndex) -> Callable[[apsw.Connection], Problem]:
    def look(db: apsw.Connection) -> Problem:
        problems = vectors.verify(db)
        stray = db.execute(_VECTORS_WITHOUT_ROW).get
        if stray:
            problems = [*problems, f"{stray} vectors belong to no revision"]
        return _some(problems)

    return look


def _signatures(db: apsw.Connection) -> Problem:
    return _some(signatures.verify(db))


def _journal(db: apsw.Connection) -> Problem:
    return journal.first_broken(journal.read_chained(db), journal.head(db))


def _check_erasures(connections: Connections, *, repair: bool) -> Finding:
    with connections.reading() as db:
        pending = erase.is_pending(db)
    if not pending:
        return Finding("erasures", True, "nothing erased is left in the file")
    problem = "something erased may still stand in free space or in the log"
    if not repair:
        return Finding("erasures", False, problem)
    left = erase.scrub(connections)
    with connections.reading() as db:
        if erase.is_pending(db):
            return Finding("erasures", False, f"{problem}: {_some(left)}")
    return Finding("erasures", True, f"{problem}; cleaned", repaired=True)


def _check_modes(path: Path, *, repair: bool) -> Finding:
    files = [path.with_name(path.name + rest) for rest in _SIDE_FILES]
    open_to_others = [file for file in files if file.exists() and not is_private(file)]
    if not open_to_others:
        return Finding("permissions", True, "only the owner can read the files")
    problem = f"others can read {_some([file.name for file in open_to_others])}"
    if not repair:
        return Finding("permissions", False, problem)
    for file in open_to_others:
        file.chmod(FILE_MODE)
    return Finding("permissions", True, f"{problem}; closed to them", repaired=True)


def _some(things: Sequence[str]) -> str:
    shown = ", ".join(things[:_SHOWN])
    more = len(things) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
