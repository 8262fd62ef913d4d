"""The points of an insight: what several memories come to, in their own words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from recollect.ingest.admit import DERIVED
from recollect.maintain.condense import TYPICAL
from recollect.model import Item
from recollect.text import caption, fold, visible, word_set

POINTS = 5
POINT_CHARACTERS = 200
_ALIKE = 0.5  # how much a point loses for saying what another says
_MOST_WORDS = 3
_SHORTEST = 4  # letters of a word that may stand in a title
# Words that stand in any text and so tell nothing of these.
_PLAIN = word_set("""
about above after again against ahead along already also although always among another around
because been before being below between both cannot could does doing done down during each
either else even ever every everybody everyone everything from further gets give given goes
going gone have having here into itself just know known last later least less like made make
makes many might more most much must near nearly never next nobody none nothing often once only
other others over please quite rather really same seen shall should since some somebody someone
something soon still such than that their them then there these they thing things this those
though through today together tomorrow took toward towards under unless until upon used uses
using very want wants well went were what when where whether which while whole whom whose will
with within without would yesterday your
monday tuesday wednesday thursday friday saturday sunday january february march april june july
august september october november december
""")
_WORD = re.compile(r"\w+")


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
    return f"{item.when:%Y-%m-%d}: {caption(_telling_part(item), limit=POINT_CHARACTERS)}"


def _telling_part(item: Item) -> str:
    """What a memory says; of a learning not how many it was made of, but what is typical."""
    said = visible(item.text)
    if item.source_class != DERIVED:
        return said
    lines = said.split("\n")
    typical = (line.removeprefix(TYPICAL) for line in lines if line.startswith(TYPICAL))
    return next(typical, said)


class Wording(NamedTuple):
    """How many memories there are of a subject, and how many of them hold each word."""

    memories: int
    holding: Counter[str]


def wording(items: Sequence[Item]) -> Wording:
    """Counted once for a subject: it may have thousands of memories and hundreds of titles."""
    words = (word for item in items for word in word_set(_telling_part(item)))
    return Wording(len(items), Counter(words))


def title_of(subject: str, items: Sequence[Item], everywhere: Wording) -> str:
    """The subject and, where others share it, the words these have and those have not.
    ``everywhere`` is the wording of these and those."""
    others = everywhere.memories - len(items)
    if not others:
        return subject
    here = wording(items).holding
    passed_over = word_set(subject) | _PLAIN

    def lead(word: str) -> float:
        return here[word] / len(items) - (everywhere.holding[word] - here[word]) / others

    telling = [
        word
        for word in here
        if word.isalpha() and len(word) >= _SHORTEST and word not in passed_over
        if here[word] >= 2 and lead(word) > 0
    ]
    words = sorted(telling, key=lambda word: (-lead(word), word))[:_MOST_WORDS]
    return f"{subject}: {', '.join(as_written(words, items))}" if words else subject


def as_written(words: Sequence[str], items: Sequence[Item]) -> list[str]:
    """Words in small letters as the memories write them: Saskia, not saskia. At the
    beginning of a text a capital tells nothing, unless it is a name."""
    names = {entity.partition(":")[2] for item in items for entity in item.entities}
    spelt: dict[str, Counter[str]] = {word: Counter() for word in words}
    for item in items:
        for at, found in enumerate(_WORD.findall(visible(item.text))):
            word = fold(found)
            if word in spelt and (at or word in names):
                spelt[word][found] += 1
    return [
        min(forms.items(), key=lambda one: (-one[1], one[0]))[0] if forms else word
        for word, forms in spelt.items()
    ]
