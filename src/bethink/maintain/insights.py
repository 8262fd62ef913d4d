"""The insight tree: leaves over memories of one subject, branches over leaves, a root.

A run builds what is due on every level: a branch sees the leaves that existed when the
run began, so a new subject reaches the root after three runs. Grouping depends on the
memories only, not on the order they were stored in.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from sys import intern

from bethink.core.arrays import Matrix
from bethink.core.characters import strip_hidden
from bethink.core.json_values import Json
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption
from bethink.errors import ModelError
from bethink.ingest.admission import DERIVED_SOURCE
from bethink.maintain.cleanup import repeating
from bethink.maintain.consolidate import (
    RULES,
    SECRET_CLASSIFICATION,
    TYPICAL_PREFIX,
    UNSUPPORTED,
    entity_name,
    is_borne_out,
    split_by_meaning,
    unsupported_numbers,
)
from bethink.maintain.job import (
    JobContext,
    Proposal,
    is_made_by,
    is_valid,
    iter_current,
    iter_items,
    similarity_matrix,
    vectors_of,
    visible_items,
)
from bethink.model import Draft, Item
from bethink.prompts import cited_ids, fill_prompt, load_passages
from bethink.retrieval.provenance import content_digest, recorded_sources, source_record

_HUB_SHARE = 0.6  # an entity mentioned by more than this share of all memories is not distinctive


class SubjectGroup(NamedTuple):
    """What memories have in common: topic, entity or kind; and classification and trust."""

    subject: str
    classification: int
    trust: int

    @property
    def key(self) -> str:
        return f"{self.subject}|{self.classification}|{self.trust}"

    def admits(self, item: LooseMemory) -> bool:
        """Whether a memory still belongs; a change of entities alone does not exclude it."""
        kind, _, topic = self.subject.partition(":")
        if kind == "topic" and item.topic != topic:
            return False
        return (item.classification, item.trust) == (self.classification, self.trust)


class LooseMemory(NamedTuple):
    """What grouping needs of a memory: much less than all of it."""

    id: str
    topic: str | None
    entities: tuple[str, ...]
    kind: str
    classification: int
    trust: int
    digest: str

    @classmethod
    def of(cls, item: Item) -> LooseMemory:
        marks = item.classification, item.trust, content_digest(item)
        # Many memories share these: once each.
        topic = intern(item.topic) if item.topic else None
        return cls(item.id, topic, tuple(map(intern, item.entities)), intern(item.kind), *marks)


def group_by_subject(items: Sequence[LooseMemory]) -> dict[SubjectGroup, list[str]]:
    """Group memories by subject, without a look at higher classes; returns their ids."""
    groups: defaultdict[SubjectGroup, list[str]] = defaultdict(list)
    for level in {item.classification for item in items}:
        seen = [item for item in items if item.classification <= level]
        counted = Counter(entity for item in seen for entity in item.entities)
        ceiling = max(2.0, _HUB_SHARE * len(seen))
        for item in (one for one in seen if one.classification == level):
            subject = _subject_of(item, counted, ceiling)
            groups[SubjectGroup(subject, level, item.trust)].append(item.id)
    return dict(sorted(groups.items()))


def _subject_of(item: LooseMemory, counted: Mapping[str, int], ceiling: float) -> str:
    """Return the memory's topic, else its most shared entity, else its kind."""
    if item.topic:
        return f"topic:{item.topic}"
    distinctive = [entity for entity in item.entities if 2 <= counted[entity] <= ceiling]
    if distinctive:
        return min(distinctive, key=lambda entity: (-counted[entity], entity))
    return f"kind:{item.kind}"


MAX_POINTS = 5
POINT_CHARACTERS = 200
_REDUNDANCY_PENALTY = 0.5  # penalty of a point for repeating another
TITLE_CHARACTERS = 120


class Point(NamedTuple):
    """A sentence and the memories that support it, its own source first."""

    text: str
    sources: tuple[str, ...]


