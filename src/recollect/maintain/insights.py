"""The insight tree: leaves over memories of one subject, branches over leaves, a root.

A run makes what is due on one level after the other: a branch sees the leaves that were
there when the run began, so that a new subject has grown to the root after three runs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from recollect.errors import ModelError
from recollect.insights import imprint, seen_by
from recollect.maintain.condense import RULES, SECRET, invented
from recollect.maintain.consolidate import entity_name
from recollect.maintain.grouping import Group, grouped, likeness_of, split
from recollect.maintain.job import Proposal, Work, is_made_by
from recollect.maintain.looking import each
from recollect.maintain.points import Point, points_of, title_of, wording
from recollect.model import Draft, Item
from recollect.prompts import cited, fill, passages_of
from recollect.text import word_set

if TYPE_CHECKING:
    from recollect.ports import Matrix

LEAF, BRANCH, ROOT = "leaf", "branch", "root"
PART_OF_ALL = "insights and threads are made of the whole memory, not of a part of it"
_MOST_TEXT = 6_000  # characters
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}: ")


@dataclass(frozen=True, slots=True)
class Insights:
    """From ``min_loose`` memories that no leaf holds, those with ``min_leaf`` of one
    subject become leaves of at most ``most_leaf``. A branch is made over ``min_leaves``
    leaves of a subject and anew after ``branch_after`` of them changed; a root over
    ``min_branches`` branches, lone leaves included, and anew after ``root_after``. A leaf
    whose memories changed or went is made anew at once, or goes.
    """

    min_loose: int = 20
    min_leaf: int = 10
    most_leaf: int = 30
    min_leaves: int = 2
    branch_after: int = 3
    min_branches: int = 2
    root_after: int = 2
    levels: tuple[str, ...] = ("item",)
    name: str = "insights"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: Work) -> Iterator[Proposal]:
        """Leaves first, then what stands over those that are there already."""
        if work.filters.narrows:
            yield Proposal(PART_OF_ALL, "")
            return
        with work.store.snapshot():
            items = {
                item.id: item
                for item in each(work, levels=self.levels)
                if not item.flags and not is_made_by(item, self.name)
            }
            tree = standing(work, self.name)
        yield from self._leaves(items, tree[LEAF], work)
        yield from self._above(tree[LEAF], tree[BRANCH], BRANCH, work)
        yield from self._above(self._tops(tree), tree[ROOT], ROOT, work)

    def _tops(self, tree: Mapping[str, Sequence[Item]]) -> list[Item]:
        """What the root stands over: the branches, and leaves too few for one."""
        counted = Counter(_group_of(leaf).key for leaf in tree[LEAF])
        alone = [leaf for leaf in tree[LEAF] if counted[_group_of(leaf).key] < self.min_leaves]
        return [*tree[BRANCH], *alone]

    def _leaves(
        self, items: Mapping[str, Item], leaves: Sequence[Item], work: Work
    ) -> Iterator[Proposal]:
        held: set[str] = set()
        stale: dict[str, list[tuple[Item, list[Item]]]] = defaultdict(list)
        for leaf in leaves:
            seen, group = seen_by(leaf), _group_of(leaf)
            there = [items[one] for one in seen if one in items and group.admits(items[one])]
            held.update(item.id for item in there)
            if len(there) < len(seen) or any(imprint(item) != seen[item.id] for item in there):
                stale[group.key].append((leaf, there))
        loose = [item for item in items.values() if item.id not in held]
        enough = len(loose) >= self.min_loose
        for group, members in grouped(list(items.values())).items():
            waiting = [item for item in members if item.id not in held]
            for leaf, there in stale.pop(group.key, ()):
                yield self._renewed(group, leaf, there, work)
            if enough and len(waiting) >= self.min_leaf:
                yield from self._new_leaves(group, waiting, members, work)
        for left in stale.values():
            for leaf, there in left:
                yield self._renewed(_group_of(leaf), leaf, there, work)

    def _new_leaves(
        self, group: Group, waiting: Sequence[Item], members: Sequence[Item], work: Work
    ) -> Iterator[Proposal]:
        vectors = vectors_of(waiting, work)
        subject, everywhere = subject_of(group, work), wording(members)
        for part in split(waiting, vectors, self.most_leaf):
            chosen = [waiting[at] for at in part]
            yield _leaf(group, title_of(subject, chosen, everywhere), chosen, (), work)

    def _renewed(self, group: Group, leaf: Item, there: Sequence[Item], work: Work) -> Proposal:
        if len(there) < 2:
            rule = "what it was made of is gone"
            return Proposal(f"{leaf.caption}: {rule}", rule, ends=(leaf.id,), renews=True)
        subject = subject_of(group, work)
        named = str(leaf.caption or subject)
        # Its old name may not go on telling what its memories no longer say.
        told = word_set(subject).union(*(word_set(item.text) for item in there))
        title = named if word_set(named) <= told else subject
        return _leaf(group, title, there, (leaf.id,), work)

    def _above(
        self, below: Sequence[Item], there: Sequence[Item], kind: str, work: Work
    ) -> Iterator[Proposal]:
        """Branches over leaves of one subject, or the root over all branches."""
        least, after = (
            (self.min_leaves, self.branch_after)
            if kind == BRANCH
            else (self.min_branches, self.root_after)
        )
        groups: defaultdict[str, list[Item]] = defaultdict(list)
        for item in below:
            groups[_group_of(item).key if kind == BRANCH else _tree_of(item).key].append(item)
        known = {str(item.metadata.get("group")): item for item in there}
        for older in there:
            if older not in known.values():  # left beside its successor by a run cut off
                rule = "it was made anew"
                yield Proposal(f"{older.caption}: {rule}", rule, ends=(older.id,), renews=True)
        for key in sorted(groups.keys() | known.keys()):
            parts, before = groups.get(key, []), known.get(key)
            if len(parts) < least:
                if before is not None:
                    rule = "what it was made of is gone"
                    why = f"{before.caption}: {rule}"
                    yield Proposal(why, rule, ends=(before.id,), renews=True)
                continue
            there_now = {item.id for item in parts}
            seen = seen_by(before).keys() if before is not None else set()
            changed, gone = len(there_now ^ seen), not seen <= there_now
            if before is None or changed >= after or gone:
                yield _higher(kind, key, parts, (before.id,) if before else (), work)


def standing(work: Work, job: str) -> dict[str, list[Item]]:
    """The tree as it stands, level by level, each level in a fixed order."""
    tree: dict[str, list[Item]] = {LEAF: [], BRANCH: [], ROOT: []}
    for item in each(work, levels=("insight",)):
        if is_made_by(item, job) and item.kind in tree:
            tree[item.kind].append(item)
    return {kind: sorted(found, key=lambda one: one.id) for kind, found in tree.items()}


def subject_of(group: Group, work: Work) -> str:
    """What people call the group."""
    kind, _, key = group.subject.partition(":")
    if kind == "topic":
        return key
    if kind != "kind":
        return entity_name(group.subject, work)
    ending = f"{key[:-1]}ies" if key.endswith("y") else f"{key}s"
    return ending[:1].upper() + ending[1:]


def vectors_of(items: Sequence[Item], work: Work) -> Matrix | None:
    """The memories' vectors; None where one is missing."""
    if work.embedder is None:
        return None
    import numpy as np  # start-up time: only maintenance needs it here

    ids = [item.id for item in items]
    found = work.store.embeddings(ids, work.embedder.model)
    if len(found) < len(ids):
        return None
    return np.stack([found[one].vector for one in ids]).astype(np.float32)


