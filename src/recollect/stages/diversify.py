"""Prefers new information over repetition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from recollect.context import Context
from recollect.model import Candidate, Evidence, Item, Pool, best_first
from recollect.text import fold, word_set


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard similarity; two empty sets are not alike."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998).

    Each next pick is the best of ``relevance`` × score − (1 − ``relevance``) ×
    likeness to what was picked before, starting from the best. Only the first
    ``top`` are rearranged. ``scaled`` measures likeness by the best score, for scores
    that do not run from 0 to 1.
    """

    relevance: float = 0.7
    top: int = 30
    scaled: bool = True
    name: str = "mmr"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        rest = list(pool[: self.top])
        scale = pool[0].score if self.scaled and pool and pool[0].score > 0 else 1.0
        words = {cand.item.id: word_set(cand.item.text) for cand in rest}
        likest: dict[str, tuple[float, str]] = {cand.item.id: (0.0, "") for cand in rest}
        picked: list[Candidate] = []
        while rest:
            best = min(rest, key=lambda cand: (-self._worth(cand, likest, scale), cand.item.id))
            rest.remove(best)
            picked.append(self._judged(best, likest[best.item.id], scale))
            for cand in rest:
                alike = overlap(words[cand.item.id], words[best.item.id])
                if alike > likest[cand.item.id][0]:
                    likest[cand.item.id] = (alike, best.item.id)
        tail = [self._judged(cand, (0.0, ""), scale) for cand in pool[self.top :]]
        return best_first([*picked, *tail])

    def _worth(self, cand: Candidate, likest: dict[str, tuple[float, str]], scale: float) -> float:
        return self.relevance * cand.score - (1 - self.relevance) * scale * likest[cand.item.id][0]

    def _judged(self, cand: Candidate, likest: tuple[float, str], scale: float) -> Candidate:
        alike, twin = likest
        judged = cand.because(self.name, "times", self.relevance)
        if not alike:
            return judged
        penalty = -(1 - self.relevance) * scale * alike
        return judged.because(self.name, "add", penalty, f"{alike:.0%} like", via=twin)


@dataclass(frozen=True, slots=True)
class Rotate:
    """Gives every conversation a turn: each better turn of the same one costs
    ``weight``, up to ``most`` of them."""

    weight: float = 0.025
    most: int = 3
    top: int = 60
    name: str = "rotate"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        above: Counter[str] = Counter()
        judged = []
        for cand in pool[: self.top]:
            session = cand.item.session
            better = min(above[session], self.most) if session else 0
            if session:
                above[session] += 1
            judged.append(
                cand.because(self.name, "add", -self.weight * better, "more of the same talk")
                if better
                else cand
            )
        return best_first([*judged, *pool[self.top :]])


class Said(NamedTuple):
    """What a memory says, as two are compared."""

    item: Item
    words: frozenset[str]

    def in_order(self, words: frozenset[str]) -> list[str]:
        """Those of its words, as they follow each other."""
        return [word for word in fold(self.item.text).split() if word in words]


@dataclass(frozen=True, slots=True)
class Collapse:
    """Shows one of several memories that say the same, the best one.

    Two are the same when ``threshold`` of their words are shared, in the same order, by
    the same speaker and, if it is an event, at the same moment, and they differ neither
    in a number nor in a denial: "kept 30 days" and "kept 90 days" are different facts.
    """

    threshold: float = 0.9
    top: int = 20
    name: str = "collapse"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        kept: list[Candidate] = []
        said: list[Said] = []
        for cand in pool[: self.top]:
            own = Said(cand.item, word_set(cand.item.text))
            twin = next((at for at, other in enumerate(said) if self._same(own, other)), None)
            if twin is None:
                kept.append(cand)
                said.append(own)
            else:
                reason = Evidence(self.name, "seen", 1.0, "also said by", cand.item.id)
                first = kept[twin]
                kept[twin] = first._replace(evidence=(*first.evidence, reason))
        dropped = min(len(pool), self.top) - len(kept)
        if dropped:
            ctx.remark(f"{dropped} near-duplicates collapsed")
        return (*kept, *pool[self.top :])

    def _same(self, one: Said, other: Said) -> bool:
        small, large = sorted((len(one.words), len(other.words)))
        if not large or small / large < self.threshold:
            return False
        if overlap(one.words, other.words) < self.threshold:
            return False
        return _same_circumstances(one.item, other.item) and not _differ_in_fact(one, other)


def _same_circumstances(one: Item, other: Item) -> bool:
    if one.speaker != other.speaker:
        return False
    if not {one.kind, other.kind} & _HAPPENINGS:
        return True
    moments = (one.occurred_at, other.occurred_at)
    return None in moments or moments[0] == moments[1]


def _differ_in_fact(one: Said, other: Said) -> bool:
    """Whether the few words that differ, or their order, change what is said."""
    for word in one.words ^ other.words:
        if word in _DENIALS or word.endswith(("n't", "n’t")) or any(map(str.isdigit, word)):
            return True
    shared = one.words & other.words
    return one.in_order(shared) != other.in_order(shared)


# Told twice a fact is one fact; what happened twice happened twice.
_HAPPENINGS = frozenset(("event", "episode", "outcome"))
_DENIALS = frozenset(
    ("no", "not", "never", "none", "without", "neither", "nor", "nicht", "kein", "keine", "nie",
     "ohne", "pas", "jamais", "sans", "nunca", "sin", "nada", "не", "нет", "никогда", "без")
)  # fmt: skip
