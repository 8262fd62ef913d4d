"""Parts of the siftcoder profile: time decay and the reranker by shared words."""

from __future__ import annotations

import math

from bethink.core.dataclass import dataclass
from bethink.core.words import bm25_idf
from bethink.model import Candidate, Pool, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.overlap import OverlapScorer, OverlapWeights
from bethink.retrieval.stages.adjust import age_days, describe_age


@dataclass(frozen=True, slots=True)
class Decay:
    """Exponential decay by age: × e^(−age / tau), never below ``floor``.

    ``half_life_days`` is another way to give the same curve and takes precedence; 0 days
    switches decay off. ``per_tool`` sets another pace for memories made by a tool.
    """

    tau_days: float = 7.0
    half_life_days: float | None = None
    floor: float = 0.0
    per_tool: tuple[tuple[str, float], ...] = ()
    name: str = "decay"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        time_constants = dict(self.per_tool)

        def weigh(cand: Candidate) -> Candidate:
            tau = time_constants.get(str(cand.item.metadata.get("tool", "")), self._time_constant())
            if tau <= 0:
                return cand
            age = age_days(cand.item, ctx)
            factor = max(self.floor, math.exp(-age / tau))
            return cand.with_evidence(self.name, "times", factor, describe_age(age))

        return sort_by_score(weigh(cand) for cand in pool)

    def _time_constant(self) -> float:
        if self.half_life_days is None:
            return self.tau_days
        return self.half_life_days / math.log(2)


@dataclass(frozen=True, slots=True)
class OverlapRerank:
    """Deterministic reranker: shared words by idf, and the whole question as a phrase.

    Σ (tf / length)·idf, + 0.1 for each distinct word, + 0.4 for the whole question,
    − 0.01·ln(1 + length), + ``prior`` × the score so far. The idf comes from the index of
    the whole space, which counts words by their stems.
    """

    prior: float = 0.5
    per_word: float = 0.1
    whole: float = 0.4
    length_penalty: float = 0.01
    top: int = 50
    name: str = "overlap"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        question = OverlapScorer(ctx.query.text)
        rarity = _question_idf(question, ctx)
        weights = OverlapWeights(self.per_word, self.whole, self.length_penalty)

        def rescore(cand: Candidate) -> Candidate:
            value, words = question.score(cand.item.text, rarity, weights)
            why = f"shares {', '.join(words)}" if words else "shares no word"
            cand = cand.with_evidence(self.name, "times", self.prior, "weight of the earlier score")
            return cand.with_evidence(self.name, "add", value, why)

        rest = [cand.with_evidence(self.name, "times", self.prior) for cand in pool[self.top :]]
        return sort_by_score([*map(rescore, pool[: self.top]), *rest])


def _question_idf(question: OverlapScorer, ctx: Context) -> dict[str, float]:
    """Return the idf of each word; 0 for one that the index does not keep."""
    terms = {word: ctx.store.search.terms(word) for word in question.words}
    documents, _, counts = ctx.term_statistics(
        {term for word_terms in terms.values() for term in word_terms}
    )
    return {
        word: bm25_idf(
            documents, min((counts.get(term, 0) for term in word_terms), default=documents)
        )
        for word, word_terms in terms.items()
    }
