"""Prefers new information over repetition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Evidence, Pool, best_first
from recollect.text import word_set


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard similarity; two empty sets are not alike."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998).

    Each next pick is the best of ``relevance`` × score − (1 − ``relevance``) ×
    likeness to what was picked before, starting from the best. Only the first
    ``top`` are rearranged.
    """

    relevance: float = 0.7
    top: int = 30
    name: str = "mmr"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        rest = list(pool[: self.top])
        scale = pool[0].score if pool and pool[0].score > 0 else 1.0
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


@dataclass(frozen=True, slots=True)
class Collapse:
    """Shows one of several memories that say the same, the best one.

    Two are the same when ``threshold`` of their words are shared and their numbers
    agree: "kept 30 days" and "kept 90 days" are different facts.
    """

    threshold: float = 0.9
    top: int = 20
    name: str = "collapse"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        kept: list[Candidate] = []
        seen: list[frozenset[str]] = []
        for cand in pool[: self.top]:
            words = word_set(cand.item.text)
            twin = next((i for i, other in enumerate(seen) if self._same(words, other)), None)
            if twin is None:
                kept.append(cand)
                seen.append(words)
            else:
                reason = Evidence(self.name, "seen", 1.0, "also said by", cand.item.id)
                first = kept[twin]
                kept[twin] = first._replace(evidence=(*first.evidence, reason))
        dropped = min(len(pool), self.top) - len(kept)
        if dropped:
            ctx.remark(f"{dropped} near-duplicates collapsed")
        return (*kept, *pool[self.top :])

    def _same(self, one: frozenset[str], other: frozenset[str]) -> bool:
        small, large = sorted((len(one), len(other)))
        if not large or small / large < self.threshold or overlap(one, other) < self.threshold:
            return False
        return not any(char.isdigit() for word in one ^ other for char in word)
