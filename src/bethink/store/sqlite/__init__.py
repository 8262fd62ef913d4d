"""The SQLite store: one space in one file, every write one transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.errors import StoreDamaged, StoreError
from bethink.store.sql.ceiling import has_untrusted
from bethink.store.sql.connection import select
from bethink.store.sql.graph import SqlGraph
from bethink.store.sql.items import SqlItems
from bethink.store.sql.search.searches import HydrateRows, SqlSearch
from bethink.store.sql.search.vectors import SqlVectors, VectorIndex
from bethink.store.sql.state_cache import StateCache
from bethink.store.sqlite.ceiling import CeilingConnections
from bethink.store.sqlite.checkpoint import SELECT_PENDING
from bethink.store.sqlite.connection import SqliteConnections
from bethink.store.sqlite.opening import open_space

if TYPE_CHECKING:
    from bethink.store.sql.activity import SqlActivity
    from bethink.store.sqlite.admin import SqliteAdmin

__all__ = ["SqliteStore"]


class SqliteStore:
    """A `Store` in one SQLite file or, without a path, in memory.

    Safe to use from several threads and several processes at once. Every search sees one
    state of the store; every write is one transaction under the write lock.
    """

    def __init__(self, connections: SqliteConnections, space: str) -> None:
        """Wrap connections to a space that is ready; `open` is the usual way."""
        self._connections = connections
        cache = StateCache()
        vectors = VectorIndex(cache)
        self.space = space
        self._bounded: dict[tuple[int, bool], SqliteStore] = {}
        self._guard = threading.Lock()
        hydrate = HydrateRows(cache)
        self.search = SqlSearch(connections, vectors, hydrate, cache)
        self.items = SqlItems(connections)
        self.graph = SqlGraph(connections, cache)
        self.vectors = SqlVectors(connections, vectors, hydrate)

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
    def activity(self) -> SqlActivity:
        """What is done with memories: uses, files, threads."""
        from bethink.store.sql.activity import SqlActivity  # start-up time of a recall

        return SqlActivity(self._connections)

    @cached_property
    def admin(self) -> SqliteAdmin:
        """Journal, statistics, exports, backups and checks."""
        from bethink.store.sqlite.admin import SqliteAdmin  # start-up time of a recall

        return SqliteAdmin(self._connections, self.space)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """While held, all reads of this thread see one moment; writes are not allowed."""
        with self._connections.read_transaction():
            yield

    def below(self, ceiling: int) -> SqliteStore:
        """Return the same space as seen by those who may see up to a classification."""
        if ceiling >= self._connections.ceiling:
            return self
        return self._view(ceiling, trusted=self._connections.trusted)

    def trusted(self) -> SqliteStore:
        """Return the same space without memories of trust 0; itself where there are none."""
        if not has_untrusted(self._connections):
            return self
        return self._view(self._connections.ceiling, trusted=True)

    def _view(self, ceiling: int, *, trusted: bool) -> SqliteStore:
        with self._guard:
            view = self._bounded.get((ceiling, trusted))
            if view is None:
                seen = CeilingConnections(self._connections.base, ceiling, trusted=trusted)
                view = self._bounded[ceiling, trusted] = SqliteStore(seen, self.space)
            return view

    def close(self) -> None:
        """Close the connections of all threads. Acknowledged writes are safe."""
        for bounded in self._bounded.values():
            bounded.close()
        self._connections.close()
        self._connections.base.close()

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
