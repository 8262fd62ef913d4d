"""Inputs and outputs: drafts and their results, queries and their answers."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from bethink.core.dataclass import dataclass, field
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import pydantic_schema
from bethink.model.evidence import Candidate, Pool
from bethink.model.item import NO_METADATA, Item, Level


class Draft(NamedTuple):
    """A memory to be stored, before the write pipeline has processed it.

    Only ``text`` is required. ``key`` is an idempotency key: the same key again stores
    nothing new. ``force`` stores text that looks like a pasted log. ``derives_from`` are the
    ids of source memories: the new one is trusted no more than any of them.
    """

    text: str
    level: Level = "item"
    kind: str | None = None
    layer: str | None = None
    topic: str | None = None
    tier: str | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    caption: str | None = None
    original: str | None = None
    language: str | None = None
    speaker: str | None = None
    session: str | None = None
    seq: int | None = None
    parent: str | None = None
    source: str = "user"
    source_class: str = "user"
    trust: int | None = None
    integrity: int = 2
    credibility: int = 6
    classification: int = 1
    emotion: float = 0.0
    importance: float = 0.5
    confidence: float = 1.0
    pinned: bool = False
    occurred_at: datetime | None = None
    occurred_end: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    metadata: Mapping[str, Any] = NO_METADATA
    anchors: tuple[str, ...] = ()
    id: str | None = None
    key: str | None = None
    force: bool = False
    derives_from: tuple[str, ...] = ()


class Waiting(NamedTuple):
    """A memory of the inbox: it waits for a review, or was refused, and is in no recall.

    ``worth`` is from 0 to 1 where it was judged; ``item`` is how the store keeps it.
    """

    id: str
    text: str
    reason: str
    worth: float | None
    state: str
    item: Item
    draft: Draft


class Collision(NamedTuple):
    """An existing memory that conflicts with or resembles a new one, and the action taken.

    It says the same (``exact``) or nearly so (``near``); its fact is replaced by the new
    one (``supersedes``), or replaces it (``superseded``); it disagrees (``contradicts``); or
    the new one may correct it (``related``). ``similarity`` is that of the first two,
    ``probability`` that of the others; ``resolve`` is the command to undo or settle it.
    """

    id: str
    kind: Literal["exact", "near", "supersedes", "superseded", "contradicts", "related"]
    similarity: float | None
    action: str
    text: str
    resolve: str = ""
    probability: float | None = None

    @property
    def measure(self) -> str:
        """How probable or how alike, in words."""
        if self.probability is not None:
            return f"probability {self.probability:.2f}"
        return f"similarity {self.similarity:.2f}"


@pydantic_schema("bethink.render.wire:record_json")
class Remembered(NamedTuple):
    """The result of storing one draft; a review may hold it back or leave it out."""

    id: str
    status: Literal["stored", "duplicate", "repeated", "waiting", "left_out"]
    collisions: tuple[Collision, ...] = ()
    redacted: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filters:
    """Which memories may be recalled. Applied inside every search, before any cut.

    Empty tuples and ``None`` mean no restriction. ``entities`` holds names or
    ids, any of which must be mentioned; every one of ``tags`` must be present.
    ``include_untopiced`` admits memories without a topic where ``topics`` are given.
    ``bands`` are heat bands (hot, warm, cold, frozen); ``stored_by`` excludes memories
    stored after that moment. ``users`` are compared with ``Item.user``; ``include_shared``
    admits everybody's public and internal memories (classes 0 and 1) where ``users`` are given.
    ``at`` are parts of the path::symbol of an anchor, any of which one must have.
    """

    ids: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    bands: tuple[str, ...] = ()
    stored_by: datetime | None = None
    min_trust: int = 0
    max_classification: int = 2
    include_superseded: bool = False
    include_expired: bool = False
    include_untopiced: bool = False
    include_shared: bool = False

    @property
    def narrows(self) -> bool:
        """Whether they select memories by content, not only by permission."""
        return any(getattr(self, name) for name in _SELECTIVE_FILTERS)


_SELECTIVE_FILTERS = (
    *("ids", "levels", "kinds", "layers", "topics", "tiers", "tags", "entities", "sources"),
    *("sessions", "speakers", "users", "at", "since", "until"),
)


def id_checksum(item_id: str) -> int:
    """A short checksum of an id, for cursors."""
    return zlib.crc32(item_id.encode())


class Situation(NamedTuple):
    """The caller's context: hour (0 to 23, UTC), weekday (Monday is 0) and topic.

    None where it was not given.
    """

    hour: int | None = None
    weekday: int | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A question with its time and limits. It carries the clock.

    ``seen`` are checksums of memories that earlier pages returned; they are left out.
    ``most`` limits single levels ("raw": 5) separately from ``k``. A query with an empty
    ``text`` returns everything its filters admit, newest first. With ``whole`` long memories
    are shown whole, not by their best passage. Below ``min_confidence`` nothing is returned,
    and no hit below ``min_relevance``; None means what the profile says. ``own_session`` is
    the one it is asked in: "our last session" is another.
    """

    text: str
    now: datetime
    as_of: datetime | None = None
    filters: Filters = field(default_factory=Filters)
    k: int = 40
    max_tokens: int = 2000
    offset: int = 0
    track: bool = False
    seen: frozenset[int] = frozenset()
    most: tuple[tuple[str, int], ...] = ()
    context: Situation = field(default_factory=Situation)
    whole: bool = False
    min_confidence: float | None = None
    min_relevance: float | None = None
    own_session: str | None = None

    @property
    def moment(self) -> datetime:
        """The time the answer is for: ``as_of`` when given, else ``now``."""
        return self.as_of or self.now