def points_of(items: Sequence[Item], likeness: Sequence[Sequence[float]]) -> list[Point]:
    """Choose the most central memories as points, each with the memories that say it too."""
    centrality = [sum(row) / len(row) for row in likeness]
    left = dict.fromkeys(range(len(items)))
    nearest = dict.fromkeys(left, float("-inf"))  # likeness to the nearest of those chosen
    chosen: list[int] = []
    while left and len(chosen) < MAX_POINTS:
        repeated = nearest if chosen else dict.fromkeys(left, 0.0)
        worth = {at: centrality[at] - _REDUNDANCY_PENALTY * repeated[at] for at in left}
        most = max(worth.values())
        best = [at for at, value in worth.items() if value == most]
        last = max(best, key=lambda at: (items[at].importance, items[at].text))
        chosen.append(last)
        del left[last]
        nearest = {at: max(nearest[at], likeness[at][last]) for at in left}
    in_time = sorted(chosen, key=lambda at: (items[at].when, items[at].text))
    texts = [_main_text(item) for item in items]
    rest = [(items[at].id, texts[at]) for at in left]
    return [
        Point(point_text(items[at]), (items[at].id, *repeating(texts[at], rest))) for at in in_time
    ]


def point_text(item: Item) -> str:
    """Format a memory as one line with its day."""
    return f"{item.when.date().isoformat()}: {caption(_main_text(item), limit=POINT_CHARACTERS)}"


def _main_text(item: Item) -> str:
    """Return a memory's text; of a learning only its typical sentence."""
    said = strip_hidden(item.text)
    if item.source_class != DERIVED_SOURCE:
        return said
    lines = said.split("\n")
    typical = (
        line.removeprefix(TYPICAL_PREFIX) for line in lines if line.startswith(TYPICAL_PREFIX)
    )
    return next(typical, said)


def leading_sentence(items: Sequence[Item], likeness: Sequence[Sequence[float]]) -> str:
    """Return the first sentence of the most central memory: a title in its own words."""
    central = max(
        range(len(items)), key=lambda at: (sum(likeness[at]), items[at].importance, items[at].text)
    )
    return caption(_main_text(items[central]), limit=TITLE_CHARACTERS)


LEAF, BRANCH, ROOT = "leaf", "branch", "root"
NEEDS_WHOLE_MEMORY = "insights and threads use all memories, so filters are not supported"
_MAX_TEXT = 6_000  # characters
_MAX_PARTS = 500  # insights below one
_DATE_PREFIX = lazy_pattern(r"\d{4}-\d{2}-\d{2}: ")


