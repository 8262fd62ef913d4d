"""What the engine asks of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from recollect.model import Entity, Item, Link, Status, Thread
from recollect.ports.files import Files
from recollect.ports.models import Embedding
from recollect.ports.values import (
    Activity,
    Event,
    Fading,
    Finding,
    Found,
    Kept,
    Listing,
    Momentum,
    NearEntity,
    PieceSearch,
    Receipt,
    Record,
    Scope,
    Shared,
    TextSearch,
    Usage,
    Word,
    WordStatistics,
)

if TYPE_CHECKING:
    from recollect.ports.models import Vector


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

    def search_pieces(self, search: PieceSearch, scope: Scope) -> Found:
        """Items that hold pieces of the query's words: inside other words, with z and y
        swapped, in part; the score is the share of the query that was found, 0 to 1.
        Of a word that very many items hold, the newest of them count."""
        ...

    def search_signature(self, text: str, depth: int, min_likeness: float, scope: Scope) -> Found:
        """Items whose words are much the same, by signatures of 256 bits: the score is the
        share of bits that agree, the question's length allowed for; 0.5 is chance."""
        ...

    def search_time(
        self,
        start: datetime,
        end: datetime,
        depth: int,
        scope: Scope,
        *,
        overlapping: bool = False,
    ) -> Found:
        """Items that happened in [start, end); the middle of the window scores 1. With
        ``overlapping`` also those that began before and went on into it, at the end."""
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

    def statistics(self, terms: Iterable[str], *, as_of: datetime | None = None) -> WordStatistics:
        """How common index words are, or were at a moment, ended revisions included."""
        ...


