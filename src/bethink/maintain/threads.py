"""Find threads: long-running topics, by anchor, links and time.

Every run goes through all memories in the order of time: the same memories give the
same threads, and forgotten or corrected memories leave them automatically.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.text import caption, strip_hidden
from bethink.errors import NotFound
from bethink.ingest.admission import DERIVED_SOURCE
from bethink.lang.dates import DAY_S
from bethink.maintain.consolidate import entity_name
from bethink.maintain.insights import NEEDS_WHOLE_MEMORY
from bethink.maintain.job import (
    ACTOR,
    PAGE_SIZE,
    Action,
    JobContext,
    Proposal,
    batches,
    iter_items,
)
from bethink.model import Item, Member, Thread, ThreadEvent
from bethink.model.item import Lifecycle, Role, ThreadEventKind, ThreadKind, ThreadState

if TYPE_CHECKING:
    from bethink.ports import Matrix, Vector


DORMANT_AFTER = timedelta(days=14)
CLOSED_AFTER = timedelta(days=45)

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


# A text with none of these tells no event, which shows in a tenth of the time.
_EVENT_HINTS = (
    *("unblocked", "no longer", "answer", "turns out", "turned out", "root cause", "caused by"),
    *("resolved", "fixed", "solved", "closed the", "blocked", "wait", "stuck", "shipped"),
    *("released", "launched", "went live", "merged", "completed", "finished", "migrated", "fail"),
    *("outage", "rolled back", "regression", "brok", "crash", "timed out", "decided", "we chose"),
    *("agreed", "settled on", "going with", "moved to", "switched", "is now", "changed"),
)


def stated_event(kind: str, text: str) -> ThreadEventKind | None:
    """Return the kind of event that a memory's kind or its words tell, if any."""
    if kind in _EVENT_BY_KIND:
        return _EVENT_BY_KIND[kind]
    folded = text.casefold()
    if not folded.rstrip().endswith("?") and not any(hint in folded for hint in _EVENT_HINTS):
        return None
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

    @classmethod
    def of(cls, item: Item) -> ThreadMemory:
        return cls(
            item.when,
            item.text,
            item.id,
            item.entities,
            anchor_of(item),
            stated_event(item.kind, item.text),
            item.stored_at,
            item.classification,
            item.source_class == DERIVED_SOURCE,
        )


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
    """Return the lifecycle: dormant after two weeks, closed after six and a half.

    A resolved thread closes once it is dormant.
    """
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


GENERATED_PREFIX = "thread-"
MAX_HEADLINE_CLASSIFICATION = 1  # highest classification of text in a headline
CAUSAL = ("causes", "caused_by")
_HUB_SHARE = 0.2
_HEADLINE_CHARACTERS = 80  # characters
_MAX_COMPARED = 40  # open threads that a memory is compared with


@dataclass(frozen=True, slots=True)
class PutThread:
    """Store a whole thread; idempotent."""

    thread: Thread

    def __call__(self, work: JobContext) -> None:
        try:
            work.store.activity.put_thread(self.thread, actor=ACTOR, now=work.now)
        except NotFound:
            return  # one of its memories was erased meanwhile; the next run retries

    def __str__(self) -> str:
        return f"{self.thread.headline}: {len(self.thread.members)} memories"


@dataclass(frozen=True, slots=True)
class DropThread:
    """Delete a thread that the memories no longer support."""

    thread: str

    def __call__(self, work: JobContext) -> None:
        work.store.activity.drop_thread(self.thread, actor=ACTOR, now=work.now)

    def __str__(self) -> str:
        return f"delete the thread {self.thread}"


@dataclass(slots=True)
class _GrowingThread:
    """A thread under construction: its memories in the order of time, and shared data."""

    anchor: str | None
    items: list[ThreadMemory] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    entities: set[str] = field(default_factory=set)
    sum: Vector | None = None
    length: float = 0.0  # of the sum

    def append(self, item: ThreadMemory, score: float, vector: Vector | None) -> None:
        self.items.append(item)
        self.scores.append(score)
        self.entities.update(item.entities)
        if vector is not None:
            self.sum = vector if self.sum is None else self.sum + vector
            self.length = float(self.sum @ self.sum) ** 0.5


