"""The course of a thread as memories tell it, its state and lifecycle, and stored threads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from bethink.core.characters import strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption
from bethink.errors import NotFound
from bethink.ingest.admission import DERIVED_SOURCE
from bethink.maintain.consolidate import entity_name
from bethink.maintain.job import ACTOR, PAGE_SIZE, Action, JobContext, Proposal, batches, iter_items
from bethink.maintain.journal import GENERATED_PREFIX, HIGHEST_CLASSIFICATION, dependence
from bethink.model import Item, Thread, ThreadEvent
from bethink.model.item import Lifecycle, Role, ThreadEventKind, ThreadKind, ThreadState
from bethink.retrieval.provenance import mark_outdated

REACH = timedelta(days=45)  # a thread that was quiet for so long is closed
DORMANT_AFTER = timedelta(days=14)
CLOSED_AFTER = REACH

_EVENT_BY_KIND: dict[str, ThreadEventKind] = {
    "decision": "decision_made",
    "question": "question_opened",
    "milestone": "milestone_reached",
    "resolution": "resolution_declared",
    "outcome": "resolution_declared",
}
# The first match counts: text that clears a blocker or solves a problem also names it.
_EVENT_WORDS: dict[ThreadEventKind, str] = {
    "blocker_cleared": r"\b(?:unblocked|no longer (?:blocked|waiting|stuck))\b",
    "question_closed": (
        r"\b(?:answered|turns out|it turned out|the answer is|root cause (?:was|is)|caused by)\b"
    ),
    "resolution_declared": r"\b(?:resolved|fixed|solved|closed the (?:issue|ticket|case))\b",
    "blocker_added": r"\b(?:blocked (?:by|on)|wait(?:ing|s) (?:for|on)|stuck (?:on|with|at))\b",
    "milestone_reached": (
        r"\b(?:shipped|released|launched|went live|merged|completed|finished|migrated)\b"
    ),
    "setback": (
        r"\b(?:failed|failing|outage|rolled back|regression|broke|broken|crash(?:ed|es)?"
        r"|timed out)\b"
    ),
    "decision_made": r"\b(?:decided|we chose|agreed (?:to|on)|settled on|going with)\b",
    "question_opened": r"\?\s*$",
    "state_change": r"\b(?:moved to|switched (?:to|from)|is now|changed (?:to|from))\b",
}
_EVENT_PATTERNS = {kind: lazy_pattern(words, re.IGNORECASE) for kind, words in _EVENT_WORDS.items()}
# "Not yet fixed" is not a resolution, "never shipped" not a milestone.
_NEGATED = lazy_pattern(
    r"(?:\b(?:not|never|cannot|nor)|n['\u2019]t)\s+(?:(?:yet|been|be|fully|really|all)\s+)*$",
    re.IGNORECASE,
)
_OUTCOME_EVENTS = frozenset(("resolution_declared", "milestone_reached", "question_closed"))


def stated_event(kind: str, text: str) -> ThreadEventKind | None:
    """Return the kind of event that a memory's kind or its words tell, if any."""
    if kind in _EVENT_BY_KIND:
        return _EVENT_BY_KIND[kind]
    for stated, pattern in _EVENT_PATTERNS.items():
        if any(not _NEGATED.search(text[: match.start()]) for match in pattern.finditer(text)):
            return stated
    return None


def event_kind(stated: ThreadEventKind | None, *, first: bool) -> ThreadEventKind:
    """Return the kind of event that a member of a thread is, by what it tells."""
    return stated or ("observation" if first else "update")


def member_role(stated: ThreadEventKind | None, score: float, *, first: bool, match: float) -> Role:
    """Return a member's role: the first triggers, outcomes conclude, good matches are core."""
    if first:
        return "trigger"
    if stated in _OUTCOME_EVENTS:
        return "outcome"
    return "core" if score >= match else "context"


class ThreadMemory(NamedTuple):
    """What finding threads needs of a memory: much less than all of it."""

    when: datetime
    text: str
    id: str
    entities: tuple[str, ...]
    anchor: str | None
    stated: ThreadEventKind | None
    stored_at: datetime
    classification: int
    is_derived: bool
    is_outdated: bool

    @classmethod
    def of(cls, item: Item) -> ThreadMemory:
        stated = item.entities, anchor_of(item), stated_event(item.kind, item.text)
        marks = item.source_class == DERIVED_SOURCE, item.status == "superseded"
        head = item.when, item.text, item.id
        return cls(*head, *stated, item.stored_at, item.classification, *marks)


