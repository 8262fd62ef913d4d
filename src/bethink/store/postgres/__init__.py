"""The PostgreSQL store: many spaces in one database, each isolated by the server."""

from __future__ import annotations

from bethink.store.postgres.admin import PgAdmin
from bethink.store.postgres.connections import PgCeiling, PgConnections
from bethink.store.postgres.opening import open_space
from bethink.store.sql.store import SqlStore


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
