"""The points of an insight: what several memories come to, in their own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from recollect.model import Item
from recollect.text import caption, visible, word_set

POINTS = 5
POINT_CHARACTERS = 200
_ALIKE = 0.5  # how much a point loses for saying what another says
_MOST_WORDS = 3
_SHORTEST = 4  # letters of a word that may stand in a title


class Point(NamedTuple):
    """One sentence and the memories that bear it out, the one it is taken from first."""

    text: str
    sources: tuple[str, ...]


def points_of(items: Sequence[Item], likeness: Sequence[Sequence[float]]) -> list[Point]:
    """The most central memories, each with those it stands for; all are borne by one."""
    chosen: list[int] = []
    centrality = [sum(row) / len(row) for row in likeness]
    while len(chosen) < min(POINTS, len(items)):
        left = [at for at in range(len(items)) if at not in chosen]
        chosen.append(
            max(
                left,
                key=lambda at: (
                    centrality[at] - _ALIKE * max((likeness[at][one] for one in chosen), default=0),
                    items[at].importance,
                    items[at].text,
                ),
            )
        )
    bearing: dict[int, list[str]] = {at: [items[at].id] for at in chosen}
    for at, item in enumerate(items):
        if at not in bearing:
            nearest = max(chosen, key=lambda one: (likeness[at][one], items[one].text))
            bearing[nearest].append(item.id)
    in_time = sorted(chosen, key=lambda at: (items[at].when, items[at].text))
    return [Point(told(items[at]), tuple(bearing[at])) for at in in_time]


def told(item: Item) -> str:
    """A memory as one line with its day, nothing added."""
    return f"{item.when:%Y-%m-%d}: {caption(visible(item.text), limit=POINT_CHARACTERS)}"


def title_of(subject: str, items: Sequence[Item], others: Sequence[Item]) -> str:
    """The subject and, where others share it, the words these have and those have not."""
    if not others:
        return subject
    here = Counter(word for item in items for word in word_set(item.text))
    there = Counter(word for item in others for word in word_set(item.text))
    known = word_set(subject)
    telling = sorted(
        (word for word in here if word.isalpha() and len(word) >= _SHORTEST and word not in known),
        key=lambda word: (there[word] / len(others) - here[word] / len(items), word),
    )
    words = [word for word in telling[:_MOST_WORDS] if here[word] >= 2]
    return f"{subject}: {', '.join(words)}" if words else subject