@dataclass(frozen=True, slots=True)
class FindThreads:
    """Find threads by how strongly a memory belongs to each.

    The strength is the best of: the same anchor (``explicit``), a causal link, nearness in
    time among shared entities (``temporal``), similarity (``semantic``), shared entities
    (``entity``); with a bonus where two of these are strong, and where entities support it.
    From ``match`` it joins, unless another thread comes within ``margin``; two that reach
    ``new`` with each other start one.
    """

    match: float = 0.78
    new: float = 0.70
    margin: float = 0.10
    explicit: float = 0.95
    temporal: float = 0.85
    semantic: float = 0.75
    entity: float = 0.55
    several: float = 0.10
    support: float = 0.05
    near_days: float = 14.0
    levels: tuple[str, ...] = ("item",)
    name: str = "threads"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose every thread that is new, changed or gone."""
        if work.filters.narrows:
            yield Proposal(NEEDS_WHOLE_MEMORY, "")
            return
        with work.store.snapshot():
            found = {thread.id: thread for thread in self._find_threads(work)}
            before = {thread.id: thread for thread in generated_threads(work)}
        for key in sorted(found.keys() | before.keys()):
            if key not in found:
                rule = "its memories no longer form a thread"
                yield _thread_proposal(before[key], rule, DropThread(key))
            elif not _is_stored(found[key], before.get(key)):
                rule = f"{len(found[key].members)} memories of one thread"
                yield _thread_proposal(found[key], rule, PutThread(found[key]))

    def _find_threads(self, work: JobContext) -> Iterator[Thread]:
        items = sorted(
            # Superseded memories are part of the timeline: blocked first, then fixed.
            ThreadMemory.of(candidate)
            for candidate in iter_items(work, levels=self.levels, include_superseded=True)
            if not candidate.flags
        )
        finder = _ThreadFinder(self, items, work)
        for item in items:
            # Derived memories cover many days: they join a thread only by its name.
            if not item.is_derived or item.anchor is not None:
                finder.place(item)
        for thread in finder.threads:
            if len(thread.items) >= 2:
                yield self._finish_thread(thread, work)

    def _finish_thread(self, thread: _GrowingThread, work: JobContext) -> Thread:
        events = thread_events(thread.items)
        state = thread_state(events, work.now, anchored=thread.anchor is not None)
        members = tuple(
            Member(
                item.id,
                member_role(item.stated, score, first=at == 0, match=self.match),
                round(min(1.0, score), 4),
                item.stored_at,
            )
            for at, (item, score) in enumerate(zip(thread.items, thread.scores, strict=True))
        )
        return Thread(
            id=_thread_id(thread),
            headline=_headline(thread, work),
            kind=thread_kind(thread.anchor, events),
            anchor=thread.anchor,
            lifecycle=thread_lifecycle(events, state, work.now),
            state=state,
            members=tuple(sorted(members)),
            events=events,
            created_at=thread.items[0].when,
            updated_at=thread.items[-1].when,
        )


class _ThreadFinder:
    """Assigns memories, one after the other, to the threads so far."""

    def __init__(self, rules: FindThreads, items: Sequence[ThreadMemory], work: JobContext) -> None:
        self.threads: list[_GrowingThread] = []
        self._rules = rules
        self._hubs = _hub_entities(items)
        self._vectors = _StoredVectors.read(items, work)
        self._causes = _causal_links(items, work)
        self._of_item: dict[str, _GrowingThread] = {}
        self._by_anchor: dict[str, _GrowingThread] = {}
        self._by_entity: defaultdict[str, list[_GrowingThread]] = defaultdict(list)

    def place(self, item: ThreadMemory) -> None:
        """Add a memory to the thread it belongs to, or to a new one."""
        distinctive = [entity for entity in item.entities if entity not in self._hubs]
        vector = self._vectors.get(item.id)
        scored = sorted(
            (
                (self._membership_score(item, thread, distinctive, vector), -number, thread)
                for number, thread in self._candidate_threads(item, distinctive)
            ),
            key=lambda candidate: candidate[:2],
            reverse=True,
        )
        best = scored[0] if scored else None
        if best is not None and self._joins(best, scored[1:2]):
            self._add_member(best[2], item, best[0], vector)
            return
        thread = _GrowingThread(None if item.anchor in self._by_anchor else item.anchor)
        self.threads.append(thread)
        self._add_member(thread, item, 1.0, vector)

    def _joins(
        self,
        best: tuple[float, int, _GrowingThread],
        others: Sequence[tuple[float, int, _GrowingThread]],
    ) -> bool:
        rules = self._rules
        score, _, thread = best
        if score >= rules.explicit:
            return True
        least = rules.new if len(thread.items) == 1 else rules.match
        return score >= least and all(score - other[0] >= rules.margin for other in others)

    def _candidate_threads(
        self, item: ThreadMemory, distinctive: Sequence[str]
    ) -> list[tuple[int, _GrowingThread]]:
        """Return the threads it may belong to: by anchor, causal links and entities."""
        near: dict[int, _GrowingThread] = {}
        anchored = self._by_anchor.get(item.anchor or "")
        linked = [self._of_item.get(other) for other in self._causes.get(item.id, {})]
        shared = [
            thread for entity in distinctive for thread in self._by_entity[entity][-_MAX_COMPARED:]
        ]
        for thread in (anchored, *linked, *shared):
            if thread is not None:
                near[id(thread)] = thread
        return list(enumerate(near.values()))

    def _membership_score(
        self,
        item: ThreadMemory,
        thread: _GrowingThread,
        distinctive: Sequence[str],
        vector: Vector | None,
    ) -> float:
        rules = self._rules
        same = rules.explicit if item.anchor and item.anchor == thread.anchor else 0.0
        links = self._causes.get(item.id, {})
        known = (other for other in thread.items if other.id in links) if links else ()
        causal = max((links[other.id] for other in known), default=0.0)
        shared = len(thread.entities.intersection(distinctive))
        overlap = shared / len(distinctive) if distinctive else 0.0
        days = abs((item.when - thread.items[-1].when).total_seconds()) / DAY_S
        nearness = max(0.0, 1.0 - days / rules.near_days) if shared else 0.0
        alike = 0.0
        if vector is not None and thread.sum is not None and thread.length:
            alike = max(0.0, float(vector @ thread.sum) / thread.length)
        families = (
            causal, rules.temporal * nearness * overlap, rules.semantic * alike,
            rules.entity * overlap,
        )  # fmt: skip
        strong = (causal >= 0.5) + (nearness >= 0.5) + (alike >= 0.5)
        score = max(same, *families)
        score += rules.several if strong >= 2 else 0.0
        return score + (rules.support if overlap >= 0.5 else 0.0)

    def _add_member(
        self, thread: _GrowingThread, item: ThreadMemory, score: float, vector: Vector | None
    ) -> None:
        thread.append(item, score, vector)
        self._of_item[item.id] = thread
        if thread.anchor is not None:
            self._by_anchor.setdefault(thread.anchor, thread)
        for entity in item.entities:
            if entity not in self._hubs and thread not in self._by_entity[entity][-1:]:
                self._by_entity[entity].append(thread)


def anchor_of(item: Item) -> str | None:
    """Return a memory's anchor: its topic, else a ticket it names."""
    if item.topic:
        return f"topic:{item.topic}"
    return next((entity for entity in item.entities if entity.startswith("ticket:")), None)


