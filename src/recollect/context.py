"""What a step of the walk is given, and the shapes steps have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from recollect.errors import ModelError
from recollect.model import Item, Pool, Query
from recollect.ports import Embedder, Embedding, Reranker, Scope, Store, WordStatistics

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Context:
    """The query and the live parts a step may ask. Built once for a recall."""

    query: Query
    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    boost: Callable[[Item], float] | None = None
    _once: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def scope(self) -> Scope:
        return Scope(self.query.filters, self.query.moment, self.query.as_of)

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
        return self.once("embedding", lambda: embedder.embed_query(self.query.text))

    def terms(self) -> tuple[str, ...]:
        """The query's words as the index knows them."""
        return self.once("terms", lambda: self.store.terms(self.query.text))

    def statistics(self) -> WordStatistics:
        """How common the query's words are in this space."""
        return self.once("statistics", lambda: self.store.statistics(self.terms()))


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


@dataclass(frozen=True, slots=True)
class Keep:
    """The stage that does nothing: what an empty slot of a profile holds."""

    name: str = "keep"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return pool
