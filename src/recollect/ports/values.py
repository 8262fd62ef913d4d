"""What goes in and out of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.model import Entity, Filters, Item, Link
from recollect.ports.models import Embedding


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


class PieceSearch(NamedTuple):
    """A question for the trigram index: in the texts and the words kept beside them, or
    in the originals they were translated from. ``min_share`` of it must be found."""

    text: str
    depth: int
    original: bool = False
    min_share: float = 0.0


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
    """An entity a memory speaks of, and how sure that is.

    ``embedding`` is of the entity itself, by the model of the memory's; None where the
    store has one already.
    """

    entity: Entity
    confidence: float = 1.0
    embedding: Embedding | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One item with everything derived from it, written in one transaction.

    ``about`` holds further words to be found by; ``sketch`` the band hashes that
    near-duplicates share; ``model`` names the embedder of ``embedding``. With
    ``skip_duplicate`` a live item of the same fingerprint and level makes the store
    keep that one and drop this.
    ``item.rev`` above 1 replaces the live revision ``rev - 1`` of the same id.
    ``supersedes`` are items, by id and revision, whose fact this one's replaces: if they
    are still in that revision, they leave recall when this one is stored.
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
    supersedes: Mapping[str, int] = field(default_factory=dict)


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


class Fading(NamedTuple):
    """How memories fade by being passed over, and come back by being recalled.

    Every ``interval`` recalls each memory loses ``rate``, but for those recalled within
    ``grace_s``; one that is returned gains what ``gains`` says, up to 1.
    """

    interval: int
    rate: float
    grace_s: float
    gains: Mapping[str, float]


class NearEntity(NamedTuple):
    """An entity and how near it is to what was asked: a cosine, or a number of words."""

    entity: Entity
    score: float


class Usage(NamedTuple):
    """How a memory has been used: in all, lately, and the last times (oldest first)."""

    recalls: int = 0
    last_at: datetime | None = None
    stamps: tuple[datetime, ...] = ()
    in_30_days: int = 0
    in_90_days: int = 0
    cited: int = 0


class Sibling(NamedTuple):
    """An item that mentions an entity which another, ``of``, mentions too, and how surely."""

    of: str
    entity: str
    item: str
    confidence: float


class Shared(NamedTuple):
    """What shares entities with some items, and the entities too common to tell anything."""

    siblings: tuple[Sibling, ...] = ()
    hubs: tuple[str, ...] = ()


class Listing(NamedTuple):
    """Which entities to list, and which page of them; no kinds are all kinds. What only
    memories above the classification mention is not listed, and what they say not counted.
    """

    prefix: str = ""
    kinds: tuple[str, ...] = ()
    min_memories: int = 1
    limit: int = 30
    offset: int = 0
    max_classification: int = 3


class Momentum(NamedTuple):
    """How much is going on around an entity, 0 to 10, and whether that was worked out
    just now or within the last hour."""

    value: float
    worked_out: bool = False


class Activity(NamedTuple):
    """What has been going on around an entity: memories stored about it."""

    in_1_day: int = 0
    in_7_days: int = 0
    in_all: int = 0
    first_at: datetime | None = None
    mean_importance: float = 0.5