class Step(NamedTuple):
    """The result of one pipeline step, and its duration."""

    name: str
    seconds: float
    pool: Pool
    came_in: int = 0
    status: Literal["ok", "skipped", "degraded"] = "ok"
    note: str = ""


class Degraded(NamedTuple):
    """A part that failed, and why; the answer was made without it."""

    part: str
    reason: str


class Page(NamedTuple):
    """Which part of the answer this is and how to get the next one."""

    offset: int
    returned: int
    total: int
    has_more: bool
    stopped_by: Literal["end", "k", "tokens"]
    tokens: int
    cursor: str | None = None


class Caption(NamedTuple):
    """The caption of a source that several hits came from."""

    source: str
    text: str
    score: float
    items: tuple[str, ...]


class Relation(NamedTuple):
    """A link that the reader of a hit should know, from the hit's side.

    ``inbound`` links lead from the other memory to the hit.
    """

    item: str
    type: str
    other: str
    text: str
    inbound: bool = False


class Timeline(NamedTuple):
    """Hits of one subject in chronological order."""

    subject: str
    items: tuple[str, ...]


class Run(NamedTuple):
    """One run of the pipeline; ``cached`` where its answer came from the cache."""

    id: str
    started_at: datetime
    completed_at: datetime
    cached: bool = False


AnswerStatus = Literal["found", "unsure", "nothing_matched", "nothing_stored"]


class ConfidenceReason(NamedTuple):
    """One feature of an answer, and what it adds to the log-odds of its confidence."""

    feature: str
    value: float
    contribution: float
    why: str


class Assessment(NamedTuple):
    """Whether anything is stored on the subject: a probability, the outcome, the reasons."""

    confidence: float
    outcome: Literal["found", "unsure", "nothing_matched"]
    reasons: tuple[ConfidenceReason, ...]


MIN_RELEVANCE = "gate.min_relevance"


def count_below_relevance(steps: Iterable[Step]) -> int:
    """How many the caller's limit of relevance left out, if it left out all; else 0."""
    return sum(step.came_in for step in steps if step.name == MIN_RELEVANCE and not step.pool)


@pydantic_schema("bethink.render.wire:recall_json")
@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to a query: hits, page, status and the trace of how they were found.

    ``confidence`` is the estimated probability that something stored is on the subject of
    the question; its reasons in ``assessed`` add up to its log-odds. Whether a hit answers
    the question is for the reader to see. An answer below what counts as found is ``unsure``.
    ``ways`` maps each channel's name to what it searches by: words, pieces of words,
    meaning, names, time.
    """

    query: Query
    profile: str
    status: AnswerStatus
    reason: str
    hits: Pool
    page: Page
    warnings: tuple[str, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    nearest_miss: Candidate | None = None
    steps: tuple[Step, ...] = ()
    captions: tuple[Caption, ...] = ()
    relations: tuple[Relation, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    evidences: tuple[str, ...] = ()
    ways: tuple[tuple[str, str], ...] = ()
    strategy: Literal["simple", "deep"] = "simple"
    run: Run | None = None
    confidence: float = 0.0
    assessed: tuple[ConfidenceReason, ...] = ()

    @property
    def insights(self) -> Pool:
        """The insights among the hits."""
        return tuple(hit for hit in self.hits if hit.item.level == "insight")

    @property
    def items(self) -> Pool:
        """The facts, notes and summaries among the hits."""
        return tuple(hit for hit in self.hits if hit.item.level == "item")

    @property
    def raw(self) -> Pool:
        """The verbatim episodes among the hits."""
        return tuple(hit for hit in self.hits if hit.item.level == "raw")

    def __bool__(self) -> bool:
        return bool(self.hits)