def _thread_proposal(thread: Thread, rule: str, action: Action) -> Proposal:
    members = tuple(member.item for member in thread.members)
    return Proposal(thread.headline, rule, actions=(action,), about=members)


def _is_stored(thread: Thread, before: Thread | None) -> bool:
    """Whether the store has the same thread; the first creation time is kept."""
    return before is not None and thread._replace(created_at=before.created_at) == before


def generated_threads(work: JobContext) -> Iterator[Thread]:
    """Yield the threads that this job made; threads stored by people are theirs."""
    offset, page = 0, 200
    while found := work.store.activity.threads(limit=page, offset=offset):
        yield from (thread for thread in found if thread.id.startswith(GENERATED_PREFIX))
        offset += page


def _hub_entities(items: Sequence[ThreadMemory]) -> frozenset[str]:
    counted = Counter(entity for item in items for entity in item.entities)
    ceiling = max(8.0, _HUB_SHARE * len(items))
    return frozenset(entity for entity, count in counted.items() if count > ceiling)


class _StoredVectors(NamedTuple):
    """The vectors of all memories, as they are stored: in half the room."""

    rows: Mapping[str, int]
    halves: Matrix | None

    @classmethod
    def read(cls, items: Sequence[ThreadMemory], work: JobContext) -> _StoredVectors:
        """Read them page by page; none where a memory has none."""
        if work.embedder is None or not items:
            return cls({}, None)
        import numpy as np  # start-up time: only maintenance needs it here

        parts = []
        for page in batches(items, PAGE_SIZE):
            ids = [item.id for item in page]
            found = work.store.vectors.embeddings(ids, work.embedder.model)
            if len(found) < len(ids):
                return cls({}, None)
            whole = np.stack([found[item_id].vector for item_id in ids])
            halves = whole.astype(np.float16)
            parts.append(halves if (halves == whole).all() else whole.astype(np.float32))
        return cls({item.id: row for row, item in enumerate(items)}, np.concatenate(parts))

    def get(self, item_id: str) -> Vector | None:
        row = self.rows.get(item_id)
        if row is None or self.halves is None:
            return None
        vector: Vector = self.halves[row].astype("f4")
        return vector


