"""Reads the best candidates against the question."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from recollect.context import Context
from recollect.errors import ModelError
from recollect.model import Candidate, Item, Pool, best_first
from recollect.overlap import Question, Weights, rarity_of
from recollect.ports import late_interaction
from recollect.stages.closeness import read_closely


@dataclass(frozen=True, slots=True)
class MaxSim:
    """Late interaction (Khattab & Zaharia, SIGIR 2020) over the embedder's own tokens.

    Every telling word of the question takes its best match in the memory; rare words
    count for more. ``weight`` × that mean is added, so what came before is never
    erased.
    """

    weight: float = 0.5
    top: int = 50
    name: str = "maxsim"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if late_interaction(ctx.embedder) is None:
            raise ModelError("the embedder in use cannot compare token by token")
        close = read_closely(pool[: self.top], ctx)

        def judge(cand: Candidate) -> Candidate:
            read = close[cand.item.id].interaction if cand.item.id in close else None
            if read is None:
                return cand
            return cand.because(self.name, "add", self.weight * read, f"reads {read:.2f}")

        return best_first([*map(judge, pool[: self.top]), *pool[self.top :]])


@dataclass(frozen=True, slots=True)
class Overlap:
    """A deterministic reader: shared words by rarity, the whole question as a phrase.

    Σ (tf / length)·idf, + 0.1 for each distinct word, + 0.4 for the whole question,
    − 0.01·ln(1 + length), + ``prior`` × the score so far. How rare a word is, the
    index of the whole space says, which counts words by their stems.
    """

    prior: float = 0.5
    per_word: float = 0.1
    whole: float = 0.4
    length_penalty: float = 0.01
    top: int = 50
    name: str = "overlap"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        question = Question(ctx.query.text)
        rarity = _rarity(question, ctx)
        weights = Weights(self.per_word, self.whole, self.length_penalty)

        def read(cand: Candidate) -> Candidate:
            value, words = question.shared(cand.item.text, rarity, weights)
            why = f"shares {', '.join(words)}" if words else "shares no word"
            cand = cand.because(self.name, "times", self.prior, "share of earlier steps")
            return cand.because(self.name, "add", value, why)

        rest = [cand.because(self.name, "times", self.prior) for cand in pool[self.top :]]
        return best_first([*map(read, pool[: self.top]), *rest])


def _rarity(question: Question, ctx: Context) -> dict[str, float]:
    """How telling each word is here; one that the index does not keep tells nothing."""
    terms = {word: ctx.store.terms(word) for word in question.words}
    documents, _, counts = ctx.counted({term for held in terms.values() for term in held})
    return {
        word: rarity_of(documents, min((counts.get(term, 0) for term in held), default=documents))
        for word, held in terms.items()
    }


# How much the first three and the first ten keep of what earlier steps found, and the rest.
_BY_RANK = ((3, 0.75), (10, 0.60))
_LATER = 0.40


@dataclass(frozen=True, slots=True)
class Read:
    """Any reader: a cross-encoder, a server, a language model, the caller's function.

    The new score is ``keep`` × the old plus (1 − ``keep``) × the reader's 0 to 1. The
    old is first scaled so that the best is 1, but for ``scale`` "own". With
    ``keep_by_rank`` the first three keep 0.75, the first ten 0.6 and the rest 0.4.
    Without a reader it is left out.
    """

    keep: float = 0.4
    keep_by_rank: bool = False
    scale: Literal["max", "own"] = "max"
    top: int = 50
    name: str = "read"

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Why there is nothing to do here, if so."""
        return "" if ctx.reranker is not None else "no reranker is configured"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if ctx.reranker is None:
            raise ModelError("no reranker is configured")
        best = pool[: self.top]
        if not best:
            return pool
        scores = list(ctx.reranker(ctx.query.text, [_told(cand.item) for cand in best]))
        if len(scores) != len(best):
            raise ModelError(f"the reranker gave {len(scores)} scores for {len(best)} memories")
        unit = 1 / best[0].score if self.scale == "max" and best[0].score > 0 else 1.0
        read = [
            self._blend(cand, self._kept(rank), unit, _usable(float(score)))
            for rank, (cand, score) in enumerate(zip(best, scores, strict=True), 1)
        ]
        kept = self._kept(self.top + 1)
        rest = [cand.because(self.name, "times", kept * unit) for cand in pool[self.top :]]
        return best_first([*read, *rest])

    def _blend(self, cand: Candidate, keep: float, unit: float, score: float) -> Candidate:
        cand = cand.because(self.name, "times", keep * unit, "share of earlier steps")
        return cand.because(self.name, "add", (1 - keep) * score, f"reads {score:.2f}")

    def _kept(self, rank: int) -> float:
        if not self.keep_by_rank:
            return self.keep
        return next((keep for last, keep in _BY_RANK if rank <= last), _LATER)


def _told(item: Item) -> str:
    """What is read of a memory: an episode's text; of others the title too."""
    if item.level == "raw" or not item.caption or item.text.startswith(item.caption):
        return item.text
    return f"{item.caption}\n{item.text}"


def _usable(score: float) -> float:
    """A reader's score within 0 and 1; what is no number counts as nothing."""
    return min(1.0, max(0.0, score)) if math.isfinite(score) else 0.0