def _group_of(insight: Item) -> Group:
    """The group it was made of; of one that does not say, what can be told by itself."""
    told = str(insight.metadata.get("group")).rsplit("|", 2)
    if len(told) < 3 or not (told[1].isdigit() and told[2].isdigit()):
        return Group(f"kind:{insight.kind}", insight.classification, insight.trust)
    return Group(told[0], int(told[1]), int(told[2]))


def _tree_of(insight: Item) -> Group:
    """The root a branch belongs to: one for each secrecy and trust."""
    return _group_of(insight)._replace(subject="all")


def _leaf(
    group: Group, title: str, items: Sequence[Item], before: tuple[str, ...], work: Work
) -> Proposal:
    likeness = likeness_of(items, vectors_of(items, work))
    points = points_of(items, likeness)
    return _proposal(LEAF, group.key, title, items, points, before, work)


def _higher(
    kind: str, key: str, parts: Sequence[Item], before: tuple[str, ...], work: Work
) -> Proposal:
    """A branch or the root: each part with its newest point, in the order of time."""
    in_time = sorted(parts, key=lambda one: (one.when, one.text))
    subject = subject_of(_group_of(parts[0]), work) if kind == BRANCH else "What is known here"
    points = [Point(_heading(part), (part.id,)) for part in in_time]
    return _proposal(kind, key, subject, in_time, points, before, work)


