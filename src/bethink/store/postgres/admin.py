"""Administration of a space on a server: statistics, checks, and what erasing can promise."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw
import psycopg

from bethink.core import with_progress
from bethink.errors import StoreBusy, StoreError
from bethink.ports import CheckResult, EraseReceipt, Progress
from bethink.store.postgres.db.connections import PgCeiling, PgConnections
from bethink.store.postgres.db.distribution import vacuum_shards
from bethink.store.postgres.db.schema import SCHEMA, migrations
from bethink.store.sqlite import admin as shared
from bethink.store.sqlite import repair
from bethink.store.sqlite.admin import SqliteAdmin
from bethink.store.sqlite.db.ceiling import is_below_ceiling
from bethink.store.sqlite.db.connection import Connections, generation
from bethink.store.sqlite.db.sql_functions import from_ms_or_none
from bethink.store.sqlite.items import SqliteItems
from bethink.store.sqlite.search.vectors import VectorIndex

__all__ = ["PgAdmin", "PgItems"]

# What the file of SQLite has and a server takes care of itself.
_NOT_HERE = frozenset({"counters", "counts", "file", "schema", "values"})
_BACKUPS = (
    "the server's freed pages, write-ahead log and backups keep bytes of what was erased until"
    " they are written over or expire"
)
_NOT_VACUUMED = "deleted rows stay in the server's files until it vacuums them"
_SEEN_ON_SHARD = (
    "deleted rows that an older transaction on the space's server still sees stay in its files"
    " until it vacuums again"
)
_STILL_SEEN = re.compile(r"(\d+) are dead but not yet removable")
_SIZE = """
    SELECT coalesce(sum(pg_column_size(i.text) + pg_column_size(i.about)
        + pg_column_size(i.metadata)), 0) FROM item AS i
