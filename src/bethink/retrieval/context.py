"""The context passed to every step, and the protocols of retrievers and stages."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import update_wrapper
from pathlib import Path
from typing import Generic, Protocol, TypeVar, cast, runtime_checkable

from bethink.core.arrays import Vector
from bethink.core.dataclass import dataclass, field, replace
from bethink.core.lazy import BackgroundCall
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import bm25_idf
from bethink.errors import ModelError
from bethink.model import (
    Assessment,
    Caption,
    Degraded,
    Entity,
    Filters,
    Item,
    Link,
    Pool,
    Query,
    Timeline,
)
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

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Boost = Callable[[Item], float | tuple[float, str]]
# Says by links which newer ones of some pairs of memories, newer and older, update the older.
JudgeHits = Callable[[Sequence[tuple[Item, Item]]], Sequence[Link]]
# What sessions made of memories that they were given: a value and a time, by item and session.
Votes = Mapping[str, Mapping[str, tuple[float, float]]]
DEEP_PAGING_FROM = 50
_SET_EMBEDDER = "bethink config set embedder encoder && bethink reindex"


def no_embedder() -> ModelError:
    """Return the error of a part that needs an embedder, and how to have one."""
    return ModelError("no embedder is configured", remedy=_SET_EMBEDDER)


class _Memo:
    """What one recall has computed so far, and what it could not read.

    ``shared`` holds the values of `PerRecall` and `PerEach`.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.prefetched: BackgroundCall[Embedding] | None = None
        self.embedding: Embedding | None = None
        self.weighted_vector: Vector | None = None
        self.background: Background | None = None
        self.words: tuple[Word, ...] | None = None
        self.statistics: WordStatistics | None = None
        self.shared: dict[object, object] = {}
        self.damage: set[str] = set()
        self.damaged_vectors: set[bytes] = set()
        self.pools: dict[Retriever, tuple[Pool, tuple[str, ...]]] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The query and the services a step may use. Built once per recall.

    ``offered`` is the pool before the gate; only assemblers see it. ``vouched`` is how sure
    the answer would be without the memories of trust 0, where there are any. With
    ``untrusted`` only these are searched. ``judged`` is the verdict so far. ``project`` is the
    folder in whose repository the code of memories is looked at, ``votes`` are those of sessions.
    ``judge`` reads pairs of memories that no write has compared.
    """

    query: Query
    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    boost: Boost | None = None
    offered: Pool = ()
    notes: NoteStore | None = None
    vouched: Assessment | None = None
    untrusted: bool = False
    judged: Assessment | None = None
    project: Path | None = None
    votes: Votes = field(default_factory=dict)
    judge: JudgeHits | None = None
    _memo: _Memo = field(default_factory=_Memo, repr=False, compare=False)

    def for_query(self, query: Query) -> Context:
        """The same services for another query, with nothing computed yet."""
        return replace(self, query=query, vouched=None, judged=None, _memo=_Memo())

    def for_store(self, store: Store) -> Context:
        """The same question to another view of the space; only its embedding is kept."""
        memo = _Memo()
        memo.prefetched, memo.embedding = self._memo.prefetched, self._memo.embedding
        return replace(self, store=store, _memo=memo)

    def for_hidden(self, whole: Store) -> Context:
        """The same question to the memories of trust 0, which this view does not show.

        The words, how rare each is, and the vector are those of the view.
        """
        hidden, known = replace(self.for_store(whole), untrusted=True), self._memo
        memo = hidden._memo  # noqa: SLF001 - of another of its class
        memo.weighted_vector = known.weighted_vector
        memo.words, memo.statistics = known.words, known.statistics
        return hidden

    @property
    def scope(self) -> Scope:
        return self.scope_of(self.query.filters)

    def scope_of(self, filters: Filters) -> Scope:
        """The scope with other filters."""
        return Scope(filters, self.query.moment, self.query.as_of, self.untrusted)

    def scope_for_levels(self, levels: tuple[str, ...]) -> Scope:
        """The scope narrowed to these levels; unchanged where none are given."""
        requested = self.query.filters.levels
        if not levels or levels == requested:
            return self.scope
        # "none" is no level: it matches nothing where request and retriever share no level.
        both = tuple(level for level in levels if not requested or level in requested) or ("none",)
        return self.scope_of(replace(self.query.filters, levels=both))

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
        """How many candidates to keep: the default, or more for a very large page.

        Every page of a question is of the same candidates; without one pages go on to the end.
        """
        needed = self.query.k
        if not self.query.text.strip():
            needed += self.query.offset + len(self.query.seen)
        return default if needed < DEEP_PAGING_FROM else max(default, 2 * needed)

    def add_step_note(self, text: str) -> None:
        """Add a note about the running step to the trace."""
        self._memo.notes.append(text)

    def pop_step_notes(self) -> str:
        """Return and clear the notes of the running step."""
        notes = "; ".join(self._memo.notes)
        self._memo.notes.clear()
        return notes

    def keep_pools(self) -> None:
        """Keep what retrievers find, for another pass over the same snapshot."""
        self._memo.pools = {}

    def pool_of(self, retriever: Retriever) -> Pool:
        """What a retriever finds, with its notes; kept where `keep_pools` was called."""
        pools, notes = self._memo.pools, self._memo.notes
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
        memo = self._memo
        if memo.embedding is None:
            prefetched = memo.prefetched
            memo.embedding = (
                prefetched.result() if prefetched else embedder.embed_query(self.query.text)
            )
        return memo.embedding

    @property
    def has_embedding(self) -> bool:
        """Whether a step has used the query's embedding already."""
        return self._memo.embedding is not None or self._memo.weighted_vector is not None

    def prefetch_embedding(self) -> None:
        """Start embedding the query in the background, where the embedder is slow.

        The result is dropped if no step uses it.
        """
        embedder, text, memo = self.embedder, self.query.text, self._memo
        started = memo.embedding is not None or memo.prefetched is not None
        if embedder is not None and is_slow(embedder) and not started:
            memo.prefetched = BackgroundCall(lambda: embedder.embed_query(text))

    def weighted_vector(self) -> Vector:
        """The query's vector with words weighted by idf, where the embedder supports it."""
        memo = self._memo
        if memo.weighted_vector is None:
            memo.weighted_vector = self._compute_weighted_vector()
        return memo.weighted_vector

    def _compute_weighted_vector(self) -> Vector:
        embedder, words = late_interaction(self.embedder), self.words()
        if embedder is None or not words:
            return self.embedding().vector
        shares = [self.idf(word) for word in words]
        return embedder.weighted([word.shown for word in words], shares, self.query.text)

    def note_background(self, background: Background | None) -> None:
        """Keep the usual similarity to the question, as the first dense search measured it."""
        if self._memo.background is None:
            self._memo.background = background

    def background(self) -> Background | None:
        """The usual similarity of the question to all memories; None where none was measured."""
        return self._memo.background

    def words(self) -> tuple[Word, ...]:
        """The query's words and names, in order."""
        memo = self._memo
        if memo.words is None:
            memo.words = self.store.search.words(self.query.text)
        return memo.words

    def statistics(self) -> WordStatistics:
        """Document frequencies of the query's words in this space."""
        memo = self._memo
        if memo.statistics is None:
            terms = {term for word in self.words() for term in word.terms}
            memo.statistics = self.term_statistics(terms)
        return memo.statistics

    def idf(self, word: Word) -> float:
        """Inverse document frequency of a word: that of its rarest term (BM25's idf)."""
        documents, _, frequencies = self.statistics()
        frequency = min((frequencies.get(term, 0) for term in word.terms), default=documents)
        return bm25_idf(documents, frequency)

    def damage(self) -> Iterable[Degraded]:
        """What no step could read, for the answer to tell."""
        yield from (Degraded("store", reason) for reason in sorted(self._memo.damage))
        if count := len(self._memo.damaged_vectors):
            reason = f"the vectors of {count} memories or passages are damaged (bethink reindex)"
            yield Degraded("vectors", reason)

    def note_damage(self, reason: str = "", vectors: Iterable[bytes] = ()) -> None:
        """Keep for the answer what could not be read: a reason, or damaged vectors."""
        if reason:
            self._memo.damage.add(reason)
        self._memo.damaged_vectors.update(vectors)


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
        shared = ctx._memo.shared  # noqa: SLF001 - the two are halves of one thing
        if self not in shared:
            shared[self] = self._compute(ctx)
        return cast("T", shared[self])


