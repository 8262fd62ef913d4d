"""What is remembered: items, entities and the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Level = Literal["raw", "item", "insight"]
Status = Literal["active", "superseded", "quarantined"]
NodeKind = Literal["item", "entity", "file", "thread"]

LEVELS: tuple[Level, ...] = ("raw", "item", "insight")
# What somebody may say of two memories. Links of other types are made by rules.
RELATIONS = (
    *("implies", "contradicts", "specializes", "generalizes", "causes", "correlates"),
    *("part_of", "context_of", "supersedes", "related_to"),
    *("caused_by", "derives_from", "edits", "references", "calls", "imports", "extends"),
    *("implements", "instantiates", "similar_to"),
)
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


class Entity(NamedTuple):
    """Somebody or something that memories speak of; its id is ``kind:key``.

    ``layers`` and ``pinned`` count its memories; only a listing looks them up.
    """

    id: str
    kind: str
    name: str
    aliases: tuple[str, ...] = ()
    mentions: int = 0
    momentum: float = 0.0
    momentum_at: datetime | None = None
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
