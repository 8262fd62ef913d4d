"""The context passed to every step, and the protocols of retrievers and stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from bethink.core.lazy import BackgroundCall
from bethink.errors import ModelError
from bethink.model import Caption, Entity, Item, Link, Pool, Query, Timeline
from bethink.ports import (
    Embedder,
    Embedding,
    NoteStore,
    Reranker,
    Scope,
    Store,
    Usage,
    Word,
    WordStatistics,
    is_slow,
    late_interaction,
)

if TYPE_CHECKING:
    from bethink.ports import Vector


T = TypeVar("T")
Boost = Callable[[Item], float | tuple[float, str]]
DEEP_PAGING_FROM = 50


@dataclass(frozen=True, slots=True)
class Context:
    """The query and the services a step may use. Built once per recall.

    ``offered`` is the pool before the gate; only assemblers see it.
    """

    query: Query
    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    boost: Boost | None = None
    offered: Pool = ()
    notes: NoteStore | None = None
    _once: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def scope(self) -> Scope:
        return Scope(self.query.filters, self.query.moment, self.query.as_of)

    def scope_for_levels(self, levels: tuple[str, ...]) -> Scope:
        """The scope narrowed to these levels; unchanged where none are given."""
        asked = self.query.filters.levels
        if not levels or levels == asked:
            return self.scope
        # No level is called so: what the caller and the channel both want may be nothing.
        both = tuple(level for level in levels if not asked or level in asked) or ("none",)
        filters = replace(self.query.filters, levels=both)
        return Scope(filters, self.query.moment, self.query.as_of)

    # What a step asks the store of the graph and of use, it asks here, so that nobody
    # forgets that a question may be about the past.

    def get(self, ids: Iterable[str]) -> dict[str, Item]:
        """Items by id, in their current state or that at ``as_of``."""
        wanted = sorted(set(ids))
        return self.store.get(wanted, as_of=self.query.as_of) if wanted else {}

    def links_of(
        self, ids: Sequence[str], types: Sequence[str] = (), *, incoming: bool = True
    ) -> list[Link]:
        """Links of these nodes that exist now, or existed at ``as_of``."""
        return self.store.links_of(ids, types, incoming=incoming, as_of=self.query.as_of)

    def find_entities(self, limit: int = 8) -> list[Entity]:
        """Entities that the question names, as known now or at ``as_of``."""
        return self.store.find_entities(self.query.text, limit, as_of=self.query.as_of)

    def usage(self, ids: Sequence[str]) -> dict[str, Usage]:
        """Usage of items up to the query's moment."""
        return self.store.usage(ids, self.query.moment) if ids else {}

    def counted(self, terms: Iterable[str]) -> WordStatistics:
        """Document frequencies of index terms, now or at ``as_of``."""
        return self.store.statistics(terms, as_of=self.query.as_of)

    def candidate_limit(self, default: int) -> int:
        """How many candidates to keep: the default, or more for a very large page."""
        asked = self.query.k + self.query.offset + len(self.query.seen)
        return default if asked <= DEEP_PAGING_FROM else max(default, 2 * asked)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Compute a value on first use and share it between the steps of this recall."""
        if name not in self._once:
            self._once[name] = make()
        value: T = self._once[name]
        return value

    def remark(self, text: str) -> None:
        """Add a note about the running step to the trace."""
        remarks: list[str] = self.once("remarks", list)
        remarks.append(text)

    def pop_notes(self) -> str:
        """Return and clear the notes of the running step."""
        return "; ".join(self._once.pop("remarks", ()))

    def embedding(self) -> Embedding:
        """The query's embedding. Raises ModelError where there is no embedder."""
        embedder = self.embedder
        if embedder is None:
            raise ModelError("no embedder is configured")
        begun: BackgroundCall[Embedding] | None = self._once.get("embedding begun")
        if begun is not None:
            return self.once("embedding", begun.result)
        return self.once("embedding", lambda: embedder.embed_query(self.query.text))

    def prefetch_embedding(self) -> None:
        """Start embedding the query in the background, where the embedder is slow.

        The result is dropped if no step uses it.
        """
        embedder, text = self.embedder, self.query.text
        if embedder is not None and is_slow(embedder) and "embedding" not in self._once:
            self.once("embedding begun", lambda: BackgroundCall(lambda: embedder.embed_query(text)))

    def weighted_vector(self) -> Vector:
        """The query's vector with words weighted by idf, where the embedder supports it."""
        return self.once("weighted vector", self._compute_weighted_vector)

    def _compute_weighted_vector(self) -> Vector:
        embedder, words = late_interaction(self.embedder), self.words()
        if embedder is None or not words:
            return self.embedding().vector
        shares = [self.idf(word) for word in words]
        return embedder.weighted([word.shown for word in words], shares, self.query.text)

    def words(self) -> tuple[Word, ...]:
        """The query's words and names, in order."""
        return self.once("words", lambda: self.store.words(self.query.text))

    def statistics(self) -> WordStatistics:
        """Document frequencies of the query's words in this space."""
        return self.once("statistics", self._compute_statistics)

    def _compute_statistics(self) -> WordStatistics:
        return self.counted({term for word in self.words() for term in word.terms})

    def idf(self, word: Word) -> float:
        """Inverse document frequency of a word: that of its rarest term (BM25's idf)."""
        documents, _, frequencies = self.statistics()
        held = min((frequencies.get(term, 0) for term in word.terms), default=documents)
        return math.log(1.0 + (documents - held + 0.5) / (held + 0.5))


class Retriever(Protocol):
    """A retriever: finds candidates in one way and returns its own pool, best first."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float:
        """Its weight in a fusion."""
        ...

    def __call__(self, ctx: Context) -> Pool: ...


@runtime_checkable
class SkippableRetriever(Protocol):
    """A retriever that may be skipped, depending on what others have found."""

    def skip(self, found: Mapping[Retriever, Pool], ctx: Context) -> str:
        """The reason to skip it; an empty string where it should run."""
        ...


@runtime_checkable
class PrefetchingRetriever(Protocol):
    """A retriever with work to start before any other retriever runs."""

    def begin(self, ctx: Context) -> None:
        """Start slow work; the retriever may still be skipped."""
        ...


class Fusion(Protocol):
    """Merges the retrievers' pools into one."""

    @property
    def name(self) -> str: ...

    def __call__(self, found: Mapping[Retriever, Pool], ctx: Context) -> Pool: ...


class Stage(Protocol):
    """Transforms a pool of candidates into another, best first."""

    @property
    def name(self) -> str: ...

    def __call__(self, pool: Pool, ctx: Context) -> Pool: ...


class AnswerExtras(NamedTuple):
    """What an assembler adds to an answer."""

    captions: tuple[Caption, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    warnings: tuple[str, ...] = ()


class Assembler(Protocol):
    """Adds context to the hits: captions, timelines, warnings."""

    @property
    def name(self) -> str: ...

    def __call__(self, hits: Pool, ctx: Context) -> AnswerExtras: ...


@runtime_checkable
class OptionalStage(Protocol):
    """A stage that may lack what it needs; the pipeline then continues without it."""

    def skip(self, pool: Pool, ctx: Context) -> str:
        """The reason to skip it; an empty string where it should run."""
        ...
