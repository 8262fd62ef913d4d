"""Administration of a space in a file: statistics, checks of the file and their repairs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from operator import methodcaller
from pathlib import Path

import apsw

from bethink.core import with_progress
from bethink.core.json_values import Json
from bethink.errors import StoreBusy, StoreDamaged, StoreError
from bethink.ports import CheckResult, Progress
from bethink.store.sql.admin import SqlAdmin
from bethink.store.sql.checks import (
    EXPORT,
    Check,
    Problem,
    check_references,
    run_check,
    shared_checks,
    summarise,
)
from bethink.store.sql.connection import Database, select
from bethink.store.sql.damage import LenientCursor, missing_counters, name_damage, unsound_values
from bethink.store.sql.journal_key import journal_keys
from bethink.store.sqlite import repair as repairs
from bethink.store.sqlite.checkpoint import SELECT_PENDING
from bethink.store.sqlite.connection import SqliteConnections
from bethink.store.sqlite.files import FILE_MODE, is_private
from bethink.store.sqlite.schema import schema_version

_SIDE_FILES = ("", "-wal", "-shm", ".lock", ".key")
_BROKEN = f"pages of the file are broken, and a change could lose what can be read; {EXPORT}"
_OF_AN_INDEX = re.compile("(from|in) index ")
_reindex = methodcaller("execute", "REINDEX")


def run_checks(
    connections: SqliteConnections, *, repair: bool, progress: Progress | None = None
) -> list[CheckResult]:
    """Run all checks; return one finding each, also for those that passed."""
    findings, refusal = _prepare(connections) if repair else ([], "")
    for check in with_progress(_checks(), progress):
        try:
            with _open_for(check, connections, repair=repair and not refusal) as (db, why_not):
                found = run_check(db, check, repair=repair and not (refusal or why_not))
            if not found.ok and (reason := refusal or why_not):
                found = found._replace(detail=f"{found.detail}; not repaired: {reason}")
            findings.append(found)
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


def _prepare(connections: SqliteConnections) -> tuple[list[CheckResult], str]:
    """Before a repair: keep a copy of a damaged file, and say why not to change one."""
    if connections.path is None:
        return [], ""
    try:
        with connections.read_transaction() as db:
            is_whole, is_broken = repairs.file_state(db)
        if is_broken:
            return [], _BROKEN
        if is_whole:
            return [], ""
        copy = repairs.copy_before_repair(connections)
    except StoreBusy:
        raise
    except StoreError as error:
        return [], error.message
    return [CheckResult("copy", True, f"the file as it was before the repair: {copy}")], ""


def _unreadable(name: str, error: StoreDamaged) -> CheckResult:
    """Report damage that stops a check, and what saves the rest."""
    return CheckResult(name, False, f"{error.message}; {EXPORT}")


@contextmanager
def _open_for(
    check: Check, connections: SqliteConnections, *, repair: bool
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


@contextmanager
def _copy(connections: SqliteConnections) -> Iterator[apsw.Connection]:
    """Copy the space into a temporary database, which goes with its connection."""
    with closing(apsw.Connection("")) as copy:
        with connections.read_transaction() as db, copy.backup("main", db, "main") as work:
            work.step()
        copy.cursor_factory = LenientCursor
        journal_keys[copy] = connections.journal_key
        yield copy


def _checks() -> Iterator[Check]:
    """Yield the checks of a file, in the order in which their repairs need each other."""
    good = "tables and indexes are those of this version"
    yield Check("schema", good, repairs.verify_definitions, repairs.rebuild_definitions)
    good = "every counter is there"
    yield Check("counters", good, missing_counters, repairs.restore_counters, done="restored")
    for check in shared_checks().values():
        if check.name == "content":
            done = "restored, as the hash confirms"
            yield check._replace(repair=repairs.quarantine_damaged, done=done)
        elif check.name == "references":
            # After what can be rebuilt: SQLite reports a broken index as a fault of the file.
            yield Check("file", "SQLite reports no errors", _check_file, _reindex)
            yield Check("values", "every value is one that is stored", _check_values)
            yield check._replace(find_problem=_check_references)
        else:
            yield check


def _check_file(db: Database) -> Problem:
    lines = [row[0] for row in db.execute("PRAGMA integrity_check(20)")]
    if lines == ["ok"]:
        return ""
    problem = summarise(lines)
    return problem if all(_OF_AN_INDEX.search(line) for line in lines) else f"{problem}; {EXPORT}"


def _check_values(db: Database) -> Problem:
    # The content of memories has its hashes.
    return list(unsound_values(db, without="item"))


def _check_references(db: Database) -> Problem:
    rows = db.execute("PRAGMA foreign_key_check")
    return check_references(db, [f"{row[0]} {row[1]} -> {row[2]}" for row in rows])


def _check_erasures(connections: SqliteConnections, *, repair: bool) -> CheckResult:
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
        left = connections.try_scrub()
    except StoreError as error:
        return CheckResult("erasures", False, f"{problem}; not repaired: {error.message}")
    with connections.read_transaction() as db:
        if select(db, SELECT_PENDING):
            return CheckResult("erasures", False, f"{problem}: {summarise(left)}")
    return CheckResult("erasures", True, f"{problem}; cleaned", repaired=True)


def _check_modes(path: Path, *, repair: bool) -> CheckResult:
    files = [path.with_name(path.name + rest) for rest in _SIDE_FILES]
    exposed = [file for file in files if file.exists() and not is_private(file)]
    if not exposed:
        return CheckResult("permissions", True, "only the owner can read the files")
    problem = f"others can read {summarise([file.name for file in exposed])}"
    if not repair:
        return CheckResult("permissions", False, problem)
    try:
        for file in exposed:
            file.chmod(FILE_MODE)
    except OSError as error:
        return CheckResult("permissions", False, f"{problem}; not repaired: {error.strerror}")
    return CheckResult("permissions", True, f"{problem}; permissions fixed", repaired=True)


class SqliteAdmin(SqlAdmin):
    """Journal, statistics, backup and checks of a space: `StoreAdmin` in SQLite."""

    _connections: SqliteConnections

    def _describe(self, db: Database) -> Json:
        path = self._connections.path
        return {
            "path": None if path is None else str(path),
            "sqlite": apsw.sqlite_lib_version(),
            "schema": schema_version(db),
        }

    def _size_in_bytes(self, db: Database) -> int:
        path = self._connections.path
        if path is None:
            pages = db.execute("PRAGMA page_count").get
            return int(pages * db.execute("PRAGMA page_size").get)
        files = (path.with_name(path.name + rest) for rest in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _run_checks(self, *, repair: bool, progress: Progress | None) -> list[CheckResult]:
        return run_checks(self._connections.base, repair=repair, progress=progress)
