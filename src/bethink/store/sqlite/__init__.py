"""The SQLite store: one space in one file, every write one transaction."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.errors import StoreDamaged, StoreError
from bethink.store.sql.connection import select
from bethink.store.sql.store import SqlStore
from bethink.store.sqlite.checkpoint import SELECT_PENDING
from bethink.store.sqlite.connection import CeilingConnections, SqliteConnections
from bethink.store.sqlite.opening import open_space

if TYPE_CHECKING:
    from bethink.store.sqlite.admin import SqliteAdmin


class SqliteStore(SqlStore):
    """A `Store` in one SQLite file or, without a path, in memory.

    Safe to use from several threads and several processes at once. Every search sees one
    state of the store; every write is one transaction under the write lock.
    """

    _connections: SqliteConnections

    @classmethod
    def open(cls, path: Path | None, *, space: str, create: bool = True) -> SqliteStore:
        """Open the space in this file, creating it if ``create``; in memory without a path."""
        connections = open_space(path, create=create)
        store = cls(connections, space)
        try:
            store._finish_erasing()
        except BaseException:
            connections.close()
            raise
        return store

    @cached_property
    def admin(self) -> SqliteAdmin:
        """Journal, statistics, exports, backups and checks."""
        from bethink.store.sqlite.admin import SqliteAdmin  # start-up time of a recall

        return SqliteAdmin(self._connections, self.space)

    def _connect_below(self, ceiling: int, *, trusted: bool) -> CeilingConnections:
        return CeilingConnections(self._connections.base, ceiling, trusted=trusted)

    def _finish_erasing(self) -> None:
        """Complete an erase that was interrupted, if that is possible now."""
        try:
            with self._connections.read_transaction() as db:
                pending = select(db, SELECT_PENDING)  # after a crash, or because of a reader
        except StoreDamaged:
            return  # what else is in the file may be readable
        if pending:
            with suppress(StoreError):  # busy, or a full disk: it can be read all the same
                self._connections.try_scrub(timeout_s=0, attempts=1)
