"""Diversify a pool: maximal marginal relevance, session rotation, near-duplicates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from bethink.core.text import fold, word_set
from bethink.model import Candidate, Evidence, Item, Pool, sort_by_score
from bethink.retrieval.context import Context


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard similarity; 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998).

    Each next pick maximises ``relevance`` × score − (1 − ``relevance``) × similarity to
    earlier picks, starting from the best. Only the first ``top`` are rearranged. ``scaled``
    scales similarity by the best score, for scores that do not run from 0 to 1.
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
            best = min(
                rest,
                key=lambda cand: (-self._marginal_relevance(cand, likest, scale), cand.item.id),
            )
            rest.remove(best)
            picked.append(self._with_penalty(best, likest[best.item.id], scale))
            for cand in rest:
                alike = jaccard(words[cand.item.id], words[best.item.id])
                if alike > likest[cand.item.id][0]:
                    likest[cand.item.id] = (alike, best.item.id)
        tail = [self._with_penalty(cand, (0.0, ""), scale) for cand in pool[self.top :]]
        return sort_by_score([*picked, *tail])

    def _marginal_relevance(
        self, cand: Candidate, likest: dict[str, tuple[float, str]], scale: float
    ) -> float:
        return self.relevance * cand.score - (1 - self.relevance) * scale * likest[cand.item.id][0]

    def _with_penalty(self, cand: Candidate, likest: tuple[float, str], scale: float) -> Candidate:
        alike, twin = likest
        judged = cand.with_evidence(self.name, "times", self.relevance)
        if not alike:
            return judged
        penalty = -(1 - self.relevance) * scale * alike
        return judged.with_evidence(self.name, "add", penalty, f"{alike:.0%} like", via=twin)


@dataclass(frozen=True, slots=True)
class Rotate:
    """Penalise a turn by ``weight`` for each better turn of its session, at most ``most``."""

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
                cand.with_evidence(self.name, "add", -self.weight * better, "more of the same talk")
                if better
                else cand
            )
        return sort_by_score([*judged, *pool[self.top :]])


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
        said: list[ComparedText] = []
        for cand in pool[: self.top]:
            own = ComparedText(cand.item, word_set(cand.item.text))
            twin = next((at for at, other in enumerate(said) if self._is_same(own, other)), None)
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
        if word in _NEGATIONS or word.endswith(("n't", "n’t")) or any(map(str.isdigit, word)):
            return True
    shared = one.words & other.words
    return one.words_in_order(shared) != other.words_in_order(shared)


# Told twice a fact is one fact; what happened twice happened twice.
_EVENT_KINDS = frozenset(("event", "episode", "outcome"))
_NEGATIONS = frozenset(
    ("no", "not", "never", "none", "without", "neither", "nor", "nicht", "kein", "keine", "nie",
     "ohne", "pas", "jamais", "sans", "nunca", "sin", "nada", "не", "нет", "никогда", "без")
)  # fmt: skip
