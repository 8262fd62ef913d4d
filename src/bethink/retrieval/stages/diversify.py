"""Diversify a pool: of near-duplicates only the best stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bethink.core.text import fold, word_set
from bethink.lang.words import negations
from bethink.model import Candidate, Evidence, Item, Pool
from bethink.retrieval.context import Context


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard similarity; 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


class ComparedText(NamedTuple):
    """A memory's text prepared for comparison."""

    item: Item
    words: frozenset[str]

    def words_in_order(self, words: frozenset[str]) -> list[str]:
        """Return the given words in the order of the text."""
        return [word for word in fold(self.item.text).split() if word in words]


@dataclass(frozen=True, slots=True)
class Collapse:
    """Keep only the best of several memories that say the same.

    Two are the same when ``threshold`` of their words are shared, in the same order, by
    the same speaker and, for events, at the same moment, and they differ neither in a
    number nor in a negation: "kept 30 days" and "kept 90 days" are different facts.
    """

    threshold: float = 0.9
    top: int = 20
    name: str = "collapse"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        kept: list[Candidate] = []
        texts: list[ComparedText] = []
        for cand in pool[: self.top]:
            own = ComparedText(cand.item, word_set(cand.item.text))
            twin = next(
                (number for number, other in enumerate(texts) if self._is_same(own, other)), None
            )
            if twin is None:
                kept.append(cand)
                texts.append(own)
            else:
                reason = Evidence(self.name, "seen", 1.0, "near-duplicate collapsed:", cand.item.id)
                first = kept[twin]
                kept[twin] = first._replace(evidence=(*first.evidence, reason))
        dropped = min(len(pool), self.top) - len(kept)
        if dropped:
            ctx.add_step_note(f"{dropped} near-duplicates collapsed")
        return (*kept, *pool[self.top :])

    def _is_same(self, one: ComparedText, other: ComparedText) -> bool:
        small, large = sorted((len(one.words), len(other.words)))
        if not large or small / large < self.threshold:
            return False
        if jaccard(one.words, other.words) < self.threshold:
            return False
        return _same_circumstances(one.item, other.item) and not _facts_differ(one, other)


def _same_circumstances(one: Item, other: Item) -> bool:
    if one.speaker != other.speaker:
        return False
    if not {one.kind, other.kind} & _EVENT_KINDS:
        return True
    moments = (one.occurred_at, other.occurred_at)
    return None in moments or moments[0] == moments[1]


def _facts_differ(one: ComparedText, other: ComparedText) -> bool:
    """Whether the differing words, or their order, change the statement."""
    for word in one.words ^ other.words:
        if any(map(str.isdigit, word)) or negations().deny(word):
            return True
    shared = one.words & other.words
    return one.words_in_order(shared) != other.words_in_order(shared)


# A fact stated twice is one fact; an event of the same text may have happened twice.
_EVENT_KINDS = frozenset(("event", "episode", "outcome"))
