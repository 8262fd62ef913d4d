"""The nouns: what a memory is made of and what a recall answers with."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Level = Literal["raw", "item", "insight"]
Status = Literal["active", "superseded", "quarantined"]
Op = Literal["seen", "add", "times", "set"]
NodeKind = Literal["item", "entity", "file", "thread"]

LEVELS: tuple[Level, ...] = ("raw", "item", "insight")
LAYERS = ("goal", "context", "emotion", "implementation", "caveat", "learning")
NO_METADATA: Mapping[str, Any] = MappingProxyType({})


class Item(NamedTuple):
    """One remembered thing, as it stood in one revision.

    ``trust`` runs 0 unknown to 3 owner, ``integrity`` 0 to 4, ``credibility``
    0 confirmed to 6 unknown (lower is better), ``classification`` 0 public to
    3 secret, ``emotion`` -5 to 5, ``importance`` and ``confidence`` 0 to 1.
    """

    id: str
    text: str
    stored_at: datetime
    source: str
    source_class: str = "user"
    writer: str = "unknown"
    rev: int = 1
    level: Level = "item"
    kind: str = "note"
    layer: str | None = None
    topic: str | None = None
    tier: str = "general"
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    caption: str | None = None
    original: str | None = None
    language: str | None = None
    speaker: str | None = None
    session: str | None = None
    seq: int | None = None
    parent: str | None = None
    subject: str | None = None
    attribute: str | None = None
    trust: int = 2
    integrity: int = 2
    credibility: int = 6
    classification: int = 1
    emotion: float = 0.0
    importance: float = 0.5
    confidence: float = 1.0
    relevance: float = 0.0
    decay: float = 1.0
    pinned: bool = False
    protected: bool = False
    occurred_at: datetime | None = None
    occurred_end: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    live_from: datetime | None = None
    live_to: datetime | None = None
    ended_by: str | None = None
    status: Status = "active"
    tokens: int = 0
    content_hash: str = ""
    flags: tuple[str, ...] = ()
    recalls: int = 0
    last_recalled_at: datetime | None = None
    metadata: Mapping[str, Any] = NO_METADATA

    @property
    def when(self) -> datetime:
        """When it happened, or, where that is unknown, when it was stored."""
        return self.occurred_at or self.stored_at


class Evidence(NamedTuple):
    """One reason a candidate's score is what it is.

    ``seen`` reports a fact and leaves the score alone; the other three change
    it. ``via`` names the node through which a score arrived, ``rank`` the
    place a channel gave.
    """

    by: str
    op: Op
    value: float
    why: str = ""
    via: str | None = None
    rank: int | None = None


def replay(evidence: Iterable[Evidence], start: float = 0.0) -> float:
    """The score a chain of reasons adds up to, in the order it was given."""
    score = start
    for reason in evidence:
        if reason.op == "add":
            score += reason.value
        elif reason.op == "times":
            score *= reason.value
        elif reason.op == "set":
            score = reason.value
    return score


class Candidate(NamedTuple):
    """An item on its way through the walk, with its score and the reasons."""

    item: Item
    score: float = 0.0
    evidence: tuple[Evidence, ...] = ()

    def because(
        self, by: str, op: Op, value: float, why: str = "", *, via: str | None = None
    ) -> Candidate:
        """A copy with one more reason. Nothing else may change a score."""
        reason = Evidence(by, op, value, why, via)
        return Candidate(self.item, replay((reason,), self.score), (*self.evidence, reason))

    def reason(self, by: str) -> Evidence | None:
        """The last reason given by a channel or stage, if it gave one."""
        for reason in reversed(self.evidence):
            if reason.by == by:
                return reason
        return None


Pool = tuple[Candidate, ...]


def best_first(candidates: Iterable[Candidate]) -> Pool:
    """Sorted by falling score; equal scores by id, so that order never wavers."""
    # Two stable sorts by plain keys: half the time of one sort by a pair.
    by_id = sorted(candidates, key=_ID)
    by_id.sort(key=_SCORE, reverse=True)
    return tuple(by_id)


_ID = attrgetter("item.id")
_SCORE = itemgetter(1)


class Entity(NamedTuple):
    """Somebody or something that memories speak of; its id is ``kind:key``."""

    id: str
    kind: str
    name: str
    aliases: tuple[str, ...] = ()
    mentions: int = 0
    momentum: float = 0.0
    momentum_at: datetime | None = None
    last_seen_at: datetime | None = None


class Node(NamedTuple):
    """One end of a link."""

    kind: NodeKind
    id: str


@dataclass(frozen=True, slots=True)
class Link:
    """A directed, typed, weighted edge between two nodes."""

    src: Node
    dst: Node
    type: str
    weight: float = 1.0
    confidence: float = 1.0
    context: str | None = None
    source: str = "rule"
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """What may be recalled at all. Applied inside every search, before any cut.

    Empty tuples and ``None`` mean no restriction. ``entities`` holds names or
    ids, any of which must be mentioned; every one of ``tags`` must be there.
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
    since: datetime | None = None
    until: datetime | None = None
    min_trust: int = 0
    max_classification: int = 2
    include_superseded: bool = False
    include_expired: bool = False


def mark_of(item_id: str) -> int:
    """A short mark of an id, for cursors."""
    return zlib.crc32(item_id.encode())


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked, when, and within which limits. The clock is in here.

    ``seen`` are marks of memories that earlier pages returned; they are passed over.
    """

    text: str
    now: datetime
    as_of: datetime | None = None
    filters: Filters = field(default_factory=Filters)
    k: int = 10
    max_tokens: int = 2000
    offset: int = 0
    track: bool = False
    seen: frozenset[int] = frozenset()

    @property
    def moment(self) -> datetime:
        """The time the answer is for: ``as_of`` when given, else ``now``."""
        return self.as_of or self.now


class Step(NamedTuple):
    """What one step of the walk left behind, and how long it took."""

    name: str
    seconds: float
    pool: Pool
    came_in: int = 0
    status: Literal["ok", "skipped", "degraded"] = "ok"
    note: str = ""


class Degraded(NamedTuple):
    """A part that could not do its work, and why; the answer came without it."""

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


AnswerStatus = Literal["found", "nothing_stored", "nothing_matched", "below_gate"]


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer: what was found, what it costs, and why it is what it is."""

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

    @property
    def insights(self) -> Pool:
        """The distilled truths among the hits."""
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


class Draft(NamedTuple):
    """What somebody wants remembered, before the write walk has looked at it.

    Only ``text`` is needed. ``key`` makes a retry harmless: the same key again
    stores nothing new. ``force`` stores what looks like a pasted log.
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
    id: str | None = None
    key: str | None = None
    force: bool = False


class Collision(NamedTuple):
    """A memory already there that says the same or nearly so, and what was done."""

    id: str
    kind: Literal["exact", "near"]
    similarity: float
    action: str
    text: str


class Remembered(NamedTuple):
    """What became of one draft."""

    id: str
    status: Literal["stored", "duplicate", "repeated"]
    collisions: tuple[Collision, ...] = ()
    redacted: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
