"""A thread: a topic that goes on for long, the memories that belong to it and what happened."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, get_args

ThreadKind = Literal["work", "case", "relationship", "topic"]
Lifecycle = Literal["active", "dormant", "closed"]
ThreadState = Literal["ongoing", "blocked", "stable", "resolved", "uncertain"]
Role = Literal["trigger", "core", "context", "outcome"]
Happening = Literal[
    "observation",
    "update",
    "state_change",
    "blocker_added",
    "blocker_cleared",
    "decision_made",
    "question_opened",
    "question_closed",
    "milestone_reached",
    "setback",
    "resolution_declared",
]

THREAD_KINDS: tuple[str, ...] = get_args(ThreadKind)
LIFECYCLES: tuple[str, ...] = get_args(Lifecycle)
THREAD_STATES: tuple[str, ...] = get_args(ThreadState)
ROLES: tuple[str, ...] = get_args(Role)
HAPPENINGS: tuple[str, ...] = get_args(Happening)


class Member(NamedTuple):
    """A memory that belongs to a thread: in which role, and how much (0 to 1)."""

    item: str
    role: Role = "core"
    weight: float = 1.0
    added_at: datetime | None = None


class ThreadEvent(NamedTuple):
    """Something that happened in a thread, and the memory that tells of it."""

    seq: int
    kind: Happening
    at: datetime
    item: str | None = None
    meaningful: bool = True


class Thread(NamedTuple):
    """A topic that goes on for long. ``anchor`` is what it hangs on, as ``kind:key``.

    Members come in the order of their ids, events in that of their ``seq``.
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
        """When something last happened in it; the last change where no event is known."""
        return max((event.at for event in self.events), default=self.updated_at)
