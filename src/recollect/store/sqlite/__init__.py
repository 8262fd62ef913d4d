"""The SQLite store: one space in one file, and everything of it in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreBusy
from recollect.model import Entity, Item, Link, Status
from recollect.ports import (
    Activity,
    Embedding,
    Event,
    Finding,
    Found,
    Kept,
    Receipt,
    Record,
    Scope,
    TextSearch,
    Usage,
    Word,
    WordStatistics,
)
from recollect.store.sqlite import (
    erase,
    graph,
    journal,
    lifecycle,
    look,
    stats,
    words,
    write,
)
from recollect.store.sqlite import terms as terms_of_text
from recollect.store.sqlite import usage as used
from recollect.store.sqlite.clock import to_ms
from recollect.store.sqlite.connection import Connections, generation
from recollect.store.sqlite.opening import open_space
from recollect.store.sqlite.rows import Hydrate
from recollect.store.sqlite.scope import compile_scope
from recollect.store.sqlite.vectors import VectorIndex

if TYPE_CHECKING:
    from recollect.ports import Vector

__all__ = ["SqliteStore"]


class SqliteStore:
    """A `Store` in one SQLite file or, without a path, in memory.

    Safe to use from several threads and several processes at once. Every search sees
    one state of the store; every write is one transaction under the write lock.
    """

    def __init__(self, connections: Connections, space: str) -> None:
        """Over connections to a space that is ready; `open` is the usual way."""
        self._connections = connections
        self._space = space
        self._vectors = VectorIndex()
        self._hydrate = Hydrate()

    @classmethod
    def open(cls, path: Path | None, *, space: str, create: bool = True) -> SqliteStore:
        """The space in this file, made unless told otherwise; in memory without one."""
        connections = open_space(path, create=create)
        store = cls(connections, space)
        try:
            store._finish_erasing()
        except BaseException:
            connections.close()
            raise
        return store

    def _finish_erasing(self) -> None:
        """Cleans up after an erase that was cut off, unless somebody is at work."""
        with self._connections.reading() as db:
            pending = erase.is_pending(db)
        if pending:
            with suppress(StoreBusy):
                erase.scrub(self._connections, patience_s=0, attempts=1)

    def close(self) -> None:
        """Closes the connections of all threads. What was acknowledged is safe."""
        self._connections.close()

    @property
    def space(self) -> str:
        """The name of the space."""
        return self._space

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._connections.reading():
            yield

    # Searches

    def search_text(self, search: TextSearch, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return words.search_text(db, search, compile_scope(scope), self._hydrate)

    def search_substring(self, text: str, depth: int, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return words.search_substring(db, text, depth, compile_scope(scope), self._hydrate)

    def search_vector(self, vector: Vector, model: str, depth: int, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return self._vectors.search(
                db, vector, model, depth, compile_scope(scope), self._hydrate
            )

    def search_time(self, start: datetime, end: datetime, depth: int, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return graph.search_time(db, start, end, depth, compile_scope(scope), self._hydrate)

    def search_entities(self, entities: Sequence[str], depth: int, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return graph.search_entities(db, entities, depth, compile_scope(scope), self._hydrate)

    def browse(self, scope: Scope, *, limit: int, after: str | None = None) -> list[Item]:
        with self._connections.reading() as db:
            return look.browse(db, scope, limit, after)

    def around(self, item_id: str, *, window: int, scope: Scope) -> list[Item]:
        with self._connections.reading() as db:
            return look.around(db, item_id, window, scope)

    def terms(self, text: str) -> tuple[str, ...]:
        with self._connections.reading() as db:
            return words.terms(db, text)

    def words(self, text: str) -> tuple[Word, ...]:
        with self._connections.reading() as db:
            return terms_of_text.words(db, text)

    def statistics(self, terms: Iterable[str]) -> WordStatistics:
        with self._connections.reading() as db:
            return words.statistics(db, terms)

    # Graph

    def find_entities(self, text: str, limit: int = 8) -> list[Entity]:
        with self._connections.reading() as db:
            return graph.find_entities(db, text, limit)

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        with self._connections.reading() as db:
            return graph.entities(db, prefix, limit, offset)

    def links_of(
        self, ids: Sequence[str], types: Sequence[str] = (), *, incoming: bool = True
    ) -> list[Link]:
        with self._connections.reading() as db:
            return graph.links_of(db, ids, types, incoming)

    def add_links(self, links: Sequence[Link]) -> None:
        now = datetime.now(UTC)
        with self._connections.writing() as db:
            graph.add_links(db, links, now)

    def activity(self, entities: Sequence[str], now: datetime) -> dict[str, Activity]:
        with self._connections.reading() as db:
            return used.activity(db, entities, now)

    def usage(self, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
        with self._connections.reading() as db:
            return used.usage(db, ids, now)

    def embeddings(
        self, ids: Sequence[str], model: str, *, as_of: datetime | None = None
    ) -> dict[str, Embedding]:
        then = None if as_of is None else to_ms(as_of)
        with self._connections.reading() as db:
            return self._vectors.embeddings(db, ids, model, then)

    # Writes

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[Kept]:
        with self._connections.writing() as db:
            return write.put(db, self._vectors, records, actor=actor, now=to_ms(now))

    def find_duplicates(self, fingerprint: str, sketch: Sequence[int], scope: Scope) -> list[Item]:
        with self._connections.reading() as db:
            return look.find_duplicates(db, fingerprint, sketch, scope)

    def find_key(self, key: str) -> tuple[str, str] | None:
        with self._connections.reading() as db:
            return look.find_key(db, key)

    def end(self, ids: Sequence[str], *, how: str, actor: str, now: datetime) -> list[str]:
        with self._connections.writing() as db:
            return lifecycle.end(db, ids, how=how, actor=actor, now=to_ms(now))

    def restore(self, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]:
        with self._connections.writing() as db:
            return lifecycle.restore(db, self._vectors, ids, actor=actor, now=to_ms(now))

    def set_status(self, ids: Sequence[str], status: Status, *, actor: str, now: datetime) -> None:
        with self._connections.writing() as db:
            lifecycle.set_status(db, ids, status, actor=actor, now=to_ms(now))

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> Receipt:
        with self._connections.writing() as db:
            receipt = erase.erase(db, self._vectors, ids, actor=actor, now=to_ms(now))
        if not receipt.ids:
            return receipt
        left = erase.scrub(self._connections)
        return receipt._replace(out_of_reach=(*receipt.out_of_reach, *left))

    def note_use(self, ids: Sequence[str], now: datetime) -> None:
        with self._connections.writing() as db:
            lifecycle.note_use(db, ids, to_ms(now))

    def unembedded(self, model: str, limit: int) -> list[Item]:
        with self._connections.reading() as db:
            return lifecycle.unembedded(db, self._vectors, model, limit)

    def set_embeddings(self, model: str, embeddings: Mapping[str, Embedding]) -> None:
        with self._connections.writing() as db:
            lifecycle.set_embeddings(db, self._vectors, model, embeddings)

    # Keeping

    def get(self, ids: Sequence[str], *, as_of: datetime | None = None) -> dict[str, Item]:
        with self._connections.reading() as db:
            return look.get(db, ids, as_of)

    def resolve(self, part: str) -> list[str]:
        with self._connections.reading() as db:
            return look.resolve(db, part)

    def history(self, item_id: str) -> list[Item]:
        with self._connections.reading() as db:
            return look.history(db, item_id)

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        with self._connections.reading() as db:
            return journal.read(db, after, limit)

    def log(self, kind: str, *, item: str | None, actor: str, detail: str, now: datetime) -> None:
        with self._connections.writing() as db:
            line = journal.Line(kind, item, detail)
            journal.write(db, [line], actor=actor, at=to_ms(now))

    def count(self) -> int:
        with self._connections.reading() as db:
            return stats.count(db)

    def stats(self) -> dict[str, Any]:
        with self._connections.reading() as db:
            return stats.stats(db, self._connections, self._space)

    def generation(self) -> int:
        with self._connections.reading() as db:
            return generation(db)

    def dump(self) -> Iterator[dict[str, Any]]:
        from recollect.store.sqlite.dump import dump  # start-up time: a recall needs none of it

        return dump(self._connections, self._space)

    def load(self, records: Iterable[Mapping[str, Any]], *, actor: str, now: datetime) -> int:
        from recollect.store.sqlite.load import load  # start-up time: a recall needs none of it

        with self._connections.writing() as db:
            return load(db, records, actor=actor, now=to_ms(now))

    def check(self, *, repair: bool = False) -> list[Finding]:
        from recollect.store.sqlite.check import check  # start-up time: a recall needs none of it

        return check(self._connections, self._vectors, repair=repair)
