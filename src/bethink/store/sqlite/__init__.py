"""The SQLite store: one space in one file, every write one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import StoreBusy
from bethink.model import Entity, Item, Link, Thread
from bethink.ports import (
    Activity,
    CheckResult,
    Embedding,
    EntityListing,
    Event,
    Momentum,
    PutResult,
    Record,
    Scope,
    SearchResult,
    SharedEntities,
    TextSearch,
    Usage,
    UsageDecay,
    Word,
    WordStatistics,
)
from bethink.store.sqlite import check as stats
from bethink.store.sqlite import erase, lifecycle, threads
from bethink.store.sqlite import lifecycle as slots
from bethink.store.sqlite import links as graph
from bethink.store.sqlite import put as write
from bethink.store.sqlite import usage as stirring
from bethink.store.sqlite import usage as used
from bethink.store.sqlite.db import history as journal
from bethink.store.sqlite.db.connection import Connections, generation
from bethink.store.sqlite.db.opening import open_space
from bethink.store.sqlite.db.rows import HydrateRows
from bethink.store.sqlite.db.sql_functions import to_ms, to_ms_or_none
from bethink.store.sqlite.entities import EntityIndex, EntityMergeMixin, EntityQueriesMixin
from bethink.store.sqlite.erase import RemovalMixin
from bethink.store.sqlite.files import FileHistoryMixin
from bethink.store.sqlite.lifecycle import FactSlotsMixin
from bethink.store.sqlite.search import browse as look
from bethink.store.sqlite.search import browse as moments
from bethink.store.sqlite.search import browse as siblings
from bethink.store.sqlite.search import lexical as terms_of_text
from bethink.store.sqlite.search import word_index as words
from bethink.store.sqlite.search.scope import compile_scope
from bethink.store.sqlite.search.staged import SignatureIndex, StagedSearchMixin
from bethink.store.sqlite.search.vectors import VectorIndex

if TYPE_CHECKING:
    from bethink.ports import Vector

__all__ = ["SqliteStore"]


class SqliteStore(
    EntityQueriesMixin,
    StagedSearchMixin,
    RemovalMixin,
    FactSlotsMixin,
    EntityMergeMixin,
    FileHistoryMixin,
):
    """A `Store` in one SQLite file or, without a path, in memory.

    Safe to use from several threads and several processes at once. Every search sees one
    state of the store; every write is one transaction under the write lock.
    """

    def __init__(self, connections: Connections, space: str) -> None:
        """Wrap connections to a space that is ready; `open` is the usual way."""
        self._connections = connections
        self._space = space
        self._vectors = VectorIndex()
        self._signatures = SignatureIndex()
        self._hydrate = HydrateRows()
        self._entities = EntityIndex()

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

    def _finish_erasing(self) -> None:
        """Complete an erase that was interrupted, unless the store is busy."""
        with self._connections.read_transaction() as db:
            pending = erase.is_scrub_pending(db)
        if pending:
            with suppress(StoreBusy):
                erase.scrub(self._connections, timeout_s=0, attempts=1)

    def close(self) -> None:
        """Close the connections of all threads. Acknowledged writes are safe."""
        self._connections.close()

    @property
    def space(self) -> str:
        """The name of the space."""
        return self._space

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._connections.read_transaction():
            yield

    # Searches

    def search_text(self, search: TextSearch, scope: Scope) -> SearchResult:
        with self._connections.read_transaction() as db:
            return words.search_text(
                db, search, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def search_substring(self, text: str, depth: int, scope: Scope) -> SearchResult:
        with self._connections.read_transaction() as db:
            return words.search_substring(
                db, text, depth, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def search_vector(self, vector: Vector, model: str, depth: int, scope: Scope) -> SearchResult:
        with self._connections.read_transaction() as db:
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
    ) -> SearchResult:
        within = moments.TimeWindow(start, end, overlapping)
        with self._connections.read_transaction() as db:
            return moments.search_time(
                db, within, depth, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def search_entities(self, entities: Sequence[str], depth: int, scope: Scope) -> SearchResult:
        with self._connections.read_transaction() as db:
            return graph.search_entities(
                db, entities, depth, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def browse(self, scope: Scope, *, limit: int, after: str | None = None) -> list[Item]:
        with self._connections.read_transaction() as db:
            return look.browse_items(db, scope, limit, after)

    def around(self, item_id: str, *, window: int, scope: Scope) -> list[Item]:
        with self._connections.read_transaction() as db:
            return look.neighbours_of(db, item_id, window, scope)

    def terms(self, text: str) -> tuple[str, ...]:
        with self._connections.read_transaction() as db:
            return words.index_terms(db, text)

    def words(self, text: str) -> tuple[Word, ...]:
        with self._connections.read_transaction() as db:
            return terms_of_text.query_words_of(db, text)

    def statistics(self, terms: Iterable[str], *, as_of: datetime | None = None) -> WordStatistics:
        with self._connections.read_transaction() as db:
            return words.word_statistics(db, terms, to_ms_or_none(as_of))

    # Graph

    def find_entities(
        self, text: str, limit: int = 8, *, as_of: datetime | None = None
    ) -> list[Entity]:
        with self._connections.read_transaction() as db:
            return graph.find_entities(db, text, limit, to_ms_or_none(as_of))

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        with self._connections.read_transaction() as db:
            return graph.list_entities(db, prefix, limit, offset)

    def links_of(
        self,
        ids: Sequence[str],
        types: Sequence[str] = (),
        *,
        incoming: bool = True,
        as_of: datetime | None = None,
    ) -> list[Link]:
        with self._connections.read_transaction() as db:
            return graph.links_of(db, ids, types, incoming, to_ms_or_none(as_of))

    def add_links(
        self, links: Sequence[Link], *, actor: str = "", now: datetime | None = None
    ) -> None:
        at = now or datetime.now(UTC)
        with self._connections.writing() as db:
            graph.add_links(db, links, at)
            if actor:
                journal.write(db, map(_link_line, links), actor=actor, at=to_ms(at))

    def remove_links(self, links: Sequence[Link], *, actor: str, now: datetime) -> int:
        with self._connections.writing() as db:
            gone = graph.remove_links(db, links)
            lines = [_link_line(link)._replace(kind="unlinked") for link in gone]
            journal.write(db, lines, actor=actor, at=to_ms(now))
            return len(gone)

    def siblings(
        self,
        ids: Sequence[str],
        *,
        most: int,
        min_confidence: float,
        as_of: datetime | None = None,
    ) -> SharedEntities:
        sure = siblings.SiblingLimits(most, min_confidence)
        with self._connections.read_transaction() as db:
            return siblings.find_siblings(db, ids, sure, to_ms_or_none(as_of))

    def activity(self, entities: Sequence[str], now: datetime) -> dict[str, Activity]:
        with self._connections.read_transaction() as db:
            return used.read_activity(db, entities, now)

    def momenta(self, entities: Sequence[str], now: datetime) -> dict[str, Momentum]:
        with self._connections.read_transaction() as db:
            return stirring.read_momenta(db, entities, now)

    def list_entities(self, wanted: EntityListing, now: datetime) -> list[Entity]:
        with self._connections.read_transaction() as db:
            return stirring.rank_entities(db, wanted, now)

    def usage(self, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
        with self._connections.read_transaction() as db:
            return used.read_usage(db, ids, now)

    def embeddings(
        self, ids: Sequence[str], model: str, *, as_of: datetime | None = None
    ) -> dict[str, Embedding]:
        with self._connections.read_transaction() as db:
            return self._vectors.embeddings(db, ids, model, to_ms_or_none(as_of))

    # Threads

    def put_thread(self, thread: Thread, *, actor: str, now: datetime) -> None:
        with self._connections.writing() as db:
            threads.put_thread(db, thread, actor=actor, now=to_ms(now))

    def drop_thread(self, thread_id: str, *, actor: str, now: datetime) -> None:
        with self._connections.writing() as db:
            threads.drop_thread(db, thread_id, actor=actor, now=to_ms(now))

    def thread(self, thread_id: str) -> Thread | None:
        with self._connections.read_transaction() as db:
            return threads.read_thread(db, thread_id)

    def threads(self, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        with self._connections.read_transaction() as db:
            return threads.list_threads(db, limit, offset)

    def threads_of(self, ids: Sequence[str]) -> list[Thread]:
        with self._connections.read_transaction() as db:
            return threads.threads_of(db, ids)

    # Writes

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[PutResult]:
        with self._connections.writing() as db:
            kept = write.put_records(db, self._vectors, records, actor=actor, now=to_ms(now))
            slots.apply_supersessions(db, records, kept, to_ms(now))
            return kept

    def find_duplicates(self, fingerprint: str, sketch: Sequence[int], scope: Scope) -> list[Item]:
        with self._connections.read_transaction() as db:
            return look.find_duplicates(db, fingerprint, sketch, scope)

    def find_key(self, key: str) -> tuple[str, str] | None:
        with self._connections.read_transaction() as db:
            return look.find_idempotency_key(db, key)

    def note_use(
        self, ids: Sequence[str], now: datetime, *, fading: UsageDecay | None = None
    ) -> None:
        with self._connections.writing() as db:
            lifecycle.record_use(db, ids, to_ms(now), fading)

    def set_momenta(self, values: Mapping[str, float], now: datetime) -> None:
        with self._connections.writing() as db:
            stirring.write_momenta(db, values, now)

    def unembedded(self, model: str, limit: int) -> list[Item]:
        with self._connections.read_transaction() as db:
            return lifecycle.unembedded_items(db, self._vectors, model, limit)

    def set_embeddings(self, model: str, embeddings: Mapping[str, Embedding]) -> None:
        with self._connections.writing() as db:
            lifecycle.set_item_embeddings(db, self._vectors, model, embeddings)

    # Keeping

    def get(self, ids: Sequence[str], *, as_of: datetime | None = None) -> dict[str, Item]:
        with self._connections.read_transaction() as db:
            return look.get_items(db, ids, as_of)

    def resolve(self, part: str) -> list[str]:
        with self._connections.read_transaction() as db:
            return look.resolve_id(db, part)

    def history(self, item_id: str) -> list[Item]:
        with self._connections.read_transaction() as db:
            return look.revisions_of(db, item_id)

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        with self._connections.read_transaction() as db:
            return journal.read(db, after, limit)

    def changes(self, *, item: str | None, actor: str | None, limit: int) -> list[Event]:
        with self._connections.read_transaction() as db:
            return journal.read_newest(db, item, actor, limit)

    def log(self, kind: str, *, item: str | None, actor: str, detail: str, now: datetime) -> None:
        with self._connections.writing() as db:
            line = journal.Line(kind, item, detail)
            journal.write(db, [line], actor=actor, at=to_ms(now))

    def count(self) -> int:
        with self._connections.read_transaction() as db:
            return stats.count_live(db)

    def most_classified(self) -> int:
        with self._connections.read_transaction() as db:
            return stats.max_classification(db)

    def stats(self) -> dict[str, Any]:
        with self._connections.read_transaction() as db:
            return stats.space_stats(db, self._connections, self._space)

    def generation(self) -> int:
        with self._connections.read_transaction() as db:
            return generation(db)

    def dump(self) -> Iterator[dict[str, Any]]:
        from bethink.store.sqlite.transfer import (
            dump_records,  # start-up time: a recall needs none of it
        )

        return dump_records(self._connections, self._space)

    def load(self, records: Iterable[Mapping[str, Any]], *, actor: str, now: datetime) -> int:
        from bethink.store.sqlite.transfer import (
            load_records,  # start-up time: a recall needs none of it
        )

        with self._connections.writing() as db:
            return load_records(db, records, actor=actor, now=to_ms(now))

    def check(self, *, repair: bool = False) -> list[CheckResult]:
        from bethink.store.sqlite.check import (
            run_checks,  # start-up time: a recall needs none of it
        )

        return run_checks(self._connections, self._vectors, repair=repair)


def _link_line(link: Link) -> journal.Line:
    if link.src.kind == "entity":
        # The journal outlives an erase, and whom somebody knows is content.
        return journal.Line("linked", None, "two entities")
    return journal.Line("linked", link.src.id, f"{link.type} {link.dst.id}")
