"""The PostgreSQL store: many spaces in one database, each isolated by the server."""

from __future__ import annotations

from bethink.core import with_progress
from bethink.core.json_values import Json
from bethink.errors import StoreBusy, StoreError
from bethink.ports import CheckResult, Progress
from bethink.store.postgres.connections import PgCeiling, PgConnections
from bethink.store.postgres.opening import open_space
from bethink.store.postgres.schema import migrations
from bethink.store.sql.admin import SqlAdmin
from bethink.store.sql.checks import run_check, shared_checks
from bethink.store.sql.connection import Database
from bethink.store.sql.store import SqlStore

_SIZE = """
    SELECT coalesce(sum(pg_column_size(i.text) + pg_column_size(i.about)
        + pg_column_size(i.metadata)), 0) FROM item AS i
"""
_VECTOR_SIZE = "SELECT coalesce(sum(length(v.data) + length(v.tokens)), 0) FROM vector AS v"


class PgAdmin(SqlAdmin):
    """Journal, statistics, export and checks of a space: `StoreAdmin` on a server."""

    _connections: PgConnections

    def _describe(self, db: Database) -> Json:
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


class PostgresStore(SqlStore):
    """A `Store` on a PostgreSQL server.

    What it does is said once, in `store.sql`, whose statements are translated for the server
    (`translate`). Safe to use from several threads and processes at once: a search sees one
    state of the space, a write is one transaction under the lock of the space's row.
    """

    remote = True  # reads wait for the network, and other threads may go on meanwhile
    _connections: PgConnections

    def __init__(self, connections: PgConnections, space: str) -> None:
        super().__init__(connections, space)
        self.admin = PgAdmin(connections, space)

    @classmethod
    def open(cls, url: str, *, space: str, create: bool = True) -> PostgresStore:
        """Open a space of the database at a URL, creating it if ``create``."""
        return cls(open_space(url, space, create=create), space)

    def _connect_below(self, ceiling: int, *, trusted: bool) -> PgCeiling:
        return PgCeiling(self._connections.base, ceiling, trusted=trusted)
