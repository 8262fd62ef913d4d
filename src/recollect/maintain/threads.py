"""Finds threads: topics that go on for long, by what they hang on, by links and by time.

All memories are gone through in the order of time, every run anew: the same memories
give the same threads, and what was forgotten or corrected leaves them by itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recollect.errors import NotFound
from recollect.ingest.admit import DERIVED
from recollect.maintain.consolidate import entity_name
from recollect.maintain.insights import PART_OF_ALL, vectors_of
from recollect.maintain.job import ACTOR, Deed, Proposal, Work
from recollect.maintain.looking import each
from recollect.maintain.thread_rules import events_of, kind_of, lifecycle_of, role, state_of
from recollect.model import Item, Member, Thread
from recollect.text import caption, visible

if TYPE_CHECKING:
    from recollect.ports import Vector

MADE = "thread-"
MOST_SHOWN = 1  # the highest classification whose words may stand in a headline
CAUSAL = ("causes", "caused_by")
_DAY_S = 86_400.0
_HUB_SHARE = 0.2
_HEADLINE = 80  # characters
_MOST_TRIED = 40  # open threads that a memory is compared with


@dataclass(frozen=True, slots=True)
class PutThread:
    """Stores one thread whole; twice comes to the same."""

    thread: Thread

    def __call__(self, work: Work) -> None:
        try:
            work.store.put_thread(self.thread, actor=ACTOR, now=work.now)
        except NotFound:
            return  # one of its memories was erased meanwhile; the next run looks again

    def __str__(self) -> str:
        return f"{self.thread.headline}: {len(self.thread.members)} memories"


@dataclass(frozen=True, slots=True)
class DropThread:
    """Takes a thread away that the memories no longer bear out."""

    thread: str

    def __call__(self, work: Work) -> None:
        work.store.drop_thread(self.thread, actor=ACTOR, now=work.now)

    def __str__(self) -> str:
        return f"{self.thread} has ended"


@dataclass(slots=True)
class _Open:
    """A thread in the making: its memories in the order of time, and what they share."""

    anchor: str | None
    items: list[Item] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    entities: Counter[str] = field(default_factory=Counter)
    sum: Vector | None = None

    def take(self, item: Item, score: float, vector: Vector | None) -> None:
        self.items.append(item)
        self.scores.append(score)
        self.entities.update(item.entities)
        if vector is not None:
            self.sum = vector if self.sum is None else self.sum + vector


@dataclass(frozen=True, slots=True)
class Threads:
    """How strongly a memory belongs to a thread is the best of: the same anchor
    (``explicit``), a causal link, nearness in time among shared entities (``temporal``),
    likeness (``semantic``), shared entities (``entity``); more where two of these are
    strong, and where entities bear it out. From ``match`` it joins, unless another thread
    comes within ``margin``; two that reach ``new`` with each other begin one.
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

    def plan(self, work: Work) -> Iterator[Proposal]:
        """Every thread that is new, changed or gone."""
        if work.filters.narrows:
            yield Proposal(PART_OF_ALL, "")
            return
        with work.store.snapshot():
            found = {thread.id: thread for thread in self._threads(work)}
            before = {thread.id: thread for thread in made_before(work)}
        for key in sorted(found.keys() | before.keys()):
            if key not in found:
                rule = "its memories no longer make a thread"
                yield _proposal(before[key], rule, DropThread(key))
            elif not _is_known(found[key], before.get(key)):
                rule = f"{len(found[key].members)} memories of one thread"
                yield _proposal(found[key], rule, PutThread(found[key]))

    def _threads(self, work: Work) -> Iterator[Thread]:
        items = sorted(
            # What was superseded is part of how it went: blocked first, then fixed.
            (
                one
                for one in each(work, levels=self.levels, include_superseded=True)
                if not one.flags
            ),
            key=lambda one: (one.when, one.text, one.id),
        )
        finder = _Finder(self, items, work)
        for item in items:
            # What maintenance made tells of many days: it belongs by its name alone.
            if item.source_class != DERIVED or anchor_of(item) is not None:
                finder.place(item)
        for thread in finder.threads:
            if len(thread.items) >= 2:
                yield self._closed(thread, work)

    def _closed(self, thread: _Open, work: Work) -> Thread:
        events = events_of(thread.items)
        state = state_of(events, work.now, anchored=thread.anchor is not None)
        members = tuple(
            Member(
                item.id,
                role(item, score, first=at == 0, match=self.match),
                round(min(1.0, score), 4),
                item.stored_at,
            )
            for at, (item, score) in enumerate(zip(thread.items, thread.scores, strict=True))
        )
        return Thread(
            id=_id_of(thread),
            headline=_headline(thread, work),
            kind=kind_of(thread.anchor, events),
            anchor=thread.anchor,
            lifecycle=lifecycle_of(events, state, work.now),
            state=state,
            members=tuple(sorted(members)),
            events=events,
            created_at=thread.items[0].when,
            updated_at=thread.items[-1].when,
        )


