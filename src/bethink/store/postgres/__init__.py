"""The PostgreSQL store: many spaces in one database, each isolated by the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bethink.store.postgres.admin import PgAdmin, PgItems
from bethink.store.postgres.connections import PgCeiling, PgConnections
from bethink.store.postgres.opening import open_space
from bethink.store.sql.activity import SqlActivity
from bethink.store.sql.ceiling import has_untrusted
from bethink.store.sql.graph import SqlGraph
from bethink.store.sql.search.searches import HydrateRows, SqlSearch
from bethink.store.sql.search.vectors import SqlVectors, VectorIndex
from bethink.store.sql.state_cache import StateCache

__all__ = ["PostgresStore"]


class PostgresStore:
    """A `Store` on a PostgreSQL server.

    What it does is said once, in the modules of the SQLite store; their statements are
    translated for the server (`db.translate`). Safe to use from several threads and
    processes at once: a search sees one state of the space, a write is one transaction
    under the lock of the space's row.
    """

    remote = True  # reads wait for the network, and other threads may go on meanwhile

    def __init__(self, connections: PgConnections, space: str) -> None:
        """Wrap connections to a space that is ready; `open` is the usual way."""
        self._connections = connections
        cache = StateCache()
        vectors = VectorIndex(cache)
        self.space = space
        self._bounded: dict[tuple[int, bool], PostgresStore] = {}
        self._guard = threading.Lock()
        hydrate = HydrateRows(cache)
        self.search = SqlSearch(connections, vectors, hydrate, cache)
        self.items = PgItems(connections)
        self.graph = SqlGraph(connections, cache)
        self.vectors = SqlVectors(connections, vectors, hydrate)
        self.activity = SqlActivity(connections)
        self.admin = PgAdmin(connections, space)

    @classmethod
    def open(cls, url: str, *, space: str, create: bool = True) -> PostgresStore:
        """Open a space of the database at a URL, creating it if ``create``."""
        return cls(open_space(url, space, create=create), space)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """While held, all reads of this thread see one moment; writes are not allowed."""
        with self._connections.read_transaction():
            yield

    def below(self, ceiling: int) -> PostgresStore:
        """Return the same space as seen by those who may see up to a classification."""
        if ceiling >= self._connections.ceiling:
            return self
        return self._view(ceiling, trusted=self._connections.trusted)

    def trusted(self) -> PostgresStore:
        """Return the same space without memories of trust 0; itself where there are none."""
        if not has_untrusted(self._connections):
            return self
        return self._view(self._connections.ceiling, trusted=True)

    def _view(self, ceiling: int, *, trusted: bool) -> PostgresStore:
        with self._guard:
            view = self._bounded.get((ceiling, trusted))
            if view is None:
                bounded = PgCeiling(self._connections.base, ceiling, trusted=trusted)
                view = self._bounded[ceiling, trusted] = PostgresStore(bounded, self.space)
            return view

    def close(self) -> None:
        """Release the connections. Acknowledged writes are safe."""
        for bounded in self._bounded.values():
            bounded.close()
        self._connections.close()
        self._connections.base.close()