@dataclass(frozen=True, slots=True)
class Insights:
    """Build and renew the insight tree.

    From ``min_loose`` memories that no leaf holds, those with ``min_leaf`` of one subject
    become leaves of at most ``most_leaf``; in a space of fewer than ``small`` memories
    ``small_loose`` and ``small_leaf`` are enough. A branch is made over ``min_leaves`` leaves of a
    subject and renewed after ``branch_after`` of them changed; a root over ``min_branches``
    branches, single leaves included, and renewed after ``root_after``. A leaf whose
    memories changed or were removed is renewed at once, or removed.
    """

    min_loose: int = 20
    min_leaf: int = 10
    most_leaf: int = 30
    small: int = 100
    small_loose: int = 8
    small_leaf: int = 4
    min_leaves: int = 2
    branch_after: int = 3
    min_branches: int = 2
    root_after: int = 2
    levels: tuple[str, ...] = ("item",)
    name: str = "insights"

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose leaves first, then the levels above the existing ones."""
        if work.filters.narrows:
            yield Proposal(NEEDS_WHOLE_MEMORY, "")
            return
        with work.store.snapshot():
            tree = current_tree(work, self.name)
            items = {
                item.id: LooseMemory.of(item)
                for item in iter_current(work, levels=self.levels)
                if is_valid(item, work) and not item.flags and not is_made_by(item, self.name)
            }
            held, stale = _held_by(tree[LEAF], items)
        yield from self._renew_leaves(stale, work)
        yield from self._plan_leaves(items, held, work)
        yield from self._plan_level_above(tree[LEAF], tree[BRANCH], BRANCH, work)
        yield from self._plan_level_above(self._root_children(tree), tree[ROOT], ROOT, work)

    def _root_children(self, tree: Mapping[str, Sequence[Item]]) -> list[Item]:
        """Return the children of the root: the branches, and leaves too few for one."""
        counted = Counter(_group_of(leaf).key for leaf in tree[LEAF])
        alone = [leaf for leaf in tree[LEAF] if counted[_group_of(leaf).key] < self.min_leaves]
        return [*tree[BRANCH], *alone]

    def _renew_leaves(self, stale: Sequence[StaleLeaf], work: JobContext) -> Iterator[Proposal]:
        for leaf, ids in sorted(stale, key=lambda pair: (_group_of(pair[0]), pair[0].id)):
            items = visible_items(ids, self.levels, work)
            there = [items[item_id] for item_id in ids if item_id in items]
            if len(there) < 2:
                yield _removal(leaf, "its sources are gone")
            else:
                vectors = vectors_of(there, work)
                yield _leaf_proposal(_group_of(leaf), there, (leaf.id,), vectors, work)

    def _plan_leaves(
        self, items: Mapping[str, LooseMemory], held: set[str], work: JobContext
    ) -> Iterator[Proposal]:
        loose = [item for key, item in items.items() if key not in held]
        if len(loose) < min(self.min_loose, self.small_loose):
            return
        counts = [Counter(one.classification for one in some) for some in (loose, items.values())]
        for group, waiting in group_by_subject(loose).items():
            # Counted without a look at higher classes.
            free, there = (
                sum(count for level, count in of_class.items() if level <= group.classification)
                for of_class in counts
            )
            least = self.min_loose, self.min_leaf
            if there < self.small:
                least = min(self.small_loose, least[0]), min(self.small_leaf, least[1])
            if free >= least[0] and len(waiting) >= least[1]:
                found = visible_items(waiting, self.levels, work)
                # By text, so that ids decide nothing.
                in_order = sorted(found.values(), key=lambda one: (one.text, one.when, one.id))
                yield from self._plan_new_leaves(group, in_order, work)

    def _plan_new_leaves(
        self, group: SubjectGroup, waiting: Sequence[Item], work: JobContext
    ) -> Iterator[Proposal]:
        vectors = vectors_of(waiting, work)
        for part in split_by_meaning(waiting, vectors, self.most_leaf):
            items = [waiting[at] for at in part]
            of_part = vectors_of(items, work) if vectors is None else vectors[part]
            yield _leaf_proposal(group, items, (), of_part, work)

    def _plan_level_above(
        self, below: Sequence[Item], there: Sequence[Item], kind: str, work: JobContext
    ) -> Iterator[Proposal]:
        """Propose branches over leaves of one subject, or the root over all branches."""
        least, after = (
            (self.min_leaves, self.branch_after)
            if kind == BRANCH
            else (self.min_branches, self.root_after)
        )
        groups: defaultdict[str, list[Item]] = defaultdict(list)
        for item in below:
            group = _group_of(item)
            # A root for each classification and trust.
            key = group.key if kind == BRANCH else group._replace(subject="all").key
            groups[key].append(item)
        known = {str(item.metadata.get("group")): item for item in there}
        for older in there:
            if older not in known.values():  # left by an interrupted run
                yield _removal(older, "it was rebuilt")
        for key in sorted(groups.keys() | known.keys()):
            # The newest, in the order of time: as many as one can be made of.
            parts = sorted(groups.get(key, []), key=lambda one: (one.when, one.text))[-_MAX_PARTS:]
            before = known.get(key)
            if len(parts) < least:
                if before is not None:
                    yield _removal(before, "its sources are gone")
                continue
            there_now = {item.id for item in parts}
            seen = recorded_sources(before).keys() if before is not None else set()
            changed, gone = len(there_now ^ seen), not seen <= there_now
            if before is None or changed >= after or gone:
                yield _parent_proposal(kind, key, parts, (before.id,) if before else (), work)


StaleLeaf = tuple[Item, list[str]]  # a leaf, and those of its memories that are left


def _held_by(
    leaves: Sequence[Item], items: Mapping[str, LooseMemory]
) -> tuple[set[str], list[StaleLeaf]]:
    """Return the memories that leaves hold, and the leaves to renew."""
    held: set[str] = set()
    stale = []
    for leaf in leaves:
        seen, group = recorded_sources(leaf), _group_of(leaf)
        there = [items[key] for key in seen if key in items and group.admits(items[key])]
        ids = [item.id for item in there]
        held.update(ids)
        if len(there) < len(seen) or any(item.digest != seen[item.id] for item in there):
            stale.append((leaf, ids))
    return held, stale


def current_tree(work: JobContext, job: str) -> dict[str, list[Item]]:
    """Return the current tree, each level in its order."""
    tree: dict[str, list[Item]] = {LEAF: [], BRANCH: [], ROOT: []}
    for item in iter_items(work, levels=("insight",)):
        if is_made_by(item, job) and item.kind in tree:
            tree[item.kind].append(item)
    return {kind: sorted(found, key=lambda insight: insight.id) for kind, found in tree.items()}


def subject_name(group: SubjectGroup, work: JobContext) -> str:
    """Return the display name of the group."""
    kind, _, key = group.subject.partition(":")
    if kind == "topic":
        return key
    if kind != "kind":
        return entity_name(group.subject, work)
    ending = f"{key[:-1]}ies" if key.endswith("y") else f"{key}s"
    return ending[:1].upper() + ending[1:]


def _group_of(insight: Item) -> SubjectGroup:
    """Parse the group an insight was made of; fall back to its own fields."""
    parts = str(insight.metadata.get("group")).rsplit("|", 2)
    if len(parts) < 3 or not (parts[1].isdigit() and parts[2].isdigit()):
        return SubjectGroup(f"kind:{insight.kind}", insight.classification, insight.trust)
    return SubjectGroup(parts[0], int(parts[1]), int(parts[2]))


def _removal(insight: Item, rule: str) -> Proposal:
    return Proposal(f"{insight.caption}: {rule}", rule, ends=(insight.id,), renews=True)


def _leaf_proposal(
    group: SubjectGroup,
    items: Sequence[Item],
    before: tuple[str, ...],
    vectors: Matrix | None,
    work: JobContext,
) -> Proposal:
    likeness = similarity_matrix(items, vectors)
    title, points = leading_sentence(items, likeness), points_of(items, likeness)
    return _insight_proposal(LEAF, group.key, title, items, points, before, work)


def _parent_proposal(
    kind: str, key: str, parts: Sequence[Item], before: tuple[str, ...], work: JobContext
) -> Proposal:
    """Propose a branch or the root: each part with its newest point, in the order of time."""
    subject = subject_name(_group_of(parts[0]), work) if kind == BRANCH else "What is known here"
    points: list[Point] = []
    room = _MAX_TEXT
    for part in reversed(parts):
        heading = _heading(part)
        room -= len(heading) + 3
        if room >= 0:
            points.insert(0, Point(heading, (part.id,)))
    return _insight_proposal(kind, key, subject, parts, points, before, work)


def _heading(part: Item) -> str:
    points = [line[2:] for line in part.text.split("\n") if line.startswith("- ")]
    newest = points[-1] if points else ""
    # A branch has headings already: the root shows only its own.
    dated = _DATE_PREFIX.search(newest)
    newest = newest[dated.start() :] if dated else newest
    title = str(part.caption or part.kind).rstrip(".")
    return newest if title in newest else f"{title}. {newest}".strip()


def _insight_proposal(  # noqa: PLR0917 - everything an insight is made of
    kind: str,
    group: str,
    title: str,
    sources: Sequence[Item],
    points: Sequence[Point],
    before: tuple[str, ...],
    work: JobContext,
) -> Proposal:
    written = _WrittenPoints(title, points, RULES)
    is_secret = any(item.classification >= SECRET_CLASSIFICATION for item in sources)
    if work.model is not None and not is_secret:
        written = _points_by_model(kind, title, sources, points, work)
    title, points, made_by, remark = written
    first, last = min(item.when for item in sources), max(item.when for item in sources)
    digests = {item.id: content_digest(item) for item in sources}
    # By rules it consists of its members' sentences alone; a model writes a title of its own.
    heading = () if made_by == RULES else (f"{title}:",)
    text = "\n".join([*heading, *(f"- {point.text}" for point in points)])[:_MAX_TEXT]
    draft = Draft(
        text,
        level="insight",
        kind=kind,
        caption=title[:160],
        topic=group.removeprefix("topic:").rsplit("|", 2)[0] if group[:6] == "topic:" else None,
        occurred_at=first,
        occurred_end=last,
        classification=max(item.classification for item in sources),
        confidence=fmean(item.confidence for item in sources),
        importance=max(item.importance for item in sources) * 0.9,
        metadata=_insight_metadata(group, digests, points, made_by),
        key=_insight_key(kind, group, digests, before),
    )
    rule = f"{len(sources)} {'memories' if kind == LEAF else 'insights'} become one {kind}"
    return Proposal(
        f"{title}: {rule}",
        rule,
        ends=before,
        successor=draft,
        parents=tuple(item.id for item in sources),
        renews=True,
        seen={item.id: item.rev for item in sources},
        read={item.id: item for item in sources},
        remark=remark,
    )


def _insight_key(kind: str, group: str, digests: Mapping[str, str], before: tuple[str, ...]) -> str:
    """Build the idempotency key: the same sources replacing the same insight give the same key.

    Memories that return to an earlier text make a new insight, and what was undone is not
    made again.
    """
    said = [kind, group, sorted(digests.items()), before]
    digest = hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()
    return f"insights:{digest}"


def _insight_metadata(
    group: str, digests: Mapping[str, str], points: Sequence[Point], made_by: str
) -> Json:
    return {
        "made_by": made_by,
        "group": group,
        # Pairs, not keys: an id ending in "pwd" would make its hash look like a password.
        "seen": [source_record(key, digest) for key, digest in digests.items()],
        "points": [{"text": point.text, "sources": list(point.sources)} for point in points],
    }


class _WrittenPoints(NamedTuple):
    """A title and points, who wrote them, and why it was not the model, where there is one."""

    title: str
    points: Sequence[Point]
    made_by: str
    remark: str = ""


def _points_by_model(
    kind: str, title: str, sources: Sequence[Item], points: Sequence[Point], work: JobContext
) -> _WrittenPoints:
    """Let the model write title and points; use them where the sources support them."""
    assert work.model is not None
    passages = load_passages(work.store, [item.id for item in sources])
    try:
        prompt = fill_prompt(f"insight-{kind}", work.store.space, entries=passages)
        answer = work.model.complete(prompt, budget=work.budget)
    except ModelError as error:
        return _WrittenPoints(title, points, RULES, f"by rules: {error.message}")
    by_id = {item.id: item for item in sources}
    written = []
    for point in answer["points"]:
        bearing = tuple(key for key in cited_ids(passages, point["sources"]) if key in by_id)
        said, held = " ".join(point["text"].split()), [by_id[key] for key in bearing]
        if held and not any(unsupported_numbers(said, held)) and is_borne_out(said, held, work):
            written.append(Point(said, bearing))
    named = " ".join(answer["name"].split())
    if not written or any(unsupported_numbers(named, sources)):
        return _WrittenPoints(title, points, RULES, f"by rules: {UNSUPPORTED}")
    return _WrittenPoints(named, written, work.model.name)
