"""A store made of the parts that all stores share, over the connections of one of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Self

from bethink.store.sql.ceiling import has_untrusted
from bethink.store.sql.connection import Connections, generation, is_on_server, read_ahead, select
from bethink.store.sql.graph import SqlGraph, link_queries, unlinked_query
from bethink.store.sql.items import SqlItems, items_ahead
from bethink.store.sql.search.searches import SqlSearch
from bethink.store.sql.search.vectors import SqlVectors, VectorIndex
from bethink.store.sql.state_cache import StateCache

if TYPE_CHECKING:
    from bethink.store.sql.activity import SqlActivity
    from bethink.store.sql.oplog.part import SqlSync


_CONFLICTS_EVERY_S = 60


class SqlStore:
    """What a `Store` has besides its place. Safe to use from several threads at once."""

    def __init__(self, connections: Connections, space: str) -> None:
        """Wrap connections to a space that is ready; `open` is the usual way."""
        self._connections = connections
        self.space = space
        self._conflicted, self._conflicts_due = False, 0.0
        self._bounded: dict[tuple[int, bool], Self] = {}
        self._guard = threading.Lock()
        cache = StateCache()
        vectors = VectorIndex(cache)
        self.search = SqlSearch(connections, vectors, cache)
        self.items = SqlItems(connections)
        self.graph = SqlGraph(connections, cache)
        self.vectors = SqlVectors(connections, vectors)

    @cached_property
    def activity(self) -> SqlActivity:
        """What is done with memories: uses, files, threads."""
        from bethink.store.sql.activity import SqlActivity  # start-up time of a recall

        return SqlActivity(self._connections)

    @cached_property
    def sync(self) -> SqlSync:
        """The log of operations."""
        from bethink.store.sql.oplog.part import SqlSync  # start-up time of a recall

        return SqlSync(self._connections)

    def has_conflicts(self) -> bool:
        """Whether anything was changed on two machines at once; a server is asked each minute."""
        if monotonic() >= self._conflicts_due:
            with self._connections.read_transaction() as db:
                self._conflicted = bool(select(db, "SELECT 1 FROM conflict LIMIT 1"))
                if is_on_server(db):
                    self._conflicts_due = monotonic() + _CONFLICTS_EVERY_S
        return self._conflicted

    @contextmanager
    def snapshot(self, *, at_once: bool = True) -> Iterator[None]:
        """While held, all reads of this thread see one moment; writes are not allowed."""
        with self._connections.read_transaction() as db:
            if at_once and is_on_server(db):
                generation(db)  # which begins the transaction
            yield

    def read_ahead(self, ids: Sequence[str], links: Sequence[tuple[Sequence[str], bool]]) -> None:
        """Tell that items and some of their links will be asked for."""
        with self._connections.read_transaction() as db:
            if ids and is_on_server(db):
                items_ahead(db, ids)
                read_ahead(db, unlinked_query(ids))
                for types, incoming in links:
                    read_ahead(db, *link_queries(ids, types, None, incoming=incoming))

    def below(self, ceiling: int) -> Self:
        """Return the same space as seen by those who may see up to a classification."""
        if ceiling >= self._connections.ceiling:
            return self
        return self._view(ceiling, trusted=self._connections.trusted)

    def trusted(self) -> Self:
        """Return the same space without memories of trust 0; itself where there are none."""
        if not has_untrusted(self._connections):
            return self
        return self._view(self._connections.ceiling, trusted=True)

    def _view(self, ceiling: int, *, trusted: bool) -> Self:
        with self._guard:
            view = self._bounded.get((ceiling, trusted))
            if view is None:
                seen = self._connect_below(ceiling, trusted=trusted)
                view = self._bounded[ceiling, trusted] = type(self)(seen, self.space)
            return view

    def _connect_below(self, ceiling: int, *, trusted: bool) -> Connections:
        """Return connections that see nothing above a classification, or nothing untrusted."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the connections of all threads. Acknowledged writes are safe."""
        for bounded in self._bounded.values():
            bounded.close()
        self._connections.close()
        self._connections.base.close()
