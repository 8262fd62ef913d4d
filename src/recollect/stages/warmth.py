"""Weighs in how warm a memory is and how much goes on around what it speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recollect.context import Context
from recollect.heat import pace_of
from recollect.model import Candidate, Evidence, Item, Pool, best_first
from recollect.warmth import Stir, Warmth, stirs_of, warmth_of

PIN_COUNTS = 0.9


@dataclass(frozen=True, slots=True)
class Heat:
    """Memories in use gain up to ``strength``; those never used stay as they are."""

    strength: float = 0.1
    name: str = "heat"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        warmth = warmth_of((cand.item for cand in pool), ctx)

        def weigh(cand: Candidate) -> Candidate:
            own = warmth[cand.item.id]
            noted = with_heat(cand, own)
            if not own.used or not own.heat:
                return noted
            factor = 1.0 + self.strength * own.heat / 100
            return noted.because(self.name, "times", factor, own.told)

        return best_first(weigh(cand) for cand in pool)


@dataclass(frozen=True, slots=True)
class Momentum:
    """Memories about what is being talked of lately gain up to ``strength``; those that
    speak of nobody and nothing known stay as they are."""

    strength: float = 0.1
    name: str = "momentum"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        stirs = stirs_of((cand.item for cand in pool), ctx)

        def weigh(cand: Candidate) -> Candidate:
            stir = stirs.get(cand.item.id)
            if stir is None:
                return cand
            factor = 1.0 + self.strength * stir.momentum / 10
            noted = with_momentum(cand, stir)
            return noted.because(self.name, "times", factor, pace_of(stir.momentum))

        return best_first(weigh(cand) for cand in pool)


class Shares(NamedTuple):
    """How much each part of a composite counts."""

    relevance: float
    heat: float
    momentum: float
    importance: float


# By how many words a question has, the sharper it is the more relevance counts.
_FEW_WORDS, _SHARP = Shares(0.60, 0.18, 0.12, 0.10), Shares(0.72, 0.12, 0.08, 0.08)
_SHARP_FROM = 3


@dataclass(frozen=True, slots=True)
class Composite:
    """A weighted sum of relevance, heat, momentum and importance, each 0 to 1.

    Relevance is the score so far as a share of the best. A memory without an entity has
    no momentum; a pinned one counts as important at least 0.9. ``by_words`` takes other
    weights instead: 0.60, 0.18, 0.12, 0.10 for a question of one or two telling words,
    0.72, 0.12, 0.08, 0.08 for a longer one.
    """

    relevance: float = 0.45
    heat: float = 0.25
    momentum: float = 0.15
    importance: float = 0.15
    by_words: bool = False
    name: str = "composite"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not pool:
            return pool
        warmth = warmth_of((cand.item for cand in pool), ctx)
        stirs = stirs_of((cand.item for cand in pool), ctx)
        shares, best = self._shares(ctx), pool[0].score
        return best_first(
            self._compose(cand, warmth[cand.item.id], stirs.get(cand.item.id), shares, best)
            for cand in pool
        )

    def _shares(self, ctx: Context) -> Shares:
        if not self.by_words:
            return Shares(self.relevance, self.heat, self.momentum, self.importance)
        asked = sum(not word.common for word in ctx.words()) or len(ctx.words())
        shares = _SHARP if asked >= _SHARP_FROM else _FEW_WORDS
        ctx.remark(f"weights for {asked} words: {', '.join(f'{share:g}' for share in shares)}")
        return shares

    def _compose(
        self, cand: Candidate, warmth: Warmth, stir: Stir | None, shares: Shares, best: float
    ) -> Candidate:
        relevance = cand.score / best if best > 0 else 0.0
        factor = shares.relevance / best if best > 0 else 0.0
        noted = with_heat(cand, warmth)
        if stir is not None:
            noted = with_momentum(noted, stir)
        composed = noted.because(f"{self.name}.relevance", "times", factor, f"{relevance:.2f}")
        for part, share, value in (
            ("heat", shares.heat, warmth.heat / 100),
            ("momentum", shares.momentum, stir.momentum / 10 if stir else 0.0),
            ("importance", shares.importance, importance_of(cand.item)),
        ):
            why = f"{value:.2f} × {share:g}"
            composed = composed.because(f"{self.name}.{part}", "add", share * value, why)
        return composed


def importance_of(item: Item) -> float:
    """How important a memory is, 0 to 1; what is pinned is so without being told."""
    return max(item.importance, PIN_COUNTS) if item.pinned else item.importance


def with_heat(cand: Candidate, warmth: Warmth) -> Candidate:
    """The candidate with its heat noted, once, whichever stages ask."""
    return _noted(cand, Evidence("heat", "seen", warmth.heat, warmth.told))


def with_momentum(cand: Candidate, stir: Stir) -> Candidate:
    """The candidate with its liveliest entity's momentum noted, once."""
    pace = pace_of(stir.momentum)
    return _noted(cand, Evidence("momentum", "seen", stir.momentum, pace, stir.entity))


def _noted(cand: Candidate, fact: Evidence) -> Candidate:
    if any(reason.by == fact.by and reason.op == "seen" for reason in cand.evidence):
        return cand
    return Candidate(cand.item, cand.score, (*cand.evidence, fact))