class _Finder:
    """Places memories, one after the other, into the threads so far."""

    def __init__(self, rules: Threads, items: Sequence[Item], work: Work) -> None:
        self.threads: list[_Open] = []
        self._rules = rules
        self._hubs = _hubs(items)
        self._vectors = _vectors(items, work)
        self._causes = _causes(items, work)
        self._of_item: dict[str, _Open] = {}
        self._by_anchor: dict[str, _Open] = {}
        self._by_entity: defaultdict[str, list[_Open]] = defaultdict(list)

    def place(self, item: Item) -> None:
        """Into the thread it belongs to, or into one of its own that may grow."""
        scored = sorted(
            ((self._score(item, thread), -number, thread) for number, thread in self._near(item)),
            key=lambda one: one[:2],
            reverse=True,
        )
        best = scored[0] if scored else None
        if best is not None and self._joins(best, scored[1:2]):
            self._add(best[2], item, best[0])
            return
        anchor = anchor_of(item)
        thread = _Open(None if anchor in self._by_anchor else anchor)
        self.threads.append(thread)
        self._add(thread, item, 1.0)

    def _joins(
        self, best: tuple[float, int, _Open], others: Sequence[tuple[float, int, _Open]]
    ) -> bool:
        rules = self._rules
        score, _, thread = best
        if score >= rules.explicit:
            return True
        least = rules.new if len(thread.items) == 1 else rules.match
        return score >= least and all(score - other[0] >= rules.margin for other in others)

    def _near(self, item: Item) -> list[tuple[int, _Open]]:
        """The threads it may belong to: its anchor's, its causes', its entities'."""
        near: dict[int, _Open] = {}
        anchored = self._by_anchor.get(anchor_of(item) or "")
        linked = [self._of_item.get(other) for other in self._causes.get(item.id, {})]
        shared = [
            thread
            for entity in item.entities
            if entity not in self._hubs
            for thread in self._by_entity[entity][-_MOST_TRIED:]
        ]
        for thread in (anchored, *linked, *shared):
            if thread is not None:
                near[id(thread)] = thread
        return list(enumerate(near.values()))

    def _score(self, item: Item, thread: _Open) -> float:
        rules = self._rules
        anchor = anchor_of(item)
        same = rules.explicit if anchor is not None and anchor == thread.anchor else 0.0
        links = self._causes.get(item.id, {})
        known = (one for one in thread.items if one.id in links) if links else ()
        causal = max((links[one.id] for one in known), default=0.0)
        telling = [entity for entity in item.entities if entity not in self._hubs]
        shared = sum(entity in thread.entities for entity in telling)
        overlap = shared / len(telling) if telling else 0.0
        days = abs((item.when - thread.items[-1].when).total_seconds()) / _DAY_S
        nearness = max(0.0, 1.0 - days / rules.near_days) if shared else 0.0
        alike = max(0.0, self._likeness(item, thread))
        families = (
            causal, rules.temporal * nearness * overlap, rules.semantic * alike,
            rules.entity * overlap,
        )  # fmt: skip
        strong = (causal >= 0.5) + (nearness >= 0.5) + (alike >= 0.5)
        score = max(same, *families)
        score += rules.several if strong >= 2 else 0.0
        return score + (rules.support if overlap >= 0.5 else 0.0)

    def _likeness(self, item: Item, thread: _Open) -> float:
        vector = self._vectors.get(item.id)
        if vector is None or thread.sum is None:
            return 0.0
        length = float(thread.sum @ thread.sum) ** 0.5
        return float(vector @ thread.sum) / length if length else 0.0

    def _add(self, thread: _Open, item: Item, score: float) -> None:
        thread.take(item, score, self._vectors.get(item.id))
        self._of_item[item.id] = thread
        if thread.anchor is not None:
            self._by_anchor.setdefault(thread.anchor, thread)
        for entity in item.entities:
            if entity not in self._hubs and thread not in self._by_entity[entity][-1:]:
                self._by_entity[entity].append(thread)


