"""Find threads: long-running topics, by anchor, links and time.

All memories are placed in the order of time: the same memories give the same threads, and
forgotten or corrected memories leave them automatically. What a thread's memories tell is its
course, from which its state and lifecycle follow.
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from bethink.core.arrays import Vector, np
from bethink.core.characters import strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption
from bethink.errors import NotFound
from bethink.ingest.admission import DERIVED_SOURCE
from bethink.lang.dates import DAY_S
from bethink.lang.words import load_words
from bethink.maintain import journal
from bethink.maintain.consolidate import entity_name
from bethink.maintain.insights import NEEDS_WHOLE_MEMORY
from bethink.maintain.job import ACTOR, PAGE_SIZE, Action, JobContext, Proposal, batches, iter_items
from bethink.model import Item, Member, Thread, ThreadEvent
from bethink.model.item import Lifecycle, Role, ThreadEventKind, ThreadKind, ThreadState
from bethink.retrieval.provenance import mark_outdated

REACH = timedelta(days=45)  # a thread that was quiet for so long is closed
DORMANT_AFTER = timedelta(days=14)
CLOSED_AFTER = REACH

_EVENTS = load_words("events")
_EVENT_BY_KIND: dict[str, ThreadEventKind] = _EVENTS["kinds"]
_EVENT_PATTERNS: dict[ThreadEventKind, re.Pattern[str]] = {
    kind: lazy_pattern(words, re.IGNORECASE) for kind, words in _EVENTS["words"].items()
}
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
    views = [ThreadView(journal.HIGHEST_CLASSIFICATION, work, _hubs(work))]
    count = work.store.admin.count()
    for level in reversed(range(journal.HIGHEST_CLASSIFICATION)):
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
    levels = range(journal.HIGHEST_CLASSIFICATION + 1)
    return {one: next(view.common for view in views if view.level >= one) for one in levels}


def generated_threads(work: JobContext) -> Iterator[Thread]:
    """Yield the threads that this job made; threads stored by people are theirs."""
    offset, page = 0, 200
    while found := work.store.activity.threads(limit=page, offset=offset):
        yield from (one for one in found if one.id.startswith(journal.GENERATED_PREFIX))
        offset += page


class StoredThread(NamedTuple):
    """A thread as those are to have it who may see up to ``ceiling``; None is to be deleted."""

    id: str
    thread: Thread | None
    ceiling: int = journal.HIGHEST_CLASSIFICATION


def store_thread(wanted: StoredThread, work: JobContext) -> None:
    """Store a whole thread, or delete it; idempotent."""
    activity = work.store.below(wanted.ceiling).activity
    if wanted.thread is None:
        activity.drop_thread(wanted.id, actor=ACTOR, now=work.now)
        return
    with suppress(NotFound):  # one of its memories was erased meanwhile; the next run retries
        activity.put_thread(wanted.thread, actor=ACTOR, now=work.now)


def thread_proposals(
    key: str, levels: Sequence[int], found: Seen, before: Seen
) -> Iterator[Proposal]:
    """Propose what makes each view show the thread that was found for it, lowest first."""
    actions: list[Action[StoredThread]] = []
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
            text = f"delete the thread {key}"
            if thread is not None:
                text = f"{thread.headline}: {len(thread.members)} memories"
            actions.append(Action(text, store_thread, StoredThread(key, thread, same[-1])))
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
    return (thread.id, journal.dependence(*sorted(members)), *(added if before else ()))


_MAX_COMPARED = 40  # memories of an entity that one is compared with
_BLOCK = 500
_MAX_VECTORS = 20_000
_CAUSAL = ("causes", "caused_by")


class Placement(NamedTuple):
    """The thread of a memory, how strongly it belongs, and whether it begins the thread."""

    thread: str
    score: float
    begins: bool = False


@dataclass(frozen=True, slots=True)
class FindThreads:
    """Find threads by how strongly a memory belongs to each.

    A memory with an anchor belongs to the thread of its anchor. Any other is compared with
    earlier memories of the last 45 days that share an entity with it, and with those it has
    a causal link to. The strength is the best of: a causal link, nearness in time among
    shared entities (``temporal``), similarity (``semantic``), shared entities (``entity``);
    with a bonus where two of these are strong, and where entities support it. From ``match``
    it joins the thread of the best, unless one of another thread comes within ``margin``;
    two that reach ``new`` with each other start one.

    A memory is compared only with those of its own classification and below. So what a reader
    may see forms the threads that it would form alone, and is stored so for each ceiling.
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

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose every thread that is new, changed or gone."""
        if work.filters.narrows:
            yield Proposal(NEEDS_WHOLE_MEMORY, "")
            return
        with work.store.snapshot():
            search = ThreadSearch(self, thread_views(work), work)
            before, found = search.stored(), search.find_all()
            search.drop_hidden(before, found)
        keys = sorted({key for _, key in (*found, *before)})
        due = [one for key in keys for one in thread_proposals(key, search.levels, found, before)]
        undone = journal.undone_threads(work.store) if due else set()
        yield from (one for one in due if one.thread[:2] not in undone)

    def score(self, pair: Pair) -> float:
        """Return how strongly two memories belong together."""
        families = (
            pair.causal, self.temporal * pair.nearness * pair.overlap,
            self.semantic * pair.likeness, self.entity * pair.overlap,
        )  # fmt: skip
        strong = (pair.causal >= 0.5) + (pair.nearness >= 0.5) + (pair.likeness >= 0.5)
        score = max(families) + (self.several if strong >= 2 else 0.0)
        return score + (self.support if pair.overlap >= 0.5 else 0.0)


class Pair(NamedTuple):
    """What a memory has in common with an earlier one, each from 0 to 1."""

    causal: float = 0.0
    nearness: float = 0.0
    likeness: float = 0.0
    overlap: float = 0.0


class ThreadSearch:
    """Finds all threads of the memories, for each view."""

    def __init__(self, rules: FindThreads, views: Sequence[ThreadView], work: JobContext) -> None:
        self._rules, self._views, self._work = rules, views, work
        self._highest: dict[str, int] = {}  # classification of a thread's memories
        self.levels = [view.level for view in views]

    def stored(self) -> Seen:
        """Return the threads that this job has stored, as each view shows them."""
        return {
            (view.level, thread.id): thread
            for view in self._views
            for thread in generated_threads(view.work)
        }

    def find_all(self) -> Seen:
        """Go through all memories in the order of time; return the threads."""
        listed = thread_items(self._work, levels=self._rules.levels)
        items = sorted(ThreadMemory.of(item) for item in listed if not item.flags)
        folding = _Folding(self._rules, common_entities(self._views), self._work)
        grouped: defaultdict[str, list[tuple[ThreadMemory, float]]] = defaultdict(list)
        for item, placed in folding.place(items):
            grouped[placed.thread].append((item, placed.score))
        found: Seen = {}
        for key, members in grouped.items():
            self._finish(key, members, found)
        return found

    def drop_hidden(self, before: Seen, found: Seen) -> None:
        """Take out threads to store anew: hidden although none of their memories is any more."""
        for level in {*self._highest.values()}.difference(self.levels):
            activity = self._work.store.below(level).activity
            for key in [key for key, highest in self._highest.items() if highest == level]:
                at = self.levels[-1], key
                if at in before and at in found and activity.thread(key) is None:
                    del before[at]

    def _finish(self, key: str, members: Sequence[tuple[ThreadMemory, float]], found: Seen) -> None:
        """Add the thread of these memories, as each view shows it."""
        self._highest[key] = max((item.classification for item, _ in members), default=0)
        thread = None
        for view in self._views:
            seen = [one for one in members if one[0].classification <= view.level]
            if len(seen) < 2:
                continue
            if thread is None or len(thread.members) < len(seen):
                thread = make_thread(key, seen, self._rules.match, view.work)
            found[view.level, key] = thread


def make_thread(
    key: str, members: Sequence[tuple[ThreadMemory, float]], match: float, work: JobContext
) -> Thread:
    """Make the thread of memories in the order of time, each with its score."""
    items = [item for item, _ in members]
    anchor = next((item.anchor for item in items if item.anchor is not None), None)
    events = thread_events(items)
    found = tuple(
        Member(
            item.id,
            member_role(item.stated, score, first=at == 0, match=match),
            1.0 if at == 0 else score,
            item.stored_at,
        )
        for at, (item, score) in enumerate(members)
    )
    state = thread_state(events, work.now, anchored=anchor is not None)
    return Thread(
        id=key,
        headline=thread_headline(anchor, items, work),
        kind=thread_kind(anchor, events),
        anchor=anchor,
        members=tuple(sorted(found)),
        events=events,
        created_at=items[0].when,
        updated_at=items[-1].when,
        state=state,
        lifecycle=thread_lifecycle(events, state, work.now),
    )


def take_back_thread(key: str, added: Sequence[str], work: JobContext) -> None:
    """Take what a run added out of a thread, for every reader; all of it where it made it."""
    for level in range(journal.HIGHEST_CLASSIFICATION + 1):
        seen = replace(work, store=work.store.below(level))
        thread = seen.store.activity.thread(key)
        if thread is None:
            continue
        scores = {one.item: one.weight for one in thread.members if one.item not in added}
        known = list(seen.store.items.get(list(scores)).values())
        items = mark_outdated(known, seen.store, for_all=True)
        left = sorted((ThreadMemory.of(item), scores[item.id]) for item in items)
        is_left = bool(added) and len(left) > 1
        kept = make_thread(key, left, FindThreads().match, seen) if is_left else None
        store_thread(StoredThread(key, kept, level), work)


class _Folding:
    """Places memories, one after the other in the order of time."""

    def __init__(
        self, rules: FindThreads, common: Mapping[int, frozenset[str]], work: JobContext
    ) -> None:
        self._rules, self._common, self._work = rules, common, work
        self._latest: dict[str, dict[int, deque[ThreadMemory]]] = {}  # by entity and class
        self._placed: dict[str, tuple[ThreadMemory, str]] = {}  # with the thread of each
        self._joined: dict[str, int] = {}  # the lowest class of those that joined a thread
        self._causes: Mapping[str, Mapping[str, float]] = {}
        self._vectors: dict[str, Vector] = {}

    def place(self, items: Sequence[ThreadMemory]) -> Iterator[tuple[ThreadMemory, Placement]]:
        """Yield each memory with its placement."""
        loose = [item for item in items if item.anchor is None and not item.is_derived]
        self._causes = _causal_links(loose, self._work)
        for block in batches(items, _BLOCK):
            self._read_vectors(block)
            for item in block:
                if item.anchor is not None:
                    placed = Placement(_thread_id(item.anchor), self._rules.explicit)
                elif not item.is_derived:
                    placed = self._best_placement(item)
                else:  # it covers many days, and joins a thread only by its name
                    continue
                yield item, placed
                if not item.is_derived:
                    self._see(item, placed)

    def _see(self, item: ThreadMemory, placed: Placement) -> None:
        """Let those that follow depend on a memory."""
        if placed.begins:
            self._joined[placed.thread] = journal.HIGHEST_CLASSIFICATION + 1
        elif placed.thread in self._joined:
            lowest = min(item.classification, self._joined[placed.thread])
            self._joined[placed.thread] = lowest
        self._placed[item.id] = item, placed.thread
        for entity in self._telling(item):
            latest = self._latest.setdefault(entity, {})
            latest.setdefault(item.classification, deque(maxlen=_MAX_COMPARED)).append(item)

    def _latest_of(self, entity: str, highest: int) -> Sequence[ThreadMemory]:
        """Return the latest memories of an entity, up to a classification."""
        latest = self._latest.get(entity, {})
        seen = [several for level, several in latest.items() if level <= highest]
        return list(heapq.merge(*seen))[-_MAX_COMPARED:]

    def _telling(self, item: ThreadMemory) -> list[str]:
        common = self._common[item.classification]
        return [entity for entity in item.entities if entity not in common]

    def _best_placement(self, item: ThreadMemory) -> Placement:
        rules = self._rules
        best: dict[str, float] = {}
        for score, thread in self._scores(item):
            best[thread] = max(score, best.get(thread, 0.0))
        ranked = sorted(((score, thread) for thread, score in best.items()), reverse=True)
        if ranked:
            score, thread = ranked[0]
            is_single = item.classification < self._joined.get(thread, -1)
            least = rules.new if is_single else rules.match
            clear = len(ranked) == 1 or score - ranked[1][0] >= rules.margin
            if score >= least and clear:
                return Placement(thread, round(min(1.0, score), 4))
        return Placement(_thread_id(f"item:{item.id}"), 1.0, begins=True)

    def _scores(self, item: ThreadMemory) -> Iterator[tuple[float, str]]:
        """Yield how strongly it belongs to earlier memories, with the thread of each."""
        telling = self._telling(item)
        shared = Counter(
            other
            for entity in telling
            for other in self._latest_of(entity, item.classification)
            if item.when - other.when < REACH
        )
        likeness = self._likeness(item, list(shared))
        causes = self._causes.get(item.id, {})
        for other_id in causes.keys() & self._placed.keys():
            other = self._placed[other_id][0]
            if other not in shared and other.classification <= item.classification:
                shared[other] = len(set(telling).intersection(other.entities))
        for other, count in shared.items():
            days = (item.when - other.when).total_seconds() / DAY_S
            pair = Pair(
                causes.get(other.id, 0.0),
                max(0.0, 1.0 - days / self._rules.near_days) if count else 0.0,
                likeness.get(other.id, 0.0),
                count / len(telling) if telling else 0.0,
            )
            yield self._rules.score(pair), self._placed[other.id][1]

    def _likeness(self, item: ThreadMemory, others: Sequence[ThreadMemory]) -> dict[str, float]:
        mine = self._vectors.get(item.id)
        known = [other.id for other in others if other.id in self._vectors]
        if mine is None or not known:
            return {}
        # Row by row: a product of matrices rounds differently from size to size.
        found = (np.stack([self._vectors[other] for other in known]) * mine).sum(axis=1)
        return {other: max(0.0, float(value)) for other, value in zip(known, found, strict=True)}

    def _read_vectors(self, block: Sequence[ThreadMemory]) -> None:
        """Read the vectors that placing these memories needs."""
        embedder = self._work.embedder
        loose = [item for item in block if item.anchor is None and not item.is_derived]
        entities = {entity for item in loose for entity in self._telling(item)}
        if embedder is None or not entities:
            return
        if len(self._vectors) > _MAX_VECTORS:
            self._vectors.clear()
        latest = (self._latest.get(entity, {}).values() for entity in entities)
        wanted = {other.id for levels in latest for several in levels for other in several}
        wanted |= {item.id for item in block if not entities.isdisjoint(item.entities)}
        for page in batches(sorted(wanted - self._vectors.keys()), PAGE_SIZE):
            found = self._work.store.vectors.embeddings(page, embedder.model)
            self._vectors.update((key, made.vector) for key, made in found.items())


def _causal_links(items: Sequence[ThreadMemory], work: JobContext) -> dict[str, dict[str, float]]:
    """Map each memory to those it caused or was caused by, with the strength."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    pages = batches((item.id for item in items), PAGE_SIZE)
    for link in (one for ids in pages for one in work.store.graph.links_of(ids, _CAUSAL)):
        if link.src.kind == link.dst.kind == "item":
            strength = link.weight * link.confidence
            found[link.src.id][link.dst.id] = strength
            found[link.dst.id][link.src.id] = strength
    return found


def _thread_id(begun: str) -> str:
    """Build a stable id from the anchor or, without one, the first memory."""
    return journal.GENERATED_PREFIX + hashlib.sha256(begun.encode()).hexdigest()[:16]
