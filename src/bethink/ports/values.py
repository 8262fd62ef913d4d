"""Values that a store takes and returns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from bethink.core.arrays import NDArray, np
from bethink.core.dataclass import dataclass
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.model import Entity, Filters, Item, Link
from bethink.ports.models import Embedding

if TYPE_CHECKING:
    from bethink.ports.store import ItemSearch


class Scope(NamedTuple):
    """What a search may see: the filters, and the moment at which they are evaluated.

    Without ``as_of`` only live revisions are visible; with it, the revisions that
    were live at that moment. Expiry is evaluated at ``moment``. With ``untrusted`` only
    memories of trust 0 are visible.
    """

    filters: Filters
    moment: datetime
    as_of: datetime | None = None
    untrusted: bool = False


class Match(NamedTuple):
    """One item found, its score, and an explanation."""

    item: Item
    score: float
    why: str = ""


class Background(NamedTuple):
    """The usual similarity of a question to all stored memories: mean and spread of a sample."""

    mean: float
    spread: float
    memories: int


class SearchResult(NamedTuple):
    """The result of a search, best first, with a note on how it was executed.

    ``ceiling`` is the highest possible score for the question, 0 where the search has none:
    it lets a retriever judge a score without comparing it to others. ``background`` is for
    the same purpose, where scores are similarities. ``damage`` says that something is
    missing, because it could not be read.
    """

    matches: tuple[Match, ...]
    note: str = ""
    ceiling: float = 0.0
    background: Background | None = None
    damage: str = ""


class Nearest(NamedTuple):
    """The nearest items of a search by meaning as columns, best first.

    ``begins`` and ``ends`` are the milliseconds at which they happened, NaN where unknown.
    """

    cosines: NDArray[np.float64]
    begins: NDArray[np.float64]
    ends: NDArray[np.float64]


# Which of the nearest to read, by their places.
Choose = Callable[[Nearest], Sequence[int]]


class TextSearch(NamedTuple):
    """A query of the word index.

    ``about_weight`` weighs the context words of a memory (speaker, date, topic, tags)
    against those of its text. The words are weighed by their counts here and in what is
    searched ``beside`` it.
    """

    text: str
    depth: int = 50
    about_weight: float = 1.0
    k1: float = 1.2
    b: float = 0.75
    postings_budget: int = 20_000
    beside: tuple[ItemSearch, ...] = ()


class TrigramSearch(NamedTuple):
    """A query of the trigram index.

    It covers the texts and their context words or, with ``original``, the originals they
    were translated from. At least ``min_share`` of the query must match.
    """

    text: str
    depth: int
    original: bool = False
    min_share: float = 0.0


class Word(NamedTuple):
    """One word or name of a text as written, with its index terms.

    ``common`` words are stop words.
    """

    shown: str
    terms: tuple[str, ...]
    common: bool = False


class WordStatistics(NamedTuple):
    """Document frequencies in this space: per term, the memories that hold it."""

    documents: int
    average_length: float
    frequencies: Mapping[str, int]


class Mention(NamedTuple):
    """An entity mentioned by a memory, with the confidence.

    ``embedding`` is the entity's own vector, by the same model as the memory's; None where
    the store already has one.
    """

    entity: Entity
    confidence: float = 1.0
    embedding: Embedding | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One item with everything derived from it, written in one transaction.

    ``about`` holds further searchable words; ``sketch`` the band hashes for near-duplicate
    detection; ``model`` names the embedder of ``embedding``. With ``skip_duplicate`` the
    store keeps a live item of the same fingerprint and level and drops this one.
    ``item.rev`` above 1 replaces the live revision ``rev - 1`` of the same id.
    ``judged`` means that it was
    compared with what it may update; the journal says so.
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
    judged: bool = False


class PutResult(NamedTuple):
    """The outcome of storing a record: ``id`` is the item that now holds the content."""

    id: str
    outcome: Literal["stored", "duplicate", "repeated"]


_ERASED = "erased:"


def erased_mark(key: str, fingerprint: str) -> str:
    """Return what stands for the fingerprint of content that was erased.

    It tells whether the same content comes again under the same key, and nothing else.
    """
    return _ERASED + hashlib.sha256(f"{key}\n{fingerprint}".encode()).hexdigest()


def is_erased(fingerprint: str) -> bool:
    """Whether a key's fingerprint is the mark of content that was erased."""
    return fingerprint.startswith(_ERASED)


class EraseReceipt(NamedTuple):
    """What an erase removed, as counts, and what it could not reach."""

    ids: tuple[str, ...]
    removed: Mapping[str, int]
    out_of_reach: tuple[str, ...]


class Device(NamedTuple):
    """A machine that shares a space: its public key, and whether what it says is taken."""

    id: str
    name: str
    key: str
    accepted: bool = False


