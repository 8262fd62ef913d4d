"""Stored data: items, entities, links, layers, files and threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, get_args

from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import pydantic_schema
from bethink.core.sentences import without_questions
from bethink.errors import Refused

LAYERS = ("goal", "context", "emotion", "implementation", "caveat", "learning")
LAYER_ALIASES = {
    "goal": ("why", "goals", "target", "targets", "intent"),
    "context": ("background", "reason", "situation", "timing"),
    "emotion": ("tone", "feelings", "mood"),
    "implementation": ("impl", "success", "failure", "how", "tried", "attempts"),
    "caveat": ("warning", "warnings", "pain", "rule", "rules", "pitfall", "pitfalls", "dont"),
    "learning": ("decision", "decisions", "learned", "insight", "insights", "growth"),
}
_LAYER_OF = {layer: layer for layer in LAYERS} | {
    alias: layer for layer, aliases in LAYER_ALIASES.items() for alias in aliases
}


def find_layer(name: str) -> str | None:
    """The layer of a name or alias, in any case; None if unknown."""
    return _LAYER_OF.get(name.strip().lower())


def require_layer(name: str) -> str:
    """The layer of a name or alias; raise Refused for an unknown one."""
    layer = find_layer(name)
    if layer is None:
        known = (f"{one} (or {', '.join(LAYER_ALIASES[one])})" for one in LAYERS)
        raise Refused(f"there is no layer {name!r}", remedy=f"one of {', '.join(known)}")
    return layer


Level = Literal["raw", "item", "insight"]
Status = Literal["active", "superseded", "quarantined"]
NodeKind = Literal["item", "entity", "file", "thread"]

LEVELS: tuple[Level, ...] = ("raw", "item", "insight")
STATUSES: tuple[Status, ...] = get_args(Status)
# Link types that callers may set. Rules make links of further types.
RELATIONS = (
    *("implies", "contradicts", "specializes", "generalizes", "causes", "correlates"),
    *("part_of", "context_of", "supersedes", "related_to"),
    *("caused_by", "derives_from", "edits", "references", "calls", "imports", "extends"),
    *("implements", "instantiates", "similar_to"),
)
NO_METADATA: Mapping[str, Any] = MappingProxyType({})


@pydantic_schema("bethink.render.wire:item_json")
class Item(NamedTuple):
    """One memory, as of one revision.

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
    anchors: tuple[str, ...] = ()

    @property
    def when(self) -> datetime:
        """The time it happened or, where that is unknown, the time it was stored."""
        return self.occurred_at or self.stored_at

    @property
    def user(self) -> str | None:
        """Whose memory it is where several users share a space: ``user_id`` of its metadata."""
        return user_of(self.metadata)


WAITING = "waiting"  # `ended_by` of a memory that waits in the inbox, outside of every recall
REFUSED = "refused"  # of one that was reviewed and refused
OWN_ENDINGS = frozenset((WAITING, REFUSED, "revised", "withdrawn"))  # no caller's reasons
RULE_KINDS = ("directive", "rule")  # as found in a text, and as people call it
AUDIENCE = "bethink.audience"  # in metadata, of what not all of a space see: who does
MAX_RELEVANCE = 10.0  # how far a memory can be marked as relevant, or as not relevant
SHARED_CLASSIFICATION = 1  # up to this class a memory of one user may be shared with all


def user_of(metadata: Mapping[str, Any]) -> str | None:
    """Return the user that metadata names, if there is one."""
    # What a caller gives may be no mapping; it is refused later.
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    return user if isinstance(user, str) else None


def oldest_first(items: Iterable[Item]) -> list[Item]:
    """Sort memories by when they were stated.

    That is when they were stored: a note may tell today of what happened last week. A turn,
    and what was imported or derived, was stated when it happened. Where all have an
    ``occurred_at``, it decides.
    """
    found = list(items)
    dated = all(item.occurred_at for item in found)

    def stated(item: Item) -> tuple[datetime, datetime, int, str]:
        is_record = item.level == "raw" or item.source_class in ("import", "derived")
        at = item.when if dated or is_record else item.stored_at
        return at, item.stored_at, item.seq or 0, item.id  # ids are made in the order of writing

    return sorted(found, key=stated)


def may_replace(newer: Item, older: Item) -> bool:
    """Whether a memory is newer and may correct the other, whatever the two say.

    A less trusted or flagged one may not, nor one speaker or user another; insights and
    texts that only ask state nothing of their own.
    """
    if newer.trust < older.trust or newer.flags or _voice(newer) != _voice(older):
        return False
    if "insight" in (newer.level, older.level) or oldest_first((newer, older))[0] is newer:
        return False
    return all(without_questions(item.text) for item in (newer, older))


