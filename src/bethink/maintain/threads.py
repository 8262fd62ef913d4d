"""Find threads: long-running topics, by anchor, links and time.

Memories are placed in the order of time: the same memories give the same threads, and
forgotten or corrected memories leave them automatically. The first run goes through all
of them, a later one through what changed and what depends on it.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import DAY_S
from bethink.maintain.insights import NEEDS_WHOLE_MEMORY
from bethink.maintain.job import (
    PAGE_SIZE,
    JobContext,
    Proposal,
    batches,
)
from bethink.maintain.journal import (
    CAUSAL,
    GENERATED_PREFIX,
    HIGHEST_CLASSIFICATION,
    REACH,
    Place,
    changes_since,
    dependence,
    items_between,
    look_again,
    place_text,
    read_place,
    with_names,
)
from bethink.maintain.thread_events import (
    Seen,
    ThreadMemory,
    ThreadView,
    aged_threads,
    anchor_of,
    common_entities,
    generated_threads,
    is_generated,
    member_role,
    thread_events,
    thread_headline,
    thread_kind,
    thread_lifecycle,
    thread_proposals,
    thread_state,
    thread_views,
)
from bethink.model import Item, Member, Thread

if TYPE_CHECKING:
    from bethink.ports import Vector


_MAX_COMPARED = 40  # memories of an entity that one is compared with
_BLOCK = 500
_MAX_VECTORS = 20_000


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

    A memory depends on those alone, so a run looks only at what changed since the last one
    and at what depends on that, and finds what a run over everything would find.

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
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose every thread that is new, changed or gone."""
        if work.filters.narrows:
            yield Proposal(NEEDS_WHOLE_MEMORY, "")
            return
        with work.store.snapshot():
            finding = ThreadSearch(self, thread_views(work), work)
            depends_on = finding.depends_on
            place = read_place(self.name, work)
            if place is not None and (place.depends_on != depends_on or place.at > work.now):
                place = None
            changes = changes_since(place, work) if place is not None else None
            here = place_text(depends_on, work)
            if changes is not None and (changes.disturbed or changes.threads):
                changes = None  # stored threads tell what stands as before: all are of one run
            if place is not None and changes is not None:
                before, found = finding.renew(place, changes.ids)
                news = bool(changes.ids or found)
            else:
                place, news = None, True
                before, found = finding.stored(), finding.find_all()
            finding.drop_hidden(before, found)
            # Vectors that come later are no change of a memory: it is looked at again until then.
            if finding.lacks_vectors:
                here = look_again(here, place, work) if place is not None else ""
                news = False
        keys = sorted({key for _, key in (*found, *before)})
        due = [one for key in keys for one in thread_proposals(key, finding.levels, found, before)]
        yield from due
        if here and (due or news):
            yield Proposal("", "", place=here)

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
    """Finds threads: all of them, or those that changed since a place."""

    def __init__(self, rules: FindThreads, views: Sequence[ThreadView], work: JobContext) -> None:
        self._rules, self._views, self._work = rules, views, work
        self._common = common_entities(views)
        self._refolded: dict[str, Placement] = {}
        self._first: dict[str, ThreadMemory] = {}  # of a thread, though it be alone
        self._highest: dict[str, int] = {}  # classification of a thread's memories
        self.levels = [view.level for view in views]
        self.lacks_vectors = False

    @property
    def depends_on(self) -> str:
        """What the threads depend on besides the memories."""
        model = self._work.embedder.model if self._work.embedder else ""
        common = [(view.level, sorted(view.common)) for view in self._views]
        return dependence(self._rules, self._work.filters, model, common)

    def stored(self) -> Seen:
        """Return the threads that this job has stored, as each view shows them."""
        return {
            (view.level, thread.id): thread
            for view in self._views
            for thread in generated_threads(view.work)
        }

    def find_all(self) -> Seen:
        """Go through all memories in the order of time; return the threads."""
        items = sorted(self._between(None, None))
        folding = _Folding(self._rules, self._common, self._work, lambda _: None)
        grouped: defaultdict[str, list[tuple[ThreadMemory, float]]] = defaultdict(list)
        for item, placed in folding.place(items):
            grouped[placed.thread].append((item, placed.score))
        self.lacks_vectors = folding.lacks_vectors
        found: Seen = {}
        for key, members in grouped.items():
            self._finish(key, members, found)
        return found

    def renew(self, place: Place, changed: frozenset[str]) -> tuple[Seen, Seen]:
        """Return the threads that may have changed since, as stored and as they are now."""
        activity = self._work.store.activity
        before = {one.id: one for one in activity.threads_of(sorted(changed)) if is_generated(one)}
        anchors: dict[str, str] = {}
        waiting: list[datetime] = []
        for item_id in sorted(changed):
            for revision in self._work.store.items.history(item_id):
                anchor = anchor_of(revision)
                if anchor is not None and revision.level in self._rules.levels:
                    anchors[_thread_id(anchor)] = anchor
                waiting += self._matters_from(revision)
        waiting += (item.when for item in self._memories(self._causally_linked(changed)))
        touched = {*before, *anchors, *self._refold(waiting)}
        for key in touched - before.keys():
            thread = activity.thread(key)
            if thread is not None:
                before[key] = thread
        anchors.update((key, one.anchor) for key, one in before.items() if one.anchor)
        found: Seen = {}
        for key in touched:
            members = self._members(key, anchors.get(key), before.get(key), changed)
            self._finish(key, members, found)
        return self._seen(before, touched, place, found), found

    def _seen(
        self, before: Mapping[str, Thread], touched: set[str], place: Place, found: Seen
    ) -> Seen:
        """Return the threads as each view shows them; add those that have only aged."""
        seen = {(self.levels[-1], key): thread for key, thread in before.items()}
        for view in self._views[:-1]:
            stored = ((key, view.work.store.activity.thread(key)) for key in touched)
            seen |= {(view.level, key): one for key, one in stored if one is not None}
        for view in self._views:
            for thread in aged_threads(place, view.work):
                if thread.id not in touched:
                    seen[view.level, thread.id] = thread
                    found[view.level, thread.id] = _with_state(thread, self._work)
        return seen

    def drop_hidden(self, before: Seen, found: Seen) -> None:
        """Take out threads to store anew: hidden although none of their memories is any more."""
        for level in {*self._highest.values()}.difference(self.levels):
            activity = self._work.store.below(level).activity
            for key in [key for key, highest in self._highest.items() if highest == level]:
                at = self.levels[-1], key
                if at in before and at in found and activity.thread(key) is None:
                    del before[at]

    def _between(
        self, start: datetime | None, end: datetime | None, **narrower: Any
    ) -> Iterator[ThreadMemory]:
        found = items_between(start, end, self._work, levels=self._rules.levels, **narrower)
        return (ThreadMemory.of(item) for item in found if not item.flags)

    def _memories(self, ids: Iterable[str]) -> list[ThreadMemory]:
        """Return those of the memories that threads are made of."""
        wanted = tuple(sorted(ids))
        pages = batches(wanted, PAGE_SIZE)
        return [item for page in pages for item in self._between(None, None, ids=tuple(page))]

    def _matters_from(self, revision: Item) -> list[datetime]:
        """Return the time from which a placement may depend on a revision; none if none does."""
        common = self._common[revision.classification]
        telling = tuple(entity for entity in revision.entities if entity not in common)
        if revision.level not in self._rules.levels or not telling:
            return []
        if anchor_of(revision) is None:
            return [revision.when]
        names = with_names(telling)
        later = self._between(revision.when, revision.when + REACH, entities=names)
        return [revision.when] if any(item.anchor is None for item in later) else []

    def _causally_linked(self, ids: Iterable[str]) -> set[str]:
        links = self._work.store.graph.links_of(sorted(ids), CAUSAL)
        return {end.id for link in links for end in (link.src, link.dst)}

    def _refold(self, waiting: list[datetime]) -> set[str]:
        """Place again what may depend on these times; return the threads that changed.

        Nothing depends on a memory for longer than the reach: where all has stood as before
        for so long, all that follows stands as before.
        """
        heapq.heapify(waiting)
        touched: set[str] = set()
        while waiting:
            start = heapq.heappop(waiting)
            until = start + REACH
            folding = _Folding(self._rules, self._common, self._work, self._earlier)
            past = sorted(self._between(start - REACH, start))
            for item, placed in zip(past, self._placements(past), strict=True):
                folding.see(item, placed)
            while start < until:
                items = sorted(self._between(start, until))
                stored = dict(zip((item.id for item in items), self._stored(items), strict=True))
                start = until
                for item, placed in folding.place(items):
                    known = stored[item.id]
                    self._refolded[item.id] = placed
                    self._see_first(item, placed)
                    if placed != known:
                        touched |= {placed.thread, known.thread}
                    if placed.thread != known.thread:
                        until = max(until, item.when + REACH)
                        for other in self._memories(self._causally_linked([item.id])):
                            if other > item:
                                heapq.heappush(waiting, other.when)
                while waiting and waiting[0] < start:
                    until = max(until, heapq.heappop(waiting) + REACH)
            self.lacks_vectors |= folding.lacks_vectors
        return touched

    def _stored(self, items: Sequence[ThreadMemory]) -> Iterator[Placement]:
        """Yield the placements as the last run left them."""
        loose = [item.id for item in items if item.anchor is None]
        there: dict[str, Placement] = {}
        for page in batches(loose, PAGE_SIZE):
            for thread in filter(is_generated, self._work.store.activity.threads_of(page)):
                for member in thread.members:
                    begins = thread.id == _thread_id(f"item:{member.item}")
                    there[member.item] = Placement(thread.id, member.weight, begins)
        for item in items:
            yield _by_anchor(item, self._rules) or there.get(item.id) or _alone(item)

    def _placements(self, items: Sequence[ThreadMemory]) -> list[Placement]:
        stored = zip(items, self._stored(items), strict=True)
        found = [self._refolded.get(item.id, placed) for item, placed in stored]
        for item, placed in zip(items, found, strict=True):
            self._see_first(item, placed)
        return found

    def _see_first(self, item: ThreadMemory, placed: Placement) -> None:
        if placed.begins or item.anchor is not None:
            self._first[placed.thread] = item

    def _earlier(self, item_id: str) -> tuple[ThreadMemory, Placement] | None:
        """Return a memory that was placed before, and where."""
        found = self._memories([item_id])
        return (found[0], self._placements(found)[0]) if found else None

    def _members(
        self, key: str, anchor: str | None, stored: Thread | None, changed: frozenset[str]
    ) -> list[tuple[ThreadMemory, float]]:
        """Return the members of a thread: those of its anchor, those placed again, the others."""
        first = self._first.get(key)
        kept = {first.id: 1.0} if first is not None else {}
        kept |= {member.item: member.weight for member in stored.members} if stored else {}
        again = {item for item, placed in self._refolded.items() if placed.thread == key}
        unchanged = {item for item in kept if item not in self._refolded and item not in changed}
        members = {}
        for item in self._memories(again | unchanged):
            if item.anchor is None and not item.is_derived:
                placed = self._refolded.get(item.id)
                members[item] = placed.score if placed else kept[item.id]
        anchor = anchor or (first.anchor if first is not None else None)
        if anchor is not None:
            kind, _, name = anchor.partition(":")
            about = {"topics": (name,)} if kind == "topic" else {"entities": with_names((anchor,))}
            for item in self._between(None, None, **about):
                if item.anchor == anchor:
                    members[item] = self._rules.explicit
        return sorted(members.items())

    def _finish(self, key: str, members: Sequence[tuple[ThreadMemory, float]], found: Seen) -> None:
        """Add the thread of these memories, as each view shows it."""
        self._highest[key] = max((item.classification for item, _ in members), default=0)
        thread = None
        for view in self._views:
            seen = [one for one in members if one[0].classification <= view.level]
            if len(seen) < 2:
                continue
            if thread is None or len(thread.members) < len(seen):
                thread = self._thread(key, seen, view.work)
            found[view.level, key] = thread

    def _thread(
        self, key: str, members: Sequence[tuple[ThreadMemory, float]], work: JobContext
    ) -> Thread:
        items = [item for item, _ in members]
        anchor = next((item.anchor for item in items if item.anchor is not None), None)
        events = thread_events(items)
        found = tuple(
            Member(
                item.id,
                member_role(item.stated, score, first=at == 0, match=self._rules.match),
                1.0 if at == 0 else score,
                item.stored_at,
            )
            for at, (item, score) in enumerate(members)
        )
        thread = Thread(
            id=key,
            headline=thread_headline(anchor, items, work),
            kind=thread_kind(anchor, events),
            anchor=anchor,
            members=tuple(sorted(found)),
            events=events,
            created_at=items[0].when,
            updated_at=items[-1].when,
        )
        return _with_state(thread, work)


