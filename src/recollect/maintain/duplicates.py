"""Finds memories that say again what another says, over the whole store; the newer wins.

What shares a band of its sketch is looked at (min-hashes, found through an index), so
the cost grows with the memories and what they share, not with the pairs there could be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recollect.ingest.prepare import happened_apart
from recollect.ingest.settle import SINCE
from recollect.ingest.sketch import sketch
from recollect.jsonable import iso
from recollect.maintain.job import Job, Proposal, Work, spared
from recollect.maintain.looking import TOLD, batches, each
from recollect.model import Item, Link, Node
from recollect.text import caption, fold

# Their coming and going changes nothing about what is said; of any other word it may.
_ARTICLES = {"a": "a", "an": "a", "the": "the"}
# Before these an article tells: "few" is not "a few", "in charge" is not "in the charge".
_WEIGHED = frozenset(
    (
        *("few", "little", "lot", "most", "more", "less", "least", "number", "one", "two", "three"),
        *("other", "others", "who", "which", "same", "bit", "half", "second", "third", "only"),
        *("bars", "bed", "case", "charge", "child", "church", "class", "college", "court", "day"),
        *("front", "future", "heart", "hospital", "hour", "kind", "market", "minute", "office"),
        *("place", "position", "possession", "power", "prison", "question", "school", "sea"),
        *("service", "table", "time", "university", "way", "while", "whole", "work"),
    )
)
# What a text may open with, followed by a mark: "FYI: ...".
_GREETINGS = frozenset(("hi", "hello", "hey", "fyi", "btw", "note", "so"))
_ENDING = (".", "!", "?", ":")
_BATCH = 200
_MOST_READ = 50_000
_SAME = ("level", "layer", "topic", "speaker")


@dataclass(frozen=True, slots=True)
class Duplicates:
    """An older memory is superseded by a newer one whose meaning is within ``min_cosine``
    and that has its words in its order, with no other word but articles: it says the same.

    Turns of conversations are left alone, and so are pinned memories. A newer one must
    be trusted as much, and seen by everybody who sees the older.
    """

    min_cosine: float = 0.95
    name: str = "duplicates"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: Work) -> Iterator[Proposal]:
        """Newest survivors first; stops where no more may leave."""
        gone: set[str] = set()
        room = work.limit
        looking = _Looking(self, work)
        for batch in batches(each(work, levels=("item",)), _BATCH):
            for newer, older in self._covered(batch, gone, looking, work):
                if not older:
                    continue
                gone.update(item.id for item in older)
                room -= len(older)
                yield _proposal(newer, older)
                if room <= 0:
                    return

    def _covered(
        self, batch: Sequence[Item], gone: set[str], looking: _Looking, work: Work
    ) -> Iterator[tuple[Item, list[Item]]]:
        """Each memory with the older ones that it stands in for."""
        with work.store.snapshot():
            found = [(item, looking.alike(item)) for item in batch if item.session is None]
        found = [(item, like) for item, like in found if like]
        near = _cosines(found, work)
        for item, like in found:
            if item.id in gone:
                continue
            close = [one for one in like if near.get((item.id, one.id), 1.0) >= self.min_cosine]
            yield item, [one for one in close if one.id not in gone]


class Word(NamedTuple):
    """A word as it is compared, and the article before it, if any."""

    article: str
    word: str


class _Looking:
    """Looks for older memories that say the same, and remembers the words it has read."""

    def __init__(self, job: Job, work: Work) -> None:
        self._job, self._work = job, work
        self._read: dict[tuple[str, int], tuple[Word, ...]] = {}

    def alike(self, newer: Item) -> list[Item]:
        """Older memories of the same words, among those that share a band with it."""
        bands = sketch(fold(newer.text))
        if not bands:
            return []
        words = self._words(newer)
        return [
            older
            for older in self._work.store.find_duplicates("", bands, self._work.scope)
            if older.id != newer.id
            and says_same(words, self._words(older))
            and _stands_in(newer, older)
            and spared(older, self._job) is None
        ]

    def _words(self, item: Item) -> tuple[Word, ...]:
        key = (item.id, item.rev)
        if key not in self._read:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            self._read[key] = telling(item.text)
        return self._read[key]


def _stands_in(newer: Item, older: Item) -> bool:
    """Whether whoever saw the older may be given the newer instead of it."""
    if (older.stored_at, older.id) >= (newer.stored_at, newer.id) or older.session is not None:
        return False
    if any(getattr(newer, name) != getattr(older, name) for name in _SAME):
        return False
    if None not in (newer.subject, older.subject) and _slot(newer) != _slot(older):
        return False
    if newer.trust < older.trust or newer.classification > older.classification or newer.flags:
        return False
    if not set(newer.tags).issuperset(older.tags):
        return False
    same_time = not happened_apart(newer.occurred_at, older.occurred_at)
    return same_time and _as_long_valid(newer, older)


def _slot(item: Item) -> tuple[str | None, str | None]:
    return item.subject, item.attribute


def _as_long_valid(newer: Item, older: Item) -> bool:
    return (newer.valid_from, newer.valid_to) == (older.valid_from, older.valid_to)


def telling(text: str) -> tuple[Word, ...]:
    """The words of a text in its order, each with the article that stands before it."""
    raw = text.split()
    if len(raw) > 1 and raw[0][-1] in ",:" and fold(raw[0]) in _GREETINGS:
        raw = raw[1:]
    shouted = text.isupper()
    words: list[Word] = []
    article, opening = "", True
    for written in raw:
        word = _as_compared(written, shouted=shouted)
        # Capitals inside a sentence make it a name: "plan A", "The Hague".
        is_article = written in _ARTICLES or (opening and written == "The")
        if is_article and not article:
            article, opening = _ARTICLES[word], False
            continue
        if article and word in _WEIGHED:
            words.append(Word("", article))
            article = ""
        words.append(Word(article, word))
        article, opening = "", written.endswith(_ENDING)
    return (*words, Word("", article)) if article else tuple(words)


def _as_compared(written: str, *, shouted: bool) -> str:
    """A word without regard to case, unless its capitals tell: "IT" is not "it"."""
    folded = fold(written)
    is_short = len(folded) > 1 and written.isupper() and not shouted
    return folded.upper() if is_short else folded


def says_same(newer: Sequence[Word], older: Sequence[Word]) -> bool:
    """Whether both have the same words in the same order; an article may be missing in
    one of them, but "a" is not "the"."""
    if not older or len(older) != len(newer):
        return False
    return all(
        mine.word == other.word
        and (mine.article == other.article or "" in (mine.article, other.article))
        for mine, other in zip(newer, older, strict=True)
    )


def _cosines(
    found: Sequence[tuple[Item, Sequence[Item]]], work: Work
) -> dict[tuple[str, str], float]:
    """How near in meaning the pairs are, where both have a vector."""
    if work.embedder is None or not found:
        return {}
    ids = {one.id for item, like in found for one in (item, *like)}
    made = work.store.embeddings(sorted(ids), work.embedder.model)
    return {
        (item.id, one.id): float(made[item.id].vector @ made[one.id].vector)
        for item, like in found
        for one in like
        if item.id in made and one.id in made
    }


def _proposal(newer: Item, older: Sequence[Item]) -> Proposal:
    me = Node("item", newer.id)
    return Proposal(
        f"{newer.id} says what {', '.join(one.id for one in older)} said: "
        f"{caption(newer.text, newer.speaker, limit=TOLD)}",
        "a newer memory says the same",
        parents=(newer.id,),
        statuses=tuple((one.id, "superseded") for one in older),
        links=tuple(
            Link(me, Node("item", one.id), "supersedes", context=f"{SINCE}{iso(newer.when)}")
            for one in older
        ),
        seen={one.id: one.rev for one in (newer, *older)},
    )
