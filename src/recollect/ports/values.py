"""What goes in and out of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


class Usage(NamedTuple):
    """How a memory has been used: in all, lately, and the last times (oldest first)."""

    recalls: int = 0
    last_at: datetime | None = None
    stamps: tuple[datetime, ...] = ()
    in_30_days: int = 0
    in_90_days: int = 0
    cited: int = 0


class Activity(NamedTuple):
    """What has been going on around an entity: memories stored about it."""

    in_1_day: int = 0
    in_7_days: int = 0
    in_all: int = 0
    first_at: datetime | None = None
    mean_importance: float = 0.5
