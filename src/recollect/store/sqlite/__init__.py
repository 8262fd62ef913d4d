"""The SQLite store: one space in one file, and everything of it in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreBusy
from recollect.model import Entity, Item, Link, Thread
from recollect.ports import (
    Activity,
    Embedding,
    Event,
    Fading,
    Finding,
    Found,
    Kept,
    Listing,
    Momentum,
    Record,
    Scope,
    Shared,
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
    moments,
    siblings,
    slots,
    stats,
    stirring,
    threads,
    words,
    write,
)
from recollect.store.sqlite import terms as terms_of_text
from recollect.store.sqlite import usage as used
from recollect.store.sqlite.asked_entities import AskedEntities
from recollect.store.sqlite.clock import to_ms, to_ms_or_none
from recollect.store.sqlite.connection import Connections, generation
from recollect.store.sqlite.ending import Ending
from recollect.store.sqlite.entity_index import EntityIndex
from recollect.store.sqlite.filed import Filed
from recollect.store.sqlite.merging import Merging
from recollect.store.sqlite.opening import open_space
from recollect.store.sqlite.rows import Hydrate
from recollect.store.sqlite.scope import compile_scope
from recollect.store.sqlite.signatures import SignatureIndex
from recollect.store.sqlite.slots import Slotted
from recollect.store.sqlite.staged import Staged
from recollect.store.sqlite.vectors import VectorIndex

if TYPE_CHECKING:
    from recollect.ports import Vector

__all__ = ["SqliteStore"]


class SqliteStore(AskedEntities, Staged, Ending, Slotted, Merging, Filed):
    """A `Store` in one SQLite file or, without a path, in memory.

    Safe to use from several threads and several processes at once. Every search sees
    one state of the store; every write is one transaction under the write lock.
    """

    def __init__(self, connections: Connections, space: str) -> None:
        """Over connections to a space that is ready; `open` is the usual way."""
        self._connections = connections
        self._space = space
        self._vectors = VectorIndex()
        self._signatures = SignatureIndex()
        self._hydrate = Hydrate()
        self._entities = EntityIndex()

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
            return words.search_text(
                db, search, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def search_substring(self, text: str, depth: int, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return words.search_substring(
                db, text, depth, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def search_vector(self, vector: Vector, model: str, depth: int, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return self._vectors.search(
                db, vector, model, depth, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def search_time(
        self,
        start: datetime,
        end: datetime,
        depth: int,
        scope: Scope,
        *,
        overlapping: bool = False,
    ) -> Found:
        within = moments.Window(start, end, overlapping)
        with self._connections.reading() as db:
            return moments.search_time(
                db, within, depth, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def search_entities(self, entities: Sequence[str], depth: int, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return graph.search_entities(
                db, entities, depth, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

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

    def statistics(self, terms: Iterable[str], *, as_of: datetime | None = None) -> WordStatistics:
        with self._connections.reading() as db:
            return words.statistics(db, terms, to_ms_or_none(as_of))

    # Graph

    def find_entities(
        self, text: str, limit: int = 8, *, as_of: datetime | None = None
    ) -> list[Entity]:
        with self._connections.reading() as db:
            return graph.find_entities(db, text, limit, to_ms_or_none(as_of))

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        with self._connections.reading() as db:
            return graph.entities(db, prefix, limit, offset)

    def links_of(
        self,
        ids: Sequence[str],
        types: Sequence[str] = (),
        *,
        incoming: bool = True,
        as_of: datetime | None = None,
    ) -> list[Link]:
        with self._connections.reading() as db:
            return graph.links_of(db, ids, types, incoming, to_ms_or_none(as_of))

    def add_links(
        self, links: Sequence[Link], *, actor: str = "", now: datetime | None = None
    ) -> None:
        at = now or datetime.now(UTC)
        with self._connections.writing() as db:
            graph.add_links(db, links, at)
            if actor:
                journal.write(db, map(_linked, links), actor=actor, at=to_ms(at))

    def remove_links(self, links: Sequence[Link], *, actor: str, now: datetime) -> int:
        with self._connections.writing() as db:
            gone = graph.remove_links(db, links)
            lines = [_linked(link)._replace(kind="unlinked") for link in gone]
            journal.write(db, lines, actor=actor, at=to_ms(now))
            return len(gone)

    def siblings(
        self,
        ids: Sequence[str],
        *,
        most: int,
        min_confidence: float,
        as_of: datetime | None = None,
    ) -> Shared:
        sure = siblings.Sure(most, min_confidence)
        with self._connections.reading() as db:
            return siblings.siblings(db, ids, sure, to_ms_or_none(as_of))

    def activity(self, entities: Sequence[str], now: datetime) -> dict[str, Activity]:
        with self._connections.reading() as db:
            return used.activity(db, entities, now)

    def momenta(self, entities: Sequence[str], now: datetime) -> dict[str, Momentum]:
        with self._connections.reading() as db:
            return stirring.momenta(db, entities, now)

    def list_entities(self, wanted: Listing, now: datetime) -> list[Entity]:
        with self._connections.reading() as db:
            return stirring.listed(db, wanted, now)

    def usage(self, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
        with self._connections.reading() as db:
            return used.usage(db, ids, now)

    def embeddings(
        self, ids: Sequence[str], model: str, *, as_of: datetime | None = None
    ) -> dict[str, Embedding]:
        with self._connections.reading() as db:
            return self._vectors.embeddings(db, ids, model, to_ms_or_none(as_of))

    # Threads

    def put_thread(self, thread: Thread, *, actor: str, now: datetime) -> None:
        with self._connections.writing() as db:
            threads.put_thread(db, thread, actor=actor, now=to_ms(now))

    def drop_thread(self, thread_id: str, *, actor: str, now: datetime) -> None:
        with self._connections.writing() as db:
            threads.drop_thread(db, thread_id, actor=actor, now=to_ms(now))

    def thread(self, thread_id: str) -> Thread | None:
        with self._connections.reading() as db:
            return threads.thread(db, thread_id)

    def threads(self, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        with self._connections.reading() as db:
            return threads.threads(db, limit, offset)

    def threads_of(self, ids: Sequence[str]) -> list[Thread]:
        with self._connections.reading() as db:
            return threads.threads_of(db, ids)

    # Writes

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[Kept]:
        with self._connections.writing() as db:
            kept = write.put(db, self._vectors, records, actor=actor, now=to_ms(now))
            slots.settle(db, records, kept, to_ms(now))
            return kept

    def find_duplicates(self, fingerprint: str, sketch: Sequence[int], scope: Scope) -> list[Item]:
        with self._connections.reading() as db:
            return look.find_duplicates(db, fingerprint, sketch, scope)

    def find_key(self, key: str) -> tuple[str, str] | None:
        with self._connections.reading() as db:
            return look.find_key(db, key)

    def note_use(self, ids: Sequence[str], now: datetime, *, fading: Fading | None = None) -> None:
        with self._connections.writing() as db:
            lifecycle.note_use(db, ids, to_ms(now), fading)

    def set_momenta(self, values: Mapping[str, float], now: datetime) -> None:
        with self._connections.writing() as db:
            stirring.set_momenta(db, values, now)

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

    def changes(self, *, item: str | None, actor: str | None, limit: int) -> list[Event]:
        with self._connections.reading() as db:
            return journal.read_back(db, item, actor, limit)

    def log(self, kind: str, *, item: str | None, actor: str, detail: str, now: datetime) -> None:
        with self._connections.writing() as db:
            line = journal.Line(kind, item, detail)
            journal.write(db, [line], actor=actor, at=to_ms(now))

    def count(self) -> int:
        with self._connections.reading() as db:
            return stats.count(db)

    def most_classified(self) -> int:
        with self._connections.reading() as db:
            return stats.most_classified(db)

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


def _linked(link: Link) -> journal.Line:
    if link.src.kind == "entity":
        # The journal outlives an erase, and whom somebody knows is content.
        return journal.Line("linked", None, "two entities")
    return journal.Line("linked", link.src.id, f"{link.type} {link.dst.id}")