def _causal_links(items: Sequence[ThreadMemory], work: JobContext) -> dict[str, dict[str, float]]:
    """Map each memory to those it caused or was caused by, with the strength."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    pages = batches((item.id for item in items), PAGE_SIZE)
    for link in (one for ids in pages for one in work.store.graph.links_of(ids, CAUSAL)):
        if link.src.kind == link.dst.kind == "item":
            strength = link.weight * link.confidence
            found[link.src.id][link.dst.id] = strength
            found[link.dst.id][link.src.id] = strength
    return found


def _thread_id(thread: _GrowingThread) -> str:
    """Build a stable id from the anchor or, without one, the first memory."""
    begun = thread.anchor or f"item:{thread.items[0].id}"
    return GENERATED_PREFIX + hashlib.sha256(begun.encode()).hexdigest()[:16]


def _headline(thread: _GrowingThread, work: JobContext) -> str:
    kind, _, key = (thread.anchor or "").partition(":")
    if kind == "topic":
        return key
    shown = next(
        (item for item in thread.items if item.classification <= MAX_HEADLINE_CLASSIFICATION), None
    )
    if thread.anchor is not None:
        return _ticket_headline(entity_name(thread.anchor, work), shown)
    if shown is None:  # the caller may not be allowed to read these
        return f"memories since {thread.items[0].when:%Y-%m-%d}"
    return caption(strip_hidden(shown.text), limit=_HEADLINE_CHARACTERS)


def _ticket_headline(name: str, shown: ThreadMemory | None) -> str:
    """Format a ticket's name and subject, as the first memory gives it."""
    if shown is None:
        return name
    about = caption(strip_hidden(shown.text), limit=_HEADLINE_CHARACTERS)
    return about if about.casefold().startswith(name.casefold()) else f"{name}: {about}"
