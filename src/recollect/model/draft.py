"""What somebody wants remembered, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from recollect.model.item import NO_METADATA, Level


class Draft(NamedTuple):
    """What somebody wants remembered, before the write walk has looked at it.

    Only ``text`` is needed. ``key`` makes a retry harmless: the same key again
    stores nothing new. ``force`` stores what looks like a pasted log. ``derives_from``
    are the ids of memories it was made from: it is trusted no more than any of them.
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
    derives_from: tuple[str, ...] = ()


class Collision(NamedTuple):
    """A memory already there that a new one meets, and what was done about it.

    It says the same (``exact``) or nearly so (``near``); its fact is replaced by the new
    one (``supersedes``), or replaces that (``superseded``); it says otherwise
    (``contradicts``); or it merely speaks of much the same (``related``). ``similarity``
    is how alike they are or how sure the judgement is, ``resolve`` the command by which
    somebody who knows better undoes or settles it.
    """

    id: str
    kind: Literal["exact", "near", "supersedes", "superseded", "contradicts", "related"]
    similarity: float
    action: str
    text: str
    resolve: str = ""


class Remembered(NamedTuple):
    """What became of one draft."""

    id: str
    status: Literal["stored", "duplicate", "repeated"]
    collisions: tuple[Collision, ...] = ()
    redacted: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
