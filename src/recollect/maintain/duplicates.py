"""Finds memories that say again what another says, over the whole store; the newer wins.

What shares a band of its sketch is looked at (min-hashes, found through an index), so
the cost grows with the memories and what they share, not with the pairs there could be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.ingest.prepare import happened_apart
from recollect.ingest.sketch import sketch
from recollect.maintain.job import Job, Proposal, Work, spared
from recollect.maintain.looking import batches, each
from recollect.model import Item, Link, Node
from recollect.text import fold

# Words that turn or weaken what is said: a text that has more of them says something else.
_TURNING = frozenset(
    (
        *("not", "no", "never", "none", "nobody", "nothing", "without", "cannot", "neither"),
        *("if", "unless", "maybe", "perhaps", "might", "may", "could", "would", "should"),
        *("before", "until", "formerly", "previously", "once", "used", "except", "only"),
    )
)
# Words that change nothing about what is said; prepositions and tenses do.
_FILLING = frozenset(
    (
        *("a", "an", "the", "that", "this", "and", "so", "there"),
        *("i", "me", "my", "we", "us", "our", "you", "your"),
    )
)
_BATCH = 200
_MOST_READ = 50_000
_SAME = ("level", "layer", "topic", "speaker", "subject", "attribute")


@dataclass(frozen=True, slots=True)
class Duplicates:
    """An older memory is superseded by a newer one whose meaning is within ``min_cosine``
    and that holds all its telling words in their order: it says the same, or more.

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


class _Looking:
    """Looks for older memories that say the same, and remembers the words it has read."""

    def __init__(self, job: Job, work: Work) -> None:
        self._job, self._work = job, work
        self._read: dict[tuple[str, int], tuple[str, ...]] = {}

    def alike(self, newer: Item) -> list[Item]:
        """Older memories whose words it holds, among those that share a band with it."""
        bands = sketch(fold(newer.text))
        if not bands:
            return []
        words = self._words(newer)
        return [
            older
            for older in self._work.store.find_duplicates("", bands, self._work.scope)
            if older.id != newer.id
            and says_all(words, self._words(older))
            and _stands_in(newer, older)
            and spared(older, self._job) is None
        ]

    def _words(self, item: Item) -> tuple[str, ...]:
        key = (item.id, item.rev)
        if key not in self._read:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            self._read[key] = telling(fold(item.text))
        return self._read[key]


def _stands_in(newer: Item, older: Item) -> bool:
    """Whether whoever saw the older may be given the newer instead of it."""
    if (older.stored_at, older.id) >= (newer.stored_at, newer.id) or older.session is not None:
        return False
    if any(getattr(newer, name) != getattr(older, name) for name in _SAME):
        return False
    if newer.trust < older.trust or newer.classification > older.classification or newer.flags:
        return False
    if not set(newer.tags).issuperset(older.tags):
        return False
    same_time = not happened_apart(newer.occurred_at, older.occurred_at)
    return same_time and _as_long_valid(newer, older)


def _as_long_valid(newer: Item, older: Item) -> bool:
    return (newer.valid_from, newer.valid_to) == (older.valid_from, older.valid_to)


def telling(folded: str) -> tuple[str, ...]:
    """The words that carry what a text says, in its order; endings evened out a little."""
    return tuple(_stem(word) for word in folded.split() if word not in _FILLING)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and word.isalpha() else word


def says_all(newer: Sequence[str], older: Sequence[str]) -> bool:
    """Whether the newer words hold the older ones in their order, and turn no more."""
    if not older or len(older) > len(newer):
        return False
    left = iter(newer)
    return all(word in left for word in older) and _turns(newer) == _turns(older)


def _turns(words: Sequence[str]) -> int:
    return sum(word in _TURNING or word.endswith(("n't", "n’t")) for word in words)


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
        f"{newer.id} says what {', '.join(one.id for one in older)} said",
        "a newer memory says the same or more",
        parents=(newer.id,),
        statuses=tuple((one.id, "superseded") for one in older),
        links=tuple(Link(me, Node("item", one.id), "supersedes") for one in older),
        seen={one.id: one.rev for one in (newer, *older)},
    )