def is_said_among_people(item: Item) -> bool:
    """Whether a named speaker said it, not the user of an assistant or who writes notes."""
    return _voice(item)[0] != ""


def _voice(item: Item) -> tuple[str, str | None]:
    """Return who speaks; the user of a chat and one who only writes are the same."""
    speaker = (item.speaker or "").casefold()
    return "" if speaker in ("user", "human") else speaker, item.user


@pydantic_schema("bethink.render.wire:entity_json")
class Entity(NamedTuple):
    """A person or thing that memories mention; its id is ``kind:key``.

    ``layers`` and ``pinned`` count its memories; only a listing fills them and ``momentum``.
    """

    id: str
    kind: str
    name: str
    aliases: tuple[str, ...] = ()
    mentions: int = 0
    momentum: float = 0.0
    last_seen_at: datetime | None = None
    layers: tuple[tuple[str, int], ...] = ()
    pinned: int = 0


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


def superseding_ids(item: Item, links: Iterable[Link]) -> list[str]:
    """The memories that replaced a superseded one, from its links; none for one in force."""
    if item.status != "superseded":
        return []
    return [link.src.id for link in links if link.type == "supersedes" and link.dst.id == item.id]


Operation = Literal["read", "edit", "write", "bash", "other"]
OPERATIONS: tuple[Operation, ...] = ("read", "edit", "write", "bash", "other")


class FileEdit(NamedTuple):
    """An operation on a file, with its session and intent."""

    path: str
    operation: Operation
    at: datetime
    intent: str = ""
    session: str | None = None
    turn: str | None = None
    item: str | None = None


class DayCount(NamedTuple):
    """How often an operation was applied to a file on one day."""

    day: str
    operation: str
    times: int


class Intent(NamedTuple):
    """The purpose of changes to a file, how often it occurred, and when last."""

    text: str
    times: int
    last_at: datetime


class FileHistory(NamedTuple):
    """The history of all files whose path contains some text."""

    paths: tuple[str, ...] = ()
    edits: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    sessions: tuple[str, ...] = ()
    days: tuple[DayCount, ...] = ()
    intents: tuple[Intent, ...] = ()
    items: tuple[str, ...] = ()


class ChunkDigest(NamedTuple):
    """A chunk of a file, identified by name and hash, without its text."""

    id: str
    hash: str
    first_line: int
    last_line: int


class FileSnapshot(NamedTuple):
    """The state of a file when it was last read."""

    path: str
    sha256: str
    mtime_ns: int
    size: int
    chunks: tuple[ChunkDigest, ...]
    read_at: datetime
    reads: int = 1


ThreadKind = Literal["work", "case", "relationship", "topic"]
Lifecycle = Literal["active", "dormant", "closed"]
ThreadState = Literal["ongoing", "blocked", "stable", "resolved", "uncertain"]
Role = Literal["trigger", "core", "context", "outcome"]
ThreadEventKind = Literal[
    "observation", "update", "state_change", "blocker_added", "blocker_cleared", "decision_made",
    "question_opened", "question_closed", "milestone_reached", "setback", "resolution_declared",
]  # fmt: skip

THREAD_KINDS: tuple[str, ...] = get_args(ThreadKind)
LIFECYCLES: tuple[str, ...] = get_args(Lifecycle)
THREAD_STATES: tuple[str, ...] = get_args(ThreadState)
ROLES: tuple[str, ...] = get_args(Role)
THREAD_EVENT_KINDS: tuple[str, ...] = get_args(ThreadEventKind)


class Member(NamedTuple):
    """A memory that belongs to a thread, with its role and weight (0 to 1)."""

    item: str
    role: Role = "core"
    weight: float = 1.0
    added_at: datetime | None = None


class ThreadEvent(NamedTuple):
    """An event in a thread, and the memory that reports it."""

    seq: int
    kind: ThreadEventKind
    at: datetime
    item: str | None = None
    meaningful: bool = True


@pydantic_schema("bethink.render.wire:thread_json")
class Thread(NamedTuple):
    """A long-running topic. ``anchor`` is the entity it is attached to, as ``kind:key``.

    Members are ordered by id, events by ``seq``.
    """

    id: str
    headline: str
    kind: ThreadKind = "topic"
    anchor: str | None = None
    lifecycle: Lifecycle = "active"
    state: ThreadState = "ongoing"
    members: tuple[Member, ...] = ()
    events: tuple[ThreadEvent, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def last_event_at(self) -> datetime | None:
        """The time of the last event; the last update where there is no event."""
        return max((event.at for event in self.events), default=self.updated_at)