"""
_VECTOR_SIZE = "SELECT coalesce(sum(length(v.data) + length(v.tokens)), 0) FROM vector AS v"


class PgItems(SqliteItems):
    """The items of a space: `ItemStore` on a server."""

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> EraseReceipt:
        """Remove items, all their revisions and all derived data; vacuum their rows away.

        The write-ahead log and the backups of the server are out of reach.
        """
        connections: Any = self._connections
        base: PgConnections = (
            connections.base if isinstance(connections, PgCeiling) else connections
        )
        base.take_changed()
        receipt = super().erase(ids, actor=actor, now=now)
        if not receipt.ids:
            return receipt
        remaining = (*vacuum(base, base.take_changed()), _BACKUPS)
        return receipt._replace(out_of_reach=(*receipt.out_of_reach, *remaining))


def vacuum(connections: PgConnections, changed: Collection[str]) -> tuple[str, ...]:
    """Remove deleted rows and their index entries from tables; say what remains.

    A table that is locked, or whose deleted rows an older transaction still sees, keeps them.
    """
    if connections.server.distributed:
        return _vacuum_shards(connections)
    names = ", ".join(f"{SCHEMA}.{name}" for name in sorted(changed) if name != "space")
    left: list[bool] = []

    def hear(diagnostic: psycopg.errors.Diagnostic) -> None:
        left.append(_leaves_rows(diagnostic))

    try:
        with connections.server.connection() as connection:
            connection.add_notice_handler(hear)
            try:
                # As the role that connected, which inherits the right: outside of a transaction
                # a role that is set would stay with a session that a pooler gives to others.
                connection.execute(f"VACUUM (VERBOSE, INDEX_CLEANUP ON, SKIP_LOCKED) {names}")
            finally:
                connection.remove_notice_handler(hear)
    except psycopg.Error:
        return (_NOT_VACUUMED,)
    return (_NOT_VACUUMED,) if any(left) else ()


def _vacuum_shards(connections: PgConnections) -> tuple[str, ...]:
    """Vacuum where the space lies; what that leaves, its server tells nobody here."""
    try:
        with connections.server.connection() as connection:
            done = vacuum_shards(connection, connections.space_id, "INDEX_CLEANUP ON")
    except psycopg.Error:
        done = False
    return (_SEEN_ON_SHARD,) if done else (_NOT_VACUUMED,)


def _leaves_rows(diagnostic: psycopg.errors.Diagnostic) -> bool:
    """Whether a message of the vacuum says that rows were left."""
    if diagnostic.severity_nonlocalized == "WARNING":
        return True
    counts = _STILL_SEEN.findall(diagnostic.message_detail or diagnostic.message_primary or "")
    return any(int(count) for count in counts)


class PgAdmin(SqliteAdmin):
    """Journal, statistics, export and checks of a space: `StoreAdmin` on a server."""

    _connections: PgConnections

    def dump(self) -> Iterator[dict[str, Any]]:
        """All persistent data as JSON-ready records, in an order that `load` accepts."""
        from bethink.store.sqlite.export import dump_records  # a recall needs none of it

        return dump_records(self._connections, self._space, self._connections.open_snapshot)

    def stats(self) -> dict[str, Any]:
        """Return all counts, sizes and versions of the space, by name."""
        with self._connections.read_transaction() as db:
            first, last = db.execute(shared._TIME_SPAN).get
            counts = {name: db.execute(sql).get for name, sql in shared._COUNTS.items()}
            groups = {f"by_{one}": _count_by(db, one) for one in shared._GROUPED_COLUMNS}
            models = dict(db.execute(shared._MODELS))
            stats = {
                "space": self._space,
                "path": None,
                "server": self._connections.server.name,
                "schema": migrations()[-1].version,
                "generation": generation(db),
                "bytes": db.execute(_SIZE).get + db.execute(_VECTOR_SIZE).get,
                "oldest": from_ms_or_none(first),
                "newest": from_ms_or_none(last),
                **counts,
                **groups,
                "models": models,
            }
            if not is_below_ceiling(db):
                return stats
        shown = {name: stats[name] for name in stats if name not in shared._OF_THE_FILE}
        return shown | {"models": {name: count for name, count in models.items() if count}}

    def _run_checks(
        self, whole: Connections, *, repair: bool, progress: Progress | None
    ) -> list[CheckResult]:
        findings = []
        for check in with_progress(_checks(self._vectors), progress):
            try:
                # The write transaction of a check that does not repair is rolled back.
                opened = (
                    whole.write_transaction(commit=repair)
                    if repair or check.writes
                    else whole.read_transaction()
                )
                with opened as db:
                    findings.append(shared._run_check(db, check, repair=repair))
            except StoreBusy:
                raise
            except StoreError as error:
                findings.append(CheckResult(check.name, False, error.message))
        return findings


def _count_by(db: apsw.Connection, column: str) -> dict[str, int]:
    sql = (
        f"SELECT {column}, count(*) FROM item WHERE live_to IS NULL AND {column} IS NOT NULL"
        f" GROUP BY {column} ORDER BY count(*) DESC, {column}"
    )
    return dict(db.execute(sql))


def _checks(vectors: VectorIndex) -> Iterator[shared._Check]:
    for check in shared._checks(vectors):
        if check.name == "words":
            yield check._replace(find_problem=_check_words)
        elif check.name == "references":
            yield check._replace(find_problem=_check_references)
        elif check.name == "content":
            yield check._replace(repair=_quarantine_damaged)
        elif check.name not in _NOT_HERE:
            yield check


def _check_words(db: apsw.Connection) -> str:
    from bethink.store.sqlite.search import word_index  # as the shared check does

    return shared._summarise(word_index.verify_word_index(db))


def _check_references(db: apsw.Connection) -> str:
    # The server itself keeps what its foreign keys say.
    broken = [f"thread {row[0]} -> memory {row[1]}" for row in db.execute(shared._ORPHANED_MEMBERS)]
    broken += [f"thread {row[0]} has no member" for row in db.execute(shared._EMPTY_THREADS)]
    broken += [f"mention {row[0]} -> {row[1]}" for row in db.execute(shared._ORPHANED_MENTIONS)]
    broken += [" ".join(row) for row in db.execute(shared._ORPHANED_STATEMENTS)]
    return shared._summarise(broken)


def _quarantine_damaged(db: apsw.Connection) -> None:
    """Take damaged revisions out of recall; their content and hash stay as they are."""
    repair._quarantine(db, list(repair.damaged_rows(db)))