def thread_events(items: Sequence[ThreadMemory]) -> tuple[ThreadEvent, ...]:
    """Return the events, in the order of time."""
    events = []
    for number, item in enumerate(items):
        kind = event_kind(item.stated, first=number == 0)
        meaningful = kind not in {"observation", "update"}
        events.append(ThreadEvent(number, kind, item.when, item.id, meaningful=meaningful))
    return tuple(events)


def thread_state(events: Sequence[ThreadEvent], now: datetime, *, anchored: bool) -> ThreadState:
    """Return the state: the last event about blockers and resolutions decides."""
    for event in reversed(events):
        if event.kind == "blocker_added":
            return "blocked"
        if event.kind == "resolution_declared":
            return "resolved"
        if event.kind in {"blocker_cleared", "setback", "question_opened"}:
            break
    if len(events) < 3 and not anchored:
        return "uncertain"
    return "stable" if now - events[-1].at >= DORMANT_AFTER else "ongoing"


def thread_lifecycle(events: Sequence[ThreadEvent], state: ThreadState, now: datetime) -> Lifecycle:
    """Return the lifecycle: dormant after two weeks, then closed if resolved, else a month on."""
    quiet = now - max(event.at for event in events)
    if quiet >= CLOSED_AFTER or (state == "resolved" and quiet >= DORMANT_AFTER):
        return "closed"
    return "dormant" if quiet >= DORMANT_AFTER else "active"


def thread_kind(anchor: str | None, events: Sequence[ThreadEvent]) -> ThreadKind:
    """Return the kind: people relate, setbacks make a case, tickets or projects work."""
    if anchor is not None and anchor.startswith("person:"):
        return "relationship"
    if any(event.kind in {"setback", "blocker_added"} for event in events):
        return "case"
    works = ("ticket:", "project:", "file:", "tool:")
    return "work" if anchor is not None and anchor.startswith(works) else "topic"


MAX_HEADLINE_CLASSIFICATION = 1  # highest classification of text in a headline
_HEADLINE_CHARACTERS = 80  # characters


def thread_headline(anchor: str | None, items: Sequence[ThreadMemory], work: JobContext) -> str:
    """Return the topic, or the ticket and the first words that all may see and that still hold."""
    kind, _, key = (anchor or "").partition(":")
    if kind == "topic":
        return key
    open_to_all = (one for one in items if one.classification <= MAX_HEADLINE_CLASSIFICATION)
    shown = next((item for item in open_to_all if not item.is_outdated), None)
    name = entity_name(anchor, work) if anchor is not None else ""
    if shown is None:  # the caller may not be allowed to read these
        return name or f"memories since {items[0].when:%Y-%m-%d}"
    about = caption(strip_hidden(shown.text), limit=_HEADLINE_CHARACTERS)
    return about if about.casefold().startswith(name.casefold()) else f"{name}: {about}"


def anchor_of(item: Item) -> str | None:
    """Return a memory's anchor: its topic, else a ticket it names."""
    if item.topic:
        return f"topic:{item.topic}"
    return next((entity for entity in item.entities if entity.startswith("ticket:")), None)


class ThreadView(NamedTuple):
    """What those see who may see up to a classification, and the entities most of it names."""

    level: int
    work: JobContext
    common: frozenset[str]


Seen = dict[tuple[int, str], Thread]  # threads by the level of a view and by id
_HUB_SHARE, _HUB_LEAST = 0.2, 8.0


def thread_items(work: JobContext, levels: tuple[str, ...] = ()) -> Iterator[Item]:
    """Yield all memories, with what is superseded, and says so, or no longer valid."""
    found = iter_items(work, levels=levels, include_superseded=True, include_expired=True)
    for page in batches(found, PAGE_SIZE):
        yield from mark_outdated(page, work.store, for_all=True)


