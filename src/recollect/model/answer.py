"""What was asked, and the answer."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.model.evidence import Candidate, Pool


@dataclass(frozen=True, slots=True)
class Filters:
    """What may be recalled at all. Applied inside every search, before any cut.

    Empty tuples and ``None`` mean no restriction. ``entities`` holds names or
    ids, any of which must be mentioned; every one of ``tags`` must be there.
    ``include_untopiced`` lets pass what has no topic where ``topics`` are named.
    ``bands`` say how warm (hot, warm, cold, frozen); ``stored_by`` leaves out what was
    stored after that moment.
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
    bands: tuple[str, ...] = ()
    stored_by: datetime | None = None
    min_trust: int = 0
    max_classification: int = 2
    include_superseded: bool = False
    include_expired: bool = False
    include_untopiced: bool = False

    @property
    def narrows(self) -> bool:
        """Whether they pick out memories by what these are, not only by who may see them."""
        return any(getattr(self, name) for name in _NARROWING)


_NARROWING = (
    *("ids", "levels", "kinds", "layers", "topics", "tiers", "tags", "entities", "sources"),
    *("sessions", "speakers", "since", "until"),
)


def mark_of(item_id: str) -> int:
    """A short mark of an id, for cursors."""
    return zlib.crc32(item_id.encode())


class Situation(NamedTuple):
    """What is going on around a question: the hour (0 to 23, UTC), the day of the week
    (Monday is 0) and the topic of the talk; None where nobody said."""

    hour: int | None = None
    weekday: int | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked, when, and within which limits. The clock is in here.

    ``seen`` are marks of memories that earlier pages returned; they are passed over.
    ``most`` limits single levels ("raw": 5) apart from ``k``. A question whose ``text``
    is empty asks for what its filters leave, newest first.
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
    most: tuple[tuple[str, int], ...] = ()
    context: Situation = field(default_factory=Situation)

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


class Caption(NamedTuple):
    """What a source of several hits is about: its caption, and which hits came from it."""

    source: str
    text: str
    score: float
    items: tuple[str, ...]


class Relation(NamedTuple):
    """A link that the reader of a hit should know of, told from the hit's side.

    ``inbound`` links lead from the other memory to the hit.
    """

    item: str
    type: str
    other: str
    text: str
    inbound: bool = False


class Timeline(NamedTuple):
    """Hits of one subject in the order of time."""

    subject: str
    items: tuple[str, ...]


class Run(NamedTuple):
    """One walk, when it began and ended; ``cached`` where its answer was kept from before."""

    id: str
    started_at: datetime
    completed_at: datetime
    cached: bool = False


AnswerStatus = Literal["found", "nothing_stored", "nothing_matched", "below_gate"]


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer: what was found, what it costs, and why it is what it is.

    ``ways`` tells of each channel by its name what it goes by: words, pieces of words,
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