class Graph(Protocol):
    """Entities, links and what hangs on them."""

    def find_entities(
        self, text: str, limit: int = 8, *, as_of: datetime | None = None
    ) -> list[Entity]:
        """Entities whose name or alias occurs in the text, longest name first; with
        ``as_of`` those known by then, and as often mentioned as then."""
        ...

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        """Most mentioned first."""
        ...

    def near_entities(
        self, vector: Vector, model: str, limit: int, *, as_of: datetime | None = None
    ) -> list[NearEntity]:
        """Entities by the cosine of "kind: name" with a vector of ``model``, nearest first;
        every one that has a vector of that model is looked at."""
        ...

    def entities_with(
        self, words: Sequence[str], limit: int, *, as_of: datetime | None = None
    ) -> list[NearEntity]:
        """Entities whose id or name holds these words (in small letters, as parts of words
        too), those that hold most of them first."""
        ...

    def mentioning(self, entities: Sequence[str], each: int, scope: Scope) -> dict[str, list[Item]]:
        """For every entity (id) the items that mention it, newest first, at most ``each``."""
        ...

    def unembedded_entities(self, model: str, limit: int) -> list[Entity]:
        """Entities without a vector of this model."""
        ...

    def lacking_vectors(self, entities: Sequence[str], model: str) -> list[str]:
        """Those of the entities (ids, known here or not) that have no vector of this model."""
        ...

    def links_of(
        self,
        ids: Sequence[str],
        types: Sequence[str] = (),
        *,
        incoming: bool = True,
        as_of: datetime | None = None,
    ) -> list[Link]:
        """Links that leave (and, unless told otherwise, enter) these nodes; with ``as_of``
        those of today that were there by then."""
        ...

    def edges(self, entities: Sequence[str], each: int, until: datetime) -> dict[str, list[Link]]:
        """For every entity (id) its links with other entities that were there at a moment,
        newest first, at most ``each``."""
        ...

    def add_links(
        self, links: Sequence[Link], *, actor: str = "", now: datetime | None = None
    ) -> None:
        """Adds links; the same ends and type again overwrite the weight. The journal says
        so where somebody, ``actor``, did it."""
        ...

    def remove_links(self, links: Sequence[Link], *, actor: str, now: datetime) -> int:
        """Removes links by their ends and type; how many there were."""
        ...

    def merge_entities(self, kept: str, gone: str, *, actor: str, now: datetime) -> None:
        """Lets one entity (id) have the names, the mentions and the edges of another."""
        ...

    def split_entities(self, kept: str, gone: str, *, actor: str, now: datetime) -> None:
        """Takes a merging back."""
        ...

    def siblings(
        self,
        ids: Sequence[str],
        *,
        most: int,
        min_confidence: float,
        as_of: datetime | None = None,
    ) -> Shared:
        """What else speaks of the entities these items surely speak of; entities that
        more than ``most`` items mention are hubs, named and left out. With ``as_of`` what
        spoke of them then is there, but also what only does so since."""
        ...

    def activity(self, entities: Sequence[str], now: datetime) -> dict[str, Activity]:
        """What was stored about entities (ids) up to a moment; strangers are left out."""
        ...

    def momenta(self, entities: Sequence[str], now: datetime) -> dict[str, Momentum]:
        """How much is going on around entities (ids) at a moment; strangers are left out."""
        ...

    def list_entities(self, wanted: Listing, now: datetime) -> list[Entity]:
        """By 10 × momentum + 0.5 × memories − 2 × years since they last came up, with
        the momentum as it is now and the memories counted by layer and pinned."""
        ...

    def usage(self, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
        """How items have been used up to a moment; those never used are left out."""
        ...

    def embeddings(
        self, ids: Sequence[str], model: str, *, as_of: datetime | None = None
    ) -> dict[str, Embedding]:
        """The vectors of this model that items have, or that they had at a moment."""
        ...


class Threads(Protocol):
    """Topics that go on for long."""

    def put_thread(self, thread: Thread, *, actor: str, now: datetime) -> None:
        """Stores a thread whole, in place of the one with its id. Raises NotFound where
        it names a memory that is not there."""
        ...

    def drop_thread(self, thread_id: str, *, actor: str, now: datetime) -> None:
        """Takes a thread away; its memories stay."""
        ...

    def thread(self, thread_id: str) -> Thread | None: ...

    def threads(self, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        """The last changed first."""
        ...

    def threads_of(self, ids: Sequence[str]) -> list[Thread]:
        """Threads that any of these items belongs to, by id."""
        ...


class Writes(Protocol):
    """Changing what is remembered. Each call is one transaction; when it returns,
    the change survives a crash."""

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[Kept]:
        """Stores records. A turn without a number comes after the last of its session,
        and every turn is linked to the one before it (``follows``)."""
        ...

    def find_duplicates(self, fingerprint: str, sketch: Sequence[int], scope: Scope) -> list[Item]:
        """Live items with the same fingerprint or sharing a band of the sketch."""
        ...

    def other_names(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """For each name (in the form names are compared in) that an entity has: all names
        of every such entity."""
        ...

    def slots(self, wanted: Sequence[tuple[str, str]], scope: Scope) -> list[Item]:
        """Live items that state a fact of one of these subjects and attributes, newest first."""
        ...

    def find_key(self, key: str) -> tuple[str, str] | None:
        """The item an idempotency key stands for, and its fingerprint."""
        ...

    def end(
        self,
        ids: Sequence[str],
        *,
        how: str,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> list[str]:
        """Forgets softly: no longer recalled, still in the history. Gives those ended.
        ``only`` leaves alone what is no longer in the revision it gives for an id."""
        ...

    def restore(self, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]: ...

    def set_status(
        self,
        ids: Sequence[str],
        status: Status,
        *,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> None:
        """Judges items as they stand last, forgotten ones too; ``only`` as for `end`."""
        ...

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> Receipt:
        """Removes items, all their revisions and all that was derived; no byte stays."""
        ...

    def note_use(self, ids: Sequence[str], now: datetime, *, fading: Fading | None = None) -> None:
        """Counts one recall and the items it returned; with ``fading`` memories fade by it."""
        ...

    def make_signatures(self, limit: int) -> int:
        """Makes signatures that are missing, ``limit`` at most; how many were made."""
        ...

    def set_momenta(self, values: Mapping[str, float], now: datetime) -> None:
        """Keeps the momentum of entities (ids) as it was worked out; strangers are ignored."""
        ...

    def unembedded(self, model: str, limit: int) -> list[Item]:
        """Live items that have no vector of this model."""
        ...

    def set_embeddings(self, model: str, embeddings: Mapping[str, Embedding]) -> None:
        """Adds or replaces vectors. The first call for a new model makes it the
        current one; vectors of others go when none of theirs is needed any more."""
        ...

    def set_entity_embeddings(self, model: str, embeddings: Mapping[str, Embedding]) -> None:
        """Adds or replaces the vectors of entities (ids)."""
        ...


class Keeping(Protocol):
    """Looking after the store itself."""

    @property
    def space(self) -> str: ...

    def snapshot(self) -> AbstractContextManager[None]:
        """While it is held, everything this thread reads is of one moment; no writes."""
        ...

    def get(self, ids: Sequence[str], *, as_of: datetime | None = None) -> dict[str, Item]:
        """Items by id, ended ones too (their ``live_to`` is set); with ``as_of`` as they
        stood then, those ended by then too."""
        ...

    def resolve(self, part: str) -> list[str]:
        """Ids that begin or end with these characters (at most ten)."""
        ...

    def history(self, item_id: str) -> list[Item]:
        """All revisions, oldest first."""
        ...

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]: ...

    def from_source(self, source: str) -> list[str]:
        """Ids of all that ever came from a source, or were brought by whom the journal calls
        so (``http:laptop``), forgotten ones too, by id."""
        ...

    def changes(self, *, item: str | None, actor: str | None, limit: int) -> list[Event]:
        """The last lines of the journal, newest first: of one memory, by one actor."""
        ...

    def log(self, kind: str, *, item: str | None, actor: str, detail: str, now: datetime) -> None:
        """Adds a line to the journal."""
        ...

    def count(self) -> int:
        """Live items."""
        ...

    def most_classified(self) -> int:
        """The highest classification of all that a dump holds; 0 where it holds no item."""
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


class Store(Searches, Graph, Threads, Writes, Files, Keeping, Protocol):
    """One space's memory. Safe to use from several threads at once."""
