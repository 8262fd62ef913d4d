"""Reads the best candidates against the question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.context import Context
from recollect.errors import ModelError
from recollect.model import Candidate, Pool, best_first
from recollect.ports import Word, late_interaction
from recollect.stages.closeness import read_closely

_TOKEN = re.compile(r"[a-z0-9_-]{2,}")
_STOP = frozenset(
    (
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "the",
        "to",
    )
)


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
    − 0.01·ln(1 + length), + ``prior`` × the score so far. Word rarity is taken
    over the whole space.
    """

    prior: float = 0.5
    per_word: float = 0.1
    whole: float = 0.4
    length_penalty: float = 0.01
    top: int = 50
    name: str = "overlap"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        asked = [word for word in _TOKEN.findall(ctx.query.text.lower()) if word not in _STOP]
        rarity = self._rarity(asked, ctx)
        phrase = " ".join(ctx.query.text.lower().split())
        read = [self._read(cand, asked, rarity, phrase) for cand in pool[: self.top]]
        rest = [cand.because(self.name, "times", self.prior) for cand in pool[self.top :]]
        return best_first([*read, *rest])

    def _rarity(self, asked: Sequence[str], ctx: Context) -> dict[str, float]:
        return {
            word: ctx.rarity(Word(word, ctx.store.terms(word))) for word in dict.fromkeys(asked)
        }

    def _read(
        self, cand: Candidate, asked: Sequence[str], rarity: dict[str, float], phrase: str
    ) -> Candidate:
        text = cand.item.text.lower()
        counts = Counter(word for word in _TOKEN.findall(text) if word not in _STOP)
        length = sum(counts.values()) or 1
        shared = sorted({word for word in asked if counts[word]})
        value = sum(counts[word] / length * rarity[word] for word in asked)
        value += self.per_word * len(shared)
        if len(phrase) >= 4 and phrase in " ".join(text.split()):
            value += self.whole
        value -= self.length_penalty * math.log1p(length)
        why = f"shares {', '.join(shared)}" if shared else "shares no word"
        return cand.because(self.name, "times", self.prior, "share of earlier steps").because(
            self.name, "add", value, why
        )


@dataclass(frozen=True, slots=True)
class Read:
    """Any reader the caller brings: a cross-encoder, a language model, a function.

    The new score is ``keep`` × the old, scaled so that the best is 1, plus
    (1 − ``keep``) × the reader's 0 to 1.
    """

    keep: float = 0.4
    top: int = 50
    name: str = "read"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if ctx.reranker is None:
            raise ModelError("no reranker is configured")
        best = pool[: self.top]
        if not best:
            return pool
        scores = list(ctx.reranker(ctx.query.text, [cand.item.text for cand in best]))
        if len(scores) != len(best):
            raise ModelError(f"the reranker gave {len(scores)} scores for {len(best)} memories")
        scale = self.keep / best[0].score if best[0].score > 0 else self.keep
        read = [
            cand.because(self.name, "times", scale, "share of earlier steps").because(
                self.name, "add", (1 - self.keep) * _usable(score), f"reads {_usable(score):.2f}"
            )
            for cand, score in zip(best, scores, strict=True)
        ]
        rest = [cand.because(self.name, "times", scale) for cand in pool[self.top :]]
        return best_first([*read, *rest])


def _usable(score: float) -> float:
    """A reader's score within 0 and 1; what is no number counts as nothing."""
    return min(1.0, max(0.0, score)) if math.isfinite(score) else 0.0