def anchor_of(item: Item) -> str | None:
    """What a memory hangs on: its topic, else a ticket it names."""
    if item.topic:
        return f"topic:{item.topic}"
    return next((one for one in item.entities if one.startswith("ticket:")), None)


def _proposal(thread: Thread, rule: str, deed: Deed) -> Proposal:
    members = tuple(member.item for member in thread.members)
    return Proposal(thread.headline, rule, deeds=(deed,), about=members)


def _is_known(thread: Thread, before: Thread | None) -> bool:
    """Whether the store has it so. When it was first made stays as it was noted then."""
    return before is not None and thread._replace(created_at=before.created_at) == before


def made_before(work: Work) -> Iterator[Thread]:
    """The threads that this job has made; those that people put stay theirs."""
    offset, page = 0, 200
    while found := work.store.threads(limit=page, offset=offset):
        yield from (thread for thread in found if thread.id.startswith(MADE))
        offset += page


def _hubs(items: Sequence[Item]) -> frozenset[str]:
    counted = Counter(entity for item in items for entity in item.entities)
    ceiling = max(8.0, _HUB_SHARE * len(items))
    return frozenset(entity for entity, count in counted.items() if count > ceiling)


def _vectors(items: Sequence[Item], work: Work) -> Mapping[str, Vector]:
    vectors = vectors_of(items, work) if items else None
    if vectors is None:
        return {}
    return {item.id: vector for item, vector in zip(items, vectors, strict=True)}


def _causes(items: Sequence[Item], work: Work) -> dict[str, dict[str, float]]:
    """For each memory those it caused or was caused by, and how surely."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for link in work.store.links_of([item.id for item in items], CAUSAL):
        if link.src.kind == link.dst.kind == "item":
            strength = link.weight * link.confidence
            found[link.src.id][link.dst.id] = strength
            found[link.dst.id][link.src.id] = strength
    return found


def _id_of(thread: _Open) -> str:
    """The same for the same anchor or, without one, the same beginning."""
    begun = thread.anchor or f"item:{thread.items[0].id}"
    return MADE + hashlib.sha256(begun.encode()).hexdigest()[:16]


def _headline(thread: _Open, work: Work) -> str:
    kind, _, key = (thread.anchor or "").partition(":")
    if kind == "topic":
        return key
    shown = next((one for one in thread.items if one.classification <= MOST_SHOWN), None)
    if thread.anchor is not None:
        return _of_ticket(entity_name(thread.anchor, work), shown)
    if shown is None:  # whoever lists threads may not be one who may read these
        return f"memories since {thread.items[0].when:%Y-%m-%d}"
    return caption(visible(shown.text), limit=_HEADLINE)


def _of_ticket(name: str, shown: Item | None) -> str:
    """Its name and what it is about, as the first memory says it."""
    if shown is None:
        return name
    about = caption(visible(shown.text), limit=_HEADLINE)
    return about if about.casefold().startswith(name.casefold()) else f"{name}: {about}"
