"""The context passed to every step, and the protocols of retrievers and stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from bethink.core.dataclass import dataclass, field, replace
from bethink.core.lazy import BackgroundCall
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import bm25_idf
from bethink.errors import ModelError
from bethink.model import Assessment, Caption, Entity, Item, Link, Pool, Query, Timeline
from bethink.ports import (
    Background,
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
_SET_EMBEDDER = "bethink config set embedder encoder && bethink reindex"


def no_embedder() -> ModelError:
    """Return the error of a part that needs an embedder, and how to have one."""
    return ModelError("no embedder is configured", remedy=_SET_EMBEDDER)


class _Cache:
    """What one recall has computed so far; ``shared`` holds the values of `PerRecall`."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.prefetched: BackgroundCall[Embedding] | None = None
        self.embedding: Embedding | None = None
        self.weighted_vector: Vector | None = None
        self.background: Background | None = None
        self.words: tuple[Word, ...] | None = None
        self.statistics: WordStatistics | None = None
        self.shared: dict[PerRecall[Any], Any] = {}
        self.pools: dict[Retriever, tuple[Pool, tuple[str, ...]]] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The query and the services a step may use. Built once per recall.

    ``offered`` is the pool before the gate; only assemblers see it. ``vouched`` is how sure
    the answer would be without the memories of trust 0, where there are any.
    """

    query: Query
    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    boost: Boost | None = None
    offered: Pool = ()
    notes: NoteStore | None = None
    vouched: Assessment | None = None
    _cache: _Cache = field(default_factory=_Cache, repr=False, compare=False)

    def for_query(self, query: Query) -> Context:
        """The same services for another query, with nothing computed yet."""
        return replace(self, query=query, vouched=None, _cache=_Cache())

    def for_store(self, store: Store) -> Context:
        """The same question to another view of the space; only its embedding is kept."""
        cache = _Cache()
        cache.prefetched, cache.embedding = self._cache.prefetched, self._cache.embedding
        return replace(self, store=store, _cache=cache)

    @property
    def scope(self) -> Scope:
        return Scope(self.query.filters, self.query.moment, self.query.as_of)

    def scope_for_levels(self, levels: tuple[str, ...]) -> Scope:
        """The scope narrowed to these levels; unchanged where none are given."""
        requested = self.query.filters.levels
        if not levels or levels == requested:
            return self.scope
        # "none" is no level: it matches nothing where request and retriever share no level.
        both = tuple(level for level in levels if not requested or level in requested) or ("none",)
        filters = replace(self.query.filters, levels=both)
        return Scope(filters, self.query.moment, self.query.as_of)

    # Stages query graph and usage through these methods, which apply `as_of`.

    def get(self, ids: Iterable[str]) -> dict[str, Item]:
        """Items by id, in their current state or that at ``as_of``."""
        sorted_ids = sorted(set(ids))
        return self.store.items.get(sorted_ids, as_of=self.query.as_of) if sorted_ids else {}

    def links_of(
        self, ids: Sequence[str], types: Sequence[str] = (), *, incoming: bool = True
    ) -> list[Link]:
        """Links of these nodes that exist now, or existed at ``as_of``."""
        return self.store.graph.links_of(ids, types, incoming=incoming, as_of=self.query.as_of)

    def find_entities(self, limit: int = 8) -> list[Entity]:
        """Entities that the question names, as known now or at ``as_of``."""
        texts = (self.query.text,)
        return self.store.graph.find_entities(texts, limit, as_of=self.query.as_of)[0]

    def usage(self, ids: Sequence[str]) -> dict[str, Usage]:
        """Usage of items up to the query's moment."""
        return self.store.activity.usage(ids, self.query.moment) if ids else {}

    def term_statistics(self, terms: Iterable[str]) -> WordStatistics:
        """Document frequencies of index terms, now or at ``as_of``."""
        return self.store.search.statistics(terms, as_of=self.query.as_of)

    def candidate_limit(self, default: int) -> int:
        """How many candidates to keep: the default, or more for a very large page."""
        needed = self.query.k + self.query.offset + len(self.query.seen)
        return default if needed < DEEP_PAGING_FROM else max(default, 2 * needed)

    def add_step_note(self, text: str) -> None:
        """Add a note about the running step to the trace."""
        self._cache.notes.append(text)

    def pop_step_notes(self) -> str:
        """Return and clear the notes of the running step."""
        notes = "; ".join(self._cache.notes)
        self._cache.notes.clear()
        return notes

    def keep_pools(self) -> None:
        """Keep what retrievers find, for another pass over the same snapshot."""
        self._cache.pools = {}

    def pool_of(self, retriever: Retriever) -> Pool:
        """What a retriever finds, with its notes; kept where `keep_pools` was called."""
        pools, notes = self._cache.pools, self._cache.notes
        if pools is None:
            return retriever(self)
        if retriever in pools:
            pool, pool_notes = pools[retriever]
            notes.extend(pool_notes)
            return pool
        before = len(notes)
        pool = retriever(self)
        pools[retriever] = (pool, tuple(notes[before:]))
        return pool

    def embedding(self) -> Embedding:
        """The query's embedding. Raises ModelError where there is no embedder."""
        embedder = self.embedder
        if embedder is None:
            raise no_embedder()
        cache = self._cache
        if cache.embedding is None:
            prefetched = cache.prefetched
            cache.embedding = (
                prefetched.result() if prefetched else embedder.embed_query(self.query.text)
            )
        return cache.embedding

    @property
    def has_embedding(self) -> bool:
        """Whether a step has used the query's embedding already."""
        return self._cache.embedding is not None or self._cache.weighted_vector is not None

    def prefetch_embedding(self) -> None:
        """Start embedding the query in the background, where the embedder is slow.

        The result is dropped if no step uses it.
        """
        embedder, text, cache = self.embedder, self.query.text, self._cache
        started = cache.embedding is not None or cache.prefetched is not None
        if embedder is not None and is_slow(embedder) and not started:
            cache.prefetched = BackgroundCall(lambda: embedder.embed_query(text))

    def weighted_vector(self) -> Vector:
        """The query's vector with words weighted by idf, where the embedder supports it."""
        cache = self._cache
        if cache.weighted_vector is None:
            cache.weighted_vector = self._compute_weighted_vector()
        return cache.weighted_vector

    def _compute_weighted_vector(self) -> Vector:
        embedder, words = late_interaction(self.embedder), self.words()
        if embedder is None or not words:
            return self.embedding().vector
        shares = [self.idf(word) for word in words]
        return embedder.weighted([word.shown for word in words], shares, self.query.text)

    def note_background(self, background: Background | None) -> None:
        """Keep the usual similarity to the question, as the first dense search measured it."""
        if self._cache.background is None:
            self._cache.background = background

    def background(self) -> Background | None:
        """The usual similarity of the question to all memories; None where none was measured."""
        return self._cache.background

    def words(self) -> tuple[Word, ...]:
        """The query's words and names, in order."""
        cache = self._cache
        if cache.words is None:
            cache.words = self.store.search.words(self.query.text)
        return cache.words

    def statistics(self) -> WordStatistics:
        """Document frequencies of the query's words in this space."""
        cache = self._cache
        if cache.statistics is None:
            cache.statistics = self._compute_statistics()
        return cache.statistics

    def _compute_statistics(self) -> WordStatistics:
        return self.term_statistics({term for word in self.words() for term in word.terms})

    def idf(self, word: Word) -> float:
        """Inverse document frequency of a word: that of its rarest term (BM25's idf)."""
        documents, _, frequencies = self.statistics()
        frequency = min((frequencies.get(term, 0) for term in word.terms), default=documents)
        return bm25_idf(documents, frequency)


class PerRecall(Generic[T]):
    """A function of the context whose value is computed once per recall and shared.

    Written as a decorator by the step that owns the value:

    >>> @PerRecall
    ... def question_length(ctx: Context) -> int:
    ...     return len(ctx.query.text)
    """

    def __init__(self, compute: Callable[[Context], T]) -> None:
        self._compute = compute
        update_wrapper(self, compute)

    def __call__(self, ctx: Context) -> T:
        shared = ctx._cache.shared  # noqa: SLF001 - the two are halves of one thing
        if self not in shared:
            shared[self] = self._compute(ctx)
        value: T = shared[self]
        return value


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

    def prefetch(self, ctx: Context) -> None:
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