def _heading(part: Item) -> str:
    points = [line[2:] for line in part.text.split("\n") if line.startswith("- ")]
    newest = points[-1] if points else ""
    # What stands in a branch is headed already: the root says its own heading alone.
    dated = _DATED.search(newest)
    return f"{part.caption or part.kind}. {newest[dated.start() :] if dated else newest}".strip()


def _proposal(  # noqa: PLR0917 - everything an insight is made of
    kind: str,
    group: str,
    title: str,
    sources: Sequence[Item],
    points: Sequence[Point],
    before: tuple[str, ...],
    work: Work,
) -> Proposal:
    made_by = RULES
    if work.model is not None and not any(item.classification >= SECRET for item in sources):
        title, points, made_by = _by_model(kind, title, sources, points, work)
    first, last = min(item.when for item in sources), max(item.when for item in sources)
    text = "\n".join([f"{title}:", *(f"- {point.text}" for point in points)])[:_MOST_TEXT]
    draft = Draft(
        text,
        level="insight",
        kind=kind,
        caption=title[:160],
        topic=group.removeprefix("topic:").rsplit("|", 2)[0] if group[:6] == "topic:" else None,
        occurred_at=first,
        occurred_end=last,
        confidence=fmean(item.confidence for item in sources),
        importance=max(item.importance for item in sources) * 0.9,
        metadata=_about(group, sources, points, made_by),
        key=_key(kind, group, sources, before),
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
    )


def _key(kind: str, group: str, sources: Sequence[Item], before: tuple[str, ...]) -> str:
    """The same for the same insight in place of the same one: memories that say again what
    they said once make a new one, and what was undone is not made again."""
    said = [kind, group, sorted((item.id, imprint(item)) for item in sources), before]
    digest = hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()
    return f"insights:{digest}"


def _about(
    group: str, sources: Sequence[Item], points: Sequence[Point], made_by: str
) -> dict[str, Any]:
    return {
        "made_by": made_by,
        "group": group,
        # Pairs, not keys: an id that ends in "pwd" must not make its imprint a password.
        "seen": [[item.id, imprint(item)] for item in sources],
        "points": [{"text": point.text, "sources": list(point.sources)} for point in points],
    }


def _by_model(
    kind: str, title: str, sources: Sequence[Item], points: Sequence[Point], work: Work
) -> tuple[str, Sequence[Point], str]:
    """Title and points by the model, believed where they stand on what it was shown."""
    assert work.model is not None
    passages = passages_of(work.store, [item.id for item in sources])
    try:
        prompt = fill(f"insight-{kind}", work.store.space, entries=passages)
        answer = work.model.complete(prompt, budget=work.budget)
    except ModelError:
        return title, points, RULES
    by_id = {item.id: item for item in sources}
    written = []
    for point in answer["points"]:
        bearing = tuple(one for one in cited(passages, point["sources"]) if one in by_id)
        if bearing and not any(invented(point["text"], [by_id[one] for one in bearing])):
            written.append(Point(" ".join(point["text"].split()), bearing))
    named = " ".join(answer["name"].split())
    if not written or any(invented(named, sources)):
        return title, points, RULES
    return named, written, work.model.name
