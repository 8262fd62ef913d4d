"""What a step of the walk is given, and the shapes steps have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from recollect.background import Begun
from recollect.errors import ModelError
from recollect.model import Caption, Entity, Item, Link, Pool, Query, Timeline
from recollect.ports import (
    Embedder,
    Embedding,
    Notes,
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
    from recollect.ports import Vector

T = TypeVar("T")
Boost = Callable[[Item], float | tuple[float, str]]
FEW_ASKED = 50


@dataclass(frozen=True, slots=True)
class Context:
    """The query and the live parts a step may ask. Built once for a recall.

    ``offered`` is what the gate was offered; only those who assemble the answer see it.
    """

    query: Query
    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    boost: Boost | None = None
    offered: Pool = ()
    notes: Notes | None = None
    _once: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def scope(self) -> Scope:
        return Scope(self.query.filters, self.query.moment, self.query.as_of)

    def scope_of(self, levels: tuple[str, ...]) -> Scope:
        """The scope, narrowed to these levels; as it is where none are named."""
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
        """Items by id, as they are or, where the past is asked for, were."""
        wanted = sorted(set(ids))
        return self.store.get(wanted, as_of=self.query.as_of) if wanted else {}

    def links_of(
        self, ids: Sequence[str], types: Sequence[str] = (), *, incoming: bool = True
    ) -> list[Link]:
        """The links of these nodes that are, or were, there."""
        return self.store.links_of(ids, types, incoming=incoming, as_of=self.query.as_of)

    def find_entities(self, limit: int = 8) -> list[Entity]:
        """The entities that the question names, as known as they are or were."""
        return self.store.find_entities(self.query.text, limit, as_of=self.query.as_of)

    def usage(self, ids: Sequence[str]) -> dict[str, Usage]:
        """How items have been used up to the moment the answer is for."""
        return self.store.usage(ids, self.query.moment) if ids else {}

    def counted(self, terms: Iterable[str]) -> WordStatistics:
        """How common index words are or were."""
        return self.store.statistics(terms, as_of=self.query.as_of)

    def reach(self, usual: int) -> int:
        """How many candidates to go on with: as usual or, where somebody asks for very
        many, as many as that."""
        asked = self.query.k + self.query.offset + len(self.query.seen)
        return usual if asked <= FEW_ASKED else max(usual, 2 * asked)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Computed when a step first asks, shared by those that ask again."""
        if name not in self._once:
            self._once[name] = make()
        value: T = self._once[name]
        return value

    def remark(self, text: str) -> None:
        """Says something about the step under way; the trace keeps it."""
        remarks: list[str] = self.once("remarks", list)
        remarks.append(text)

    def take_remarks(self) -> str:
        """What the step under way said, once."""
        return "; ".join(self._once.pop("remarks", ()))

    def embedding(self) -> Embedding:
        """The query's embedding. Raises ModelError where there is no embedder."""
        embedder = self.embedder
        if embedder is None:
            raise ModelError("no embedder is configured")
        begun: Begun[Embedding] | None = self._once.get("embedding begun")
        if begun is not None:
            return self.once("embedding", begun.result)
        return self.once("embedding", lambda: embedder.embed_query(self.query.text))

    def begin_embedding(self) -> None:
        """Starts embedding the query beside the steps to come, where the embedder is slow.
        If none of them asks for it, it is dropped."""
        embedder, text = self.embedder, self.query.text
        if embedder is not None and is_slow(embedder) and "embedding" not in self._once:
            self.once("embedding begun", lambda: Begun(lambda: embedder.embed_query(text)))

    def weighted_vector(self) -> Vector:
        """The query's vector with rare words counting for more, where the embedder can."""
        return self.once("weighted vector", self._weigh)

    def _weigh(self) -> Vector:
        embedder, words = late_interaction(self.embedder), self.words()
        if embedder is None or not words:
            return self.embedding().vector
        shares = [self.rarity(word) for word in words]
        return embedder.weighted([word.shown for word in words], shares, self.query.text)

    def words(self) -> tuple[Word, ...]:
        """The query's words and names, in its order."""
        return self.once("words", lambda: self.store.words(self.query.text))

    def statistics(self) -> WordStatistics:
        """How common the query's words are in this space."""
        return self.once("statistics", self._count)

    def _count(self) -> WordStatistics:
        return self.counted({term for word in self.words() for term in word.terms})

    def rarity(self, word: Word) -> float:
        """How telling a word is in this space: that of its rarest part (BM25's idf)."""
        documents, _, frequencies = self.statistics()
        held = min((frequencies.get(term, 0) for term in word.terms), default=documents)
        return math.log(1.0 + (documents - held + 0.5) / (held + 0.5))


class Channel(Protocol):
    """One way of finding: a pool of its own, best first."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float:
        """How much a fusion listens to it."""
        ...

    def __call__(self, ctx: Context) -> Pool: ...


@runtime_checkable
class Reluctant(Protocol):
    """A channel that may not be needed once others have answered."""

    def skip(self, found: Mapping[Channel, Pool], ctx: Context) -> str:
        """Why it need not be asked; an empty string where it should be."""
        ...


@runtime_checkable
class Early(Protocol):
    """A channel with something to start before any other is asked."""

    def begin(self, ctx: Context) -> None:
        """Starts what takes long; the channel may still be skipped."""
        ...


class Fusion(Protocol):
    """Makes one pool of the channels' pools."""

    @property
    def name(self) -> str: ...

    def __call__(self, found: Mapping[Channel, Pool], ctx: Context) -> Pool: ...


class Stage(Protocol):
    """Candidates in, candidates out, best first."""

    @property
    def name(self) -> str: ...

    def __call__(self, pool: Pool, ctx: Context) -> Pool: ...


class Addition(NamedTuple):
    """What an assembler adds to an answer."""

    captions: tuple[Caption, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    warnings: tuple[str, ...] = ()


class Assembler(Protocol):
    """Adds what belongs beside the hits."""

    @property
    def name(self) -> str: ...

    def __call__(self, hits: Pool, ctx: Context) -> Addition: ...


@runtime_checkable
class Dispensable(Protocol):
    """A stage that may have nothing to do it with: then the walk goes on without it."""

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Why it is left out; an empty string where it should run."""
        ...