def thread_views(work: JobContext) -> tuple[ThreadView, ...]:
    """Return the views that show different memories, the one that shows all of them last."""
    views = [ThreadView(HIGHEST_CLASSIFICATION, work, _hubs(work))]
    count = work.store.admin.count()
    for level in reversed(range(HIGHEST_CLASSIFICATION)):
        # To hide nearly everything is dear: only where something is left to see.
        below = replace(work, filters=replace(work.filters, max_classification=level))
        if next(thread_items(below), None) is None:
            break
        seen = replace(work, store=work.store.below(level))
        left = seen.store.admin.count() if seen.store is not work.store else count
        if left < count:
            views.append(ThreadView(level, seen, _hubs(seen)))
            count = left
    return tuple(reversed(views))


def _hubs(work: JobContext) -> frozenset[str]:
    """Return the entities that more than a share of all memories mention.

    The number of memories counts rounded down, so that it seldom changes what is a hub.
    """
    count = work.store.admin.count()
    step = 1 << max(0, count.bit_length() - 4)
    ceiling = max(_HUB_LEAST, _HUB_SHARE * (count // step * step))
    found: list[str] = []
    while page := work.store.graph.entities(limit=50, offset=len(found)):
        many = [entity.id for entity in page if entity.mentions > ceiling]
        found += many
        if len(many) < len(page):
            break
    return frozenset(found)


def common_entities(views: Sequence[ThreadView]) -> Mapping[int, frozenset[str]]:
    """Return the entities that tell nothing, for the memories of each classification."""
    levels = range(HIGHEST_CLASSIFICATION + 1)
    return {one: next(view.common for view in views if view.level >= one) for one in levels}


def generated_threads(work: JobContext) -> Iterator[Thread]:
    """Yield the threads that this job made; threads stored by people are theirs."""
    offset, page = 0, 200
    while found := work.store.activity.threads(limit=page, offset=offset):
        yield from (one for one in found if one.id.startswith(GENERATED_PREFIX))
        offset += page


@dataclass(frozen=True, slots=True)
class StoreThread:
    """Store a whole thread for those who may see up to ``ceiling``, or delete it; idempotent."""

    id: str
    thread: Thread | None
    ceiling: int = HIGHEST_CLASSIFICATION

    def __call__(self, work: JobContext) -> None:
        activity = work.store.below(self.ceiling).activity
        if self.thread is None:
            activity.drop_thread(self.id, actor=ACTOR, now=work.now)
            return
        with suppress(NotFound):  # one of its memories was erased meanwhile; the next run retries
            activity.put_thread(self.thread, actor=ACTOR, now=work.now)

    def __str__(self) -> str:
        if self.thread is None:
            return f"delete the thread {self.id}"
        return f"{self.thread.headline}: {len(self.thread.members)} memories"


def thread_proposals(
    key: str, levels: Sequence[int], found: Seen, before: Seen
) -> Iterator[Proposal]:
    """Propose what makes each view show the thread that was found for it, lowest first."""
    actions: list[Action] = []
    for thread, several in groupby(levels, lambda level: found.get((level, key))):
        same = list(several)
        stored = [before.get((level, key)) for level in same]
        if thread is None:
            is_due = any(stored)
        else:
            # What is stored for a lower view may be all that this one had; the first creation
            # time is kept.
            is_due = bool(actions) or any(
                one != thread._replace(created_at=one and one.created_at) for one in stored
            )
        if is_due:
            actions.append(StoreThread(key, thread, same[-1]))
    if actions:
        now = found.get((levels[-1], key))
        shown = now or next(
            before[level, key] for level in reversed(levels) if (level, key) in before
        )
        members = tuple(member.item for member in shown.members)
        rule = "its memories no longer form a thread"
        if now is not None:
            rule = f"{len(members)} memories of one thread"
        made = thread_mark(now, before.get((levels[-1], key))) if now is not None else ()
        yield Proposal(shown.headline, rule, actions=tuple(actions), about=members, thread=made)


def thread_mark(thread: Thread, before: Thread | None) -> tuple[str, ...]:
    """Return what tells an undo of a thread: see `Proposal.thread`; nothing if no memory joins."""
    members = [member.item for member in thread.members]
    known = {member.item for member in before.members} if before else set()
    added = [item for item in members if item not in known]
    if not added:
        return ()
    return (thread.id, dependence(*sorted(members)), *(added if before else ()))