class PerEach(Generic[A, K, T]):
    """A function of several arguments, which computes the value of each once per recall.

    ``compute`` gets the arguments that are new, and returns their values by ``key``.
    """

    def __init__(
        self, compute: Callable[[list[A], Context], Mapping[K, T]], key: Callable[[A], K]
    ) -> None:
        self._compute, self._key = compute, key
        self.known: PerRecall[dict[K, T]] = PerRecall(lambda _: {})

    def __call__(self, arguments: Iterable[A], ctx: Context) -> dict[K, T]:
        """The values of all arguments so far, these among them."""
        known = self.known(ctx)
        if new := [one for one in arguments if self._key(one) not in known]:
            known.update(self._compute(new, ctx))
        return known


class Retriever(Protocol):
    """A retriever: finds candidates in one way and returns its own pool, best first.

    It may have an attribute ``matches`` that says by what: words, pieces, meaning, names or
    time.
    """

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float:
        """Its weight in a fusion."""

    def __call__(self, ctx: Context) -> Pool: ...


@runtime_checkable
class SkippableRetriever(Protocol):
    """A retriever that may be skipped, depending on what others have found."""

    def skip(self, found: Mapping[Retriever, Pool], ctx: Context) -> str:
        """The reason to skip it; an empty string where it should run."""


@runtime_checkable
class PrefetchingRetriever(Protocol):
    """A retriever with work to start before any other retriever runs."""

    def prefetch(self, ctx: Context) -> None:
        """Start slow work; the retriever may still be skipped."""


@runtime_checkable
class ForetellingRetriever(Protocol):
    """A retriever that knows what it will ask of the store before it runs."""

    def read_ahead(self, ctx: Context) -> None:
        """Tell it to a store on a server, which reads it together with other answers."""


@runtime_checkable
class IndexingRetriever(Protocol):
    """A retriever with an index of its own in the store, which is made where it is used."""

    def update_index(self, store: Store, *, only_new: bool = True) -> int:
        """Add what was stored since the last time, or all that is missing; return how much.

        Called while no snapshot is open.
        """


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


@runtime_checkable
class JudgingStage(Protocol):
    """A stage of the gate that also judges how sure the answer is."""

    def judge(self, pool: Pool, ctx: Context) -> tuple[Pool, Assessment]:
        """What is relevant enough, and the assessment of the answer."""


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
