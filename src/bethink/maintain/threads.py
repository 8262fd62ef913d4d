"""Find threads: long-running topics, by anchor, links and time.

All memories are placed in the order of time: the same memories give the same threads, and
forgotten or corrected memories leave them automatically.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bethink.core.arrays import Vector, np
from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import DAY_S
from bethink.maintain.insights import NEEDS_WHOLE_MEMORY
from bethink.maintain.job import PAGE_SIZE, JobContext, Proposal, batches
from bethink.maintain.journal import GENERATED_PREFIX, HIGHEST_CLASSIFICATION, undone_threads
from bethink.maintain.thread_events import (
    REACH,
    Seen,
    StoreThread,
    ThreadMemory,
    ThreadView,
    common_entities,
    generated_threads,
    member_role,
    thread_events,
    thread_headline,
    thread_items,
    thread_kind,
    thread_lifecycle,
    thread_proposals,
    thread_state,
    thread_views,
)
from bethink.model import Member, Thread
from bethink.retrieval.provenance import mark_outdated

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
    by_age: bool = False

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
        undone = undone_threads(work.store) if due else set()
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
    for level in range(HIGHEST_CLASSIFICATION + 1):
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
        StoreThread(key, kept, level)(work)


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
            self._joined[placed.thread] = HIGHEST_CLASSIFICATION + 1
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
    return GENERATED_PREFIX + hashlib.sha256(begun.encode()).hexdigest()[:16]
