"""Sorts memories into subjects and subjects into parts: the same memories, the same parts,
whatever order they were stored in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.model import Item
from recollect.text import word_set

if TYPE_CHECKING:
    from recollect.ports import Matrix

_ROUNDS = 10
_HUB_SHARE = 0.6  # an entity that more than this share of all memories mention tells nothing


class Group(NamedTuple):
    """What memories have in common: a topic, an entity or a kind; and how secret and how
    trusted they are, for nothing becomes more or less so by standing beside others."""

    subject: str
    classification: int
    trust: int

    @property
    def key(self) -> str:
        return f"{self.subject}|{self.classification}|{self.trust}"

    def admits(self, item: Item) -> bool:
        """Whether a memory may stand in it still; other entities alone do not drive it out."""
        kind, _, topic = self.subject.partition(":")
        if kind == "topic" and item.topic != topic:
            return False
        return (item.classification, item.trust) == (self.classification, self.trust)


def grouped(items: Sequence[Item]) -> dict[Group, list[Item]]:
    """The memories of each subject, by their words, so that ids decide nothing."""
    counted = Counter(entity for item in items for entity in item.entities)
    ceiling = max(2.0, _HUB_SHARE * len(items))
    groups: defaultdict[Group, list[Item]] = defaultdict(list)
    for item in sorted(items, key=lambda one: (one.text, one.when, one.id)):
        subject = _subject(item, counted, ceiling)
        groups[Group(subject, item.classification, item.trust)].append(item)
    return dict(sorted(groups.items()))


def _subject(item: Item, counted: Mapping[str, int], ceiling: float) -> str:
    """The topic it was filed under, else whom or what most others speak of too, else its
    kind."""
    if item.topic:
        return f"topic:{item.topic}"
    telling = [entity for entity in item.entities if 2 <= counted[entity] <= ceiling]
    if telling:
        return min(telling, key=lambda entity: (-counted[entity], entity))
    return f"kind:{item.kind}"


def split(items: Sequence[Item], vectors: Matrix | None, most: int) -> list[list[int]]:
    """Places of the memories, in parts of at most ``most``: by meaning where there are
    vectors (spherical 2-means, bisecting), else in the order of time."""
    if len(items) <= most:
        return [list(range(len(items)))]
    if vectors is None:
        return _by_time(items, most)
    parts: list[list[int]] = []
    waiting = [list(range(len(items)))]
    while waiting:
        part = waiting.pop()
        halves = _halved(part, vectors) if len(part) > most else [part]
        if len(halves) == 1 and len(part) > most:
            halves = [part[:most], part[most:]]  # all alike: any cut is as good
        parts += [half for half in halves if len(half) <= most]
        waiting += [half for half in halves if len(half) > most]
    return sorted(parts)


def _by_time(items: Sequence[Item], most: int) -> list[list[int]]:
    order = sorted(range(len(items)), key=lambda at: (items[at].when, items[at].text))
    count = -(-len(items) // most)
    size = -(-len(items) // count)
    return [order[start : start + size] for start in range(0, len(order), size)]


def _halved(part: Sequence[int], vectors: Matrix) -> list[list[int]]:
    """Two parts around two centres; the first centres are as far apart as can be."""
    import numpy as np  # start-up time: only maintenance needs it here

    rows = vectors[list(part)]
    middle = rows.mean(axis=0)
    first = int((rows @ middle).argmin())
    second = int((rows @ rows[first]).argmin())
    centres = np.stack([rows[first], rows[second]])
    sides = np.zeros(len(part), dtype=bool)
    for _ in range(_ROUNDS):
        likeness = rows @ centres.T
        now = likeness[:, 1] > likeness[:, 0]
        if not now.any() or now.all():
            break
        if (now == sides).all():
            break
        sides = now
        for side, rows_of in ((0, rows[~sides]), (1, rows[sides])):
            total = rows_of.sum(axis=0)
            centres[side] = total / (float(np.linalg.norm(total)) or 1.0)
    halves = [[one for one, on in zip(part, sides, strict=True) if on == side] for side in (0, 1)]
    return [half for half in halves if half]


def likeness_of(items: Sequence[Item], vectors: Matrix | None) -> list[list[float]]:
    """How alike every two are: by meaning, or by the share of words they have in common."""
    if vectors is not None:
        table: list[list[float]] = (vectors @ vectors.T).tolist()
        return table
    words = [word_set(item.text) for item in items]
    return [[len(one & other) / (len(one | other) or 1) for other in words] for one in words]
