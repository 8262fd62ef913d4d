"""The sockets: what the engine asks of a store, an embedder, a reranker, a clock.

An adapter promises everything in its protocol; the laws are in
``tests/conformance``. Higher is better in every score that leaves an adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from recollect.model import Entity, Filters, Item, Link, Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Matrix = NDArray[np.float32]

Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]


class Embedding(NamedTuple):
    """A unit vector for the whole text and, for late interaction, its tokens.

    ``tokens`` is written and read by the embedder only; a store keeps it as it is.
    ``token_count`` is what the text costs in tokens, 0 where the embedder does not say.
    """

    vector: Vector
    tokens: bytes = b""
    token_count: int = 0


class Embedder(Protocol):
    """Turns texts into unit vectors. Equal texts give equal vectors."""

    @property
    def model(self) -> str:
        """Names the model and everything that changes its vectors."""
        ...

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text. An empty text gives a vector of zeros."""
        ...

    def embed_query(self, text: str) -> Embedding: ...

    def count_tokens(self, text: str) -> int:
        """How many tokens of a language model the text costs, about."""
        ...


@runtime_checkable
class LateInteraction(Protocol):
    """An embedder that can also compare token by token."""

    def word_tokens(self, words: Sequence[str]) -> tuple[tuple[str, ...], Matrix]:
        """The tokens of each word by itself: which word each belongs to, and its unit
        vector."""
        ...

    def weighted(self, words: Sequence[str], weights: Sequence[float]) -> Vector:
        """The unit vector of a question whose words count by their weights."""
        ...

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """For each memory the best cosine any of its sentences has with the query;
        zeros for a memory without tokens."""
        ...

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """For each memory's ``Embedding.tokens`` (rows), the best cosine each query
        token (columns) finds there; zeros for a memory without tokens."""
        ...


def late_interaction(embedder: object) -> LateInteraction | None:
    """The embedder as one that compares token by token, where it can."""
    return embedder if isinstance(embedder, LateInteraction) else None


Reranker = Callable[[str, Sequence[str]], Sequence[float]]


class Scope(NamedTuple):
    """What a search may see: the filters, and the moment they are judged at.

    Without ``as_of`` only live revisions are visible; with it, the revisions that
    were live at that moment. ``moment`` decides what is expired.
    """

    filters: Filters
    moment: datetime
    as_of: datetime | None = None


class Match(NamedTuple):
    """One item found, how well, and in which words."""

    item: Item
    score: float
    why: str = ""


class Found(NamedTuple):
    """What a search found, best first, and how it went about it.

    ``ceiling`` is the highest score the question could have reached, 0 where the
    search has none: it lets a channel judge a score without the others.
    """

    matches: tuple[Match, ...]
    note: str = ""
    ceiling: float = 0.0


class TextSearch(NamedTuple):
    """A question for the word index. ``about_weight`` weighs the words around a
    memory (speaker, date, topic, tags) against those of its text."""

    text: str
    depth: int = 50
    about_weight: float = 1.0
    k1: float = 1.2
    b: float = 0.75
    postings_budget: int = 20_000


class Word(NamedTuple):
    """One word or name of a text as it is written, and the terms the index knows it
    by. ``common`` ones say nothing about the subject."""

    shown: str
    terms: tuple[str, ...]
    common: bool = False


class WordStatistics(NamedTuple):
    """How often words occur in this space: per word, the memories that hold it."""

    documents: int
    average_length: float
    frequencies: Mapping[str, int]


class Mention(NamedTuple):
    """An entity a memory speaks of, and how sure that is."""

    entity: Entity
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Record:
    """One item with everything derived from it, written in one transaction.

    ``about`` holds further words to be found by; ``sketch`` the band hashes that
    near-duplicates share; ``model`` names the embedder of ``embedding``. With
    ``skip_duplicate`` a live item of the same fingerprint and level makes the store
    keep that one and drop this.
    ``item.rev`` above 1 replaces the live revision ``rev - 1`` of the same id.
    """

    item: Item
    fingerprint: str
    about: str = ""
    sketch: tuple[int, ...] = ()
    embedding: Embedding | None = None
    model: str = ""
    mentions: tuple[Mention, ...] = ()
    links: tuple[Link, ...] = ()
    key: str | None = None
    skip_duplicate: bool = True


class Kept(NamedTuple):
    """What became of a record: ``id`` is the item that now holds the content."""

    id: str
    outcome: Literal["stored", "duplicate", "repeated"]


class Receipt(NamedTuple):
    """What an erase removed, counted, and what it could not reach."""

    ids: tuple[str, ...]
    removed: Mapping[str, int]
    out_of_reach: tuple[str, ...]


class Event(NamedTuple):
    """One line of the journal. Never holds the content of a memory."""

    seq: int
    at: datetime
    kind: str
    item: str | None
    actor: str
    detail: str


class Finding(NamedTuple):
    """One thing `doctor` looked at."""

    name: str
    ok: bool
    detail: str
    repaired: bool = False


