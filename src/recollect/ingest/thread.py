"""The rules a thread must keep before it is stored."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from recollect.errors import BadText, Refused, TooLarge
from recollect.ids import is_valid_id
from recollect.ingest.redact import redact
from recollect.model import (
    HAPPENINGS,
    LIFECYCLES,
    ROLES,
    THREAD_KINDS,
    THREAD_STATES,
    Member,
    Thread,
    ThreadEvent,
)
from recollect.text import has_substance, unkeepable

HEADLINE_CHARACTERS = 1_000
MEMBERS = 1_000
EVENTS = 10_000


def admit_thread(thread: Thread) -> Thread:
    """The thread in one shape, without secrets; raises Refused where it breaks a rule."""
    if not (isinstance(thread.id, str) and is_valid_id(thread.id)):
        raise Refused("a thread's id is up to 64 letters, digits and _ . : -")
    _one_of("kind", thread.kind, THREAD_KINDS)
    _one_of("lifecycle", thread.lifecycle, LIFECYCLES)
    _one_of("state", thread.state, THREAD_STATES)
    headline = _words("headline", thread.headline)
    if not has_substance(headline):
        raise Refused("a thread needs a headline")
    _limit("members", len(thread.members), MEMBERS)
    _limit("events", len(thread.events), EVENTS)
    if not thread.members:
        raise Refused("a thread needs a member", remedy="name a memory that belongs to it")
    return thread._replace(
        headline=headline,
        anchor=None if thread.anchor is None else _words("anchor", thread.anchor),
        members=_members(thread.members),
        events=_events(thread.events),
    )


def _members(members: Iterable[Member]) -> tuple[Member, ...]:
    for member in members:
        _is_name("member", member.item)
        _one_of("role", member.role, ROLES)
        weight: Any = member.weight
        known = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not known or not math.isfinite(weight) or not 0 <= weight <= 1:
            raise Refused(f"a member's weight is {weight!r}, but must be from 0 to 1")
        _with_zone("added_at", member.added_at)
    by_item = {member.item: member._replace(weight=float(member.weight)) for member in members}
    if len(by_item) < len(tuple(members)):
        raise Refused("a memory is named twice as a member of one thread")
    return tuple(by_item[item] for item in sorted(by_item))


def _events(events: Iterable[ThreadEvent]) -> tuple[ThreadEvent, ...]:
    by_seq: dict[int, ThreadEvent] = {}
    for event in events:
        _one_of("event kind", event.kind, HAPPENINGS)
        _with_zone("at", event.at)
        whole = isinstance(event.seq, int) and not isinstance(event.seq, bool)
        if not whole or not 0 <= event.seq < 2**53 or event.seq in by_seq:
            raise Refused(f"an event's seq is {event.seq!r}, but must be a number of its own")
        if event.item is not None:
            _is_name("event's memory", event.item)
        by_seq[event.seq] = event
    return tuple(by_seq[seq] for seq in sorted(by_seq))


def _is_name(what: str, value: object) -> None:
    if not isinstance(value, str) or not is_valid_id(value):
        raise Refused(f"a {what} is named by its id, not by {value!r}")


def _words(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadText(f"{name} must be text, not {type(value).__name__}")
    bad = unkeepable(value)
    if bad is not None:
        raise BadText(f"{name} holds {bad[1]} at position {bad[0]}")
    _limit(name, len(value), HEADLINE_CHARACTERS, unit="characters")
    return redact(value).text


def _limit(name: str, actual: int, limit: int, *, unit: str = "entries") -> None:
    if actual > limit:
        raise TooLarge(name, limit=limit, actual=actual, unit=unit)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise Refused(f"there is no {name} {value!r}", remedy=f"one of {', '.join(allowed)}")


def _with_zone(name: str, moment: datetime | None) -> None:
    if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
        raise Refused(f"{name} must be a time with its zone")
