"""Administration of a space on a server: statistics, checks, and what erasing can promise."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import psycopg

from bethink.core import with_progress
from bethink.errors import StoreBusy, StoreError
from bethink.ports import CheckResult, EraseReceipt, Progress
from bethink.store.postgres.connections import PgConnections
from bethink.store.postgres.distribution import vacuum_shards
from bethink.store.postgres.schema import SCHEMA, migrations
from bethink.store.sql.admin import SqlAdmin
from bethink.store.sql.checks import run_check, shared_checks
from bethink.store.sql.connection import Database
from bethink.store.sql.items import SqlItems

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


class PgItems(SqlItems):
    """The items of a space: `ItemStore` on a server."""

    _connections: PgConnections

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> EraseReceipt:
        """Remove items, all their revisions and all derived data; vacuum their rows away.

        The write-ahead log and the backups of the server are out of reach.
        """
        base = self._connections.base
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
    """Vacuum the tables of the space; the server does not report what is left."""
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


class PgAdmin(SqlAdmin):
    """Journal, statistics, export and checks of a space: `StoreAdmin` on a server."""

    _connections: PgConnections

    def _describe(self, db: Database) -> dict[str, Any]:
        del db
        server = self._connections.server.name
        return {"path": None, "server": server, "schema": migrations()[-1].version}

    def _size_in_bytes(self, db: Database) -> int:
        return int(db.execute(_SIZE).get + db.execute(_VECTOR_SIZE).get)

    def _run_checks(self, *, repair: bool, progress: Progress | None) -> list[CheckResult]:
        findings, whole = [], self._connections.base
        for check in with_progress(shared_checks().values(), progress):
            try:
                # The write transaction of a check that does not repair is rolled back.
                opened = (
                    whole.write_transaction(commit=repair)
                    if repair or check.writes
                    else whole.read_transaction()
                )
                with opened as db:
                    findings.append(run_check(db, check, repair=repair))
            except StoreBusy:
                raise
            except StoreError as error:
                findings.append(CheckResult(check.name, False, error.message))
        return findings