class OpBatch(NamedTuple):
    """Operations as lines of JSON, and of each series the first and last number they cover."""

    ranges: Mapping[str, Sequence[int]]
    ops: Sequence[str]


_SERIES = lazy_pattern(r"!?[\w-]{1,64}\.[0-3]")


def is_span(series: str, span: Sequence[object]) -> bool:
    """Whether these can be the first and the last number of operations of a series."""
    first, last = span
    is_number = type(first) is type(last) is int
    return is_number and bool(_SERIES.fullmatch(series)) and 1 <= first <= last < 2**53  # type: ignore[operator]


class SyncResult(NamedTuple):
    """What operations have changed: ids of memories.

    Those that wait need something that has not come. ``gaps`` are series with the number that
    is missing.
    """

    changed: Sequence[str] = ()
    erased: Sequence[str] = ()
    waiting: Sequence[str] = ()
    gaps: Mapping[str, int] = {}


class SyncConflict(NamedTuple):
    """What another machine did to a memory meanwhile: ``edited``, ``forgotten``, ``replaced``.

    ``rev`` is the revision with its text; 0 where it changed none.
    """

    kind: str
    device: str
    at: datetime
    rev: int


class Event(NamedTuple):
    """One journal entry. Never contains the content of a memory."""

    seq: int
    at: datetime
    kind: str
    item: str | None
    actor: str
    detail: str


def journal_detail(record: Record) -> str:
    """Return what the journal says of a stored record: its revision, and whether it was judged."""
    if record.item.rev == 1:
        return _JUDGED if record.judged else ""
    return f"revision {record.item.rev}{'' if record.judged else _NOT_JUDGED}"


def is_judged(line: Event) -> bool:
    """Whether a line of the journal leaves no memory to judge; earlier versions judged none."""
    if line.kind == "revised":
        return not line.detail.endswith(_NOT_JUDGED)
    return line.kind not in {"stored", "imported", "restored"} or line.detail == _JUDGED


_JUDGED, _NOT_JUDGED = "judged", ", not judged"


class CheckResult(NamedTuple):
    """The result of one `doctor` check.

    With ``warning`` the data is right, but something does not work as configured.
    """

    name: str
    ok: bool
    detail: str
    repaired: bool = False
    warning: bool = False


class UsageDecay(NamedTuple):
    """How memories decay when not recalled, and recover when recalled.

    Every ``interval`` recalls each memory loses ``rate``, except those recalled within
    ``grace_s``; a returned one gains its entry in ``gains``, up to 1.
    """

    interval: int
    rate: float
    grace_s: float
    gains: Mapping[str, float]


class ScoredEntity(NamedTuple):
    """An entity and its score: a cosine, or a number of matching words."""

    entity: Entity
    score: float


class Usage(NamedTuple):
    """Usage of a memory: total, recent, and the last timestamps (oldest first)."""

    recalls: int = 0
    last_at: datetime | None = None
    stamps: tuple[datetime, ...] = ()
    in_30_days: int = 0
    in_90_days: int = 0


class PriorUse(NamedTuple):
    """The use of a memory in the store it comes from, and the strength decay has left it."""

    recalls: int = 0
    last_at: datetime | None = None
    stamps: tuple[datetime, ...] = ()
    decay: float = 1.0


class Sibling(NamedTuple):
    """An item that shares an entity with another item, ``of``, with the confidence."""

    of: str
    entity: str
    item: str
    confidence: float


class SharedEntities(NamedTuple):
    """Items that share entities with some items, and the entities too frequent to count."""

    siblings: tuple[Sibling, ...] = ()
    hubs: tuple[str, ...] = ()


class EntityListing(NamedTuple):
    """Which entities to list, and which page; empty ``kinds`` means all.

    Memories above the classification are not counted; entities only they mention are omitted.
    """

    prefix: str = ""
    kinds: tuple[str, ...] = ()
    min_memories: int = 1
    limit: int = 30
    offset: int = 0
    max_classification: int = 3


class KindsOfDay(NamedTuple):
    """How many items of a kind happened on a day (UTC)."""

    day: date
    kind: str
    items: int


class SessionSpan(NamedTuple):
    """A conversation: when its first and its last item happened, and how many it has."""

    session: str
    first: datetime
    last: datetime
    items: int


class Calendar(NamedTuple):
    """When items happened: by day and kind, oldest first, and conversations, latest first.

    Damaged items count.
    """

    days: tuple[KindsOfDay, ...]
    sessions: tuple[SessionSpan, ...]


class ForgottenFiles(NamedTuple):
    """The file records that were removed, or would be.

    ``paths`` are those that may be named; ``out_of_reach`` lists where bytes remain.
    """

    edits: int = 0
    snapshots: int = 0
    paths: tuple[str, ...] = ()
    preview: bool = False
    out_of_reach: tuple[str, ...] = ()