def _with_state(thread: Thread, work: JobContext) -> Thread:
    state = thread_state(thread.events, work.now, anchored=thread.anchor is not None)
    return thread._replace(state=state, lifecycle=thread_lifecycle(thread.events, state, work.now))


def _by_anchor(item: ThreadMemory, rules: FindThreads) -> Placement | None:
    return Placement(_thread_id(item.anchor), rules.explicit) if item.anchor else None


def _alone(item: ThreadMemory) -> Placement:
    return Placement(_thread_id(f"item:{item.id}"), 1.0, begins=True)


Earlier = Callable[[str], tuple[ThreadMemory, Placement] | None]


class _Folding:
    """Places memories, one after the other in the order of time."""

    def __init__(
        self,
        rules: FindThreads,
        common: Mapping[int, frozenset[str]],
        work: JobContext,
        earlier: Earlier,
    ) -> None:
        self._rules, self._common, self._work, self._earlier = rules, common, work, earlier
        self._latest: dict[str, dict[int, deque[ThreadMemory]]] = {}  # by entity and class
        self._threads: dict[str, Placement] = {}
        self._joined: dict[str, int] = {}  # the lowest class of those that joined a thread
        self._causes: dict[str, dict[str, float]] = {}
        self._vectors: dict[str, Vector] = {}
        self.lacks_vectors = False

    def place(self, items: Sequence[ThreadMemory]) -> Iterator[tuple[ThreadMemory, Placement]]:
        """Yield each memory with its placement; these follow those seen so far."""
        loose = [item for item in items if item.anchor is None and not item.is_derived]
        self._causes = _causal_links(loose, self._work)
        by_id = {item.id: item for item in items} if self._causes else {}
        for block in batches(items, _BLOCK):
            self._read_vectors(block)
            for item in block:
                # Derived memories cover many days: they join a thread only by its name.
                placed = _by_anchor(item, self._rules)
                if placed is None and not item.is_derived:
                    placed = self._best_placement(item, by_id)
                if placed is not None:
                    yield item, placed
                    self.see(item, placed)

    def see(self, item: ThreadMemory, placed: Placement) -> None:
        """Let those that follow depend on a memory."""
        if item.is_derived:
            return
        if placed.begins:
            self._joined[placed.thread] = HIGHEST_CLASSIFICATION + 1
        elif placed.thread in self._joined:
            lowest = min(item.classification, self._joined[placed.thread])
            self._joined[placed.thread] = lowest
        self._threads[item.id] = placed
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

    def _best_placement(self, item: ThreadMemory, by_id: Mapping[str, ThreadMemory]) -> Placement:
        rules = self._rules
        best: dict[str, float] = {}
        for score, thread in self._scores(item, by_id):
            best[thread] = max(score, best.get(thread, 0.0))
        ranked = sorted(((score, thread) for thread, score in best.items()), reverse=True)
        if ranked:
            score, thread = ranked[0]
            is_single = item.classification < self._joined.get(thread, -1)
            least = rules.new if is_single else rules.match
            clear = len(ranked) == 1 or score - ranked[1][0] >= rules.margin
            if score >= least and clear:
                return Placement(thread, round(min(1.0, score), 4))
        return _alone(item)

    def _scores(
        self, item: ThreadMemory, by_id: Mapping[str, ThreadMemory]
    ) -> Iterator[tuple[float, str]]:
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
        threads = {other.id: self._threads[other.id].thread for other in shared}
        for other_id in causes.keys() - threads.keys():
            found = self._find(other_id, by_id)
            if found is not None and found[0] < item:
                other, placed = found
                if other.classification > item.classification:
                    continue
                threads[other.id] = placed.thread
                shared[other] = len(set(telling).intersection(other.entities))
        for other, count in shared.items():
            days = (item.when - other.when).total_seconds() / DAY_S
            pair = Pair(
                causes.get(other.id, 0.0),
                max(0.0, 1.0 - days / self._rules.near_days) if count else 0.0,
                likeness.get(other.id, 0.0),
                count / len(telling) if telling else 0.0,
            )
            yield self._rules.score(pair), threads[other.id]

    def _find(
        self, item_id: str, by_id: Mapping[str, ThreadMemory]
    ) -> tuple[ThreadMemory, Placement] | None:
        if item_id in by_id:
            placed = self._threads.get(item_id)
            return (by_id[item_id], placed) if placed else None
        return self._earlier(item_id)

    def _likeness(self, item: ThreadMemory, others: Sequence[ThreadMemory]) -> dict[str, float]:
        mine = self._vectors.get(item.id)
        known = [other.id for other in others if other.id in self._vectors]
        if mine is None or not known:
            return {}
        import numpy as np  # start-up time: only maintenance needs it here

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
            self.lacks_vectors |= len(found) < len(page)
            self._vectors.update((key, made.vector) for key, made in found.items())


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


def _thread_id(begun: str) -> str:
    """Build a stable id from the anchor or, without one, the first memory."""
    return GENERATED_PREFIX + hashlib.sha256(begun.encode()).hexdigest()[:16]