class Searches(Protocol):
    """Finding items. Every search is exact under its scope: a filter is applied
    before any cut, so fewer than ``depth`` matches means there are no more."""

    def search_text(self, search: TextSearch, scope: Scope) -> Found:
        """Any of the query's words, ranked by BM25. Any text is a valid query."""
        ...

    def search_substring(self, text: str, depth: int, scope: Scope) -> Found:
        """Items that hold parts of the query's words, or words spelled almost so;
        the score is the share of the query that was found, 0 to 1."""
        ...

    def search_vector(self, vector: Vector, model: str, depth: int, scope: Scope) -> Found:
        """Nearest by cosine among the vectors of ``model``; others are never compared.
        Raises ModelError when there are vectors, but none of this model."""
        ...

    def search_time(self, start: datetime, end: datetime, depth: int, scope: Scope) -> Found:
        """Items that happened in [start, end); the middle of the window scores 1."""
        ...

    def search_entities(self, entities: Sequence[str], depth: int, scope: Scope) -> Found:
        """Items that mention the entities (ids); the score is the share mentioned."""
        ...

    def browse(self, scope: Scope, *, limit: int, after: str | None = None) -> list[Item]:
        """Newest first (by ``stored_at``, then id), a page at a time."""
        ...

    def around(self, item_id: str, *, window: int, scope: Scope) -> list[Item]:
        """The items stored or said just before and after one, oldest first."""
        ...

    def terms(self, text: str) -> tuple[str, ...]:
        """The words of a text as the index knows them."""
        ...

    def words(self, text: str) -> tuple[Word, ...]:
        """The words and names of a question, in its order, each once."""
        ...

    def statistics(self, terms: Iterable[str]) -> WordStatistics: ...


class Graph(Protocol):
    """Entities, links and what hangs on them."""

    def find_entities(self, text: str, limit: int = 8) -> list[Entity]:
        """Entities whose name or alias occurs in the text, longest name first."""
        ...

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        """Most mentioned first."""
        ...

    def links_of(
        self, ids: Sequence[str], types: Sequence[str] = (), *, incoming: bool = True
    ) -> list[Link]:
        """Links that leave (and, unless told otherwise, enter) these nodes."""
        ...

    def add_links(self, links: Sequence[Link]) -> None:
        """Adds links; the same ends and type again overwrite the weight."""
        ...

    def embeddings(
        self, ids: Sequence[str], model: str, *, as_of: datetime | None = None
    ) -> dict[str, Embedding]:
        """The vectors of this model that items have, or that they had at a moment."""
        ...


class Writes(Protocol):
    """Changing what is remembered. Each call is one transaction; when it returns,
    the change survives a crash."""

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[Kept]: ...

    def find_duplicates(self, fingerprint: str, sketch: Sequence[int], scope: Scope) -> list[Item]:
        """Live items with the same fingerprint or sharing a band of the sketch."""
        ...

    def find_key(self, key: str) -> tuple[str, str] | None:
        """The item an idempotency key stands for, and its fingerprint."""
        ...

    def last_turn(self, session: str) -> Item | None:
        """The live item of the session with the highest ``seq``."""
        ...

    def end(self, ids: Sequence[str], *, how: str, actor: str, now: datetime) -> list[str]:
        """Forgets softly: no longer recalled, still in the history. Gives those ended."""
        ...

    def restore(self, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]: ...

    def set_status(
        self, ids: Sequence[str], status: Status, *, actor: str, now: datetime
    ) -> None: ...

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> Receipt:
        """Removes items, all their revisions and all that was derived; no byte stays."""
        ...

    def note_use(self, ids: Sequence[str], now: datetime) -> None: ...

    def unembedded(self, model: str, limit: int) -> list[Item]:
        """Live items that have no vector of this model."""
        ...

    def set_embeddings(self, model: str, embeddings: Mapping[str, Embedding]) -> None:
        """Adds or replaces vectors. The first call for a new model makes it the
        current one; vectors of others go when none of theirs is needed any more."""
        ...


class Keeping(Protocol):
    """Looking after the store itself."""

    @property
    def space(self) -> str: ...

    def snapshot(self) -> AbstractContextManager[None]:
        """While it is held, everything this thread reads is of one moment; no writes."""
        ...

    def get(self, ids: Sequence[str], *, as_of: datetime | None = None) -> dict[str, Item]:
        """Items by id, ended ones too (their ``live_to`` is set)."""
        ...

    def resolve(self, part: str) -> list[str]:
        """Ids that begin or end with these characters (at most ten)."""
        ...

    def history(self, item_id: str) -> list[Item]:
        """All revisions, oldest first."""
        ...

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]: ...

    def log(self, kind: str, *, item: str | None, actor: str, detail: str, now: datetime) -> None:
        """Adds a line to the journal."""
        ...

    def count(self) -> int:
        """Live items."""
        ...

    def stats(self) -> dict[str, Any]: ...

    def generation(self) -> int:
        """Changes with every write by anyone; equal numbers mean equal content."""
        ...

    def dump(self) -> Iterator[dict[str, Any]]:
        """Everything worth keeping as JSON-ready records, in an order `load` accepts."""
        ...

    def load(self, records: Iterable[Mapping[str, Any]], *, actor: str, now: datetime) -> int:
        """Takes a dump in, all or nothing. Known ids are left as they are."""
        ...

    def check(self, *, repair: bool = False) -> list[Finding]: ...

    def close(self) -> None: ...


class Store(Searches, Graph, Writes, Keeping, Protocol):
    """One space's memory. Safe to use from several threads at once."""
