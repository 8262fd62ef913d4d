"""Weighs in what the words cannot say: age, importance, use, the caller's wish."""

from __future__ import annotations

import math
from dataclasses import dataclass

from recollect.context import Boost, Context
from recollect.model import Candidate, Item, Pool, best_first

DAY_S = 86_400.0


def age_days(item: Item, ctx: Context) -> float:
    """How long ago it happened; something dated in the future is new, never newer."""
    return max(0.0, (ctx.query.moment - item.when).total_seconds() / DAY_S)


def in_words(days: float) -> str:
    """An age as people say it."""
    if days < 1:
        return "less than a day old"
    unit, size = ("day", 1.0) if days < 60 else ("month", 30.4) if days < 730 else ("year", 365.25)
    count = round(days / size)
    return f"{count} {unit}{'s' if count != 1 else ''} old"


@dataclass(frozen=True, slots=True)
class Decay:
    """Exponential forgetting: × e^(−age / tau), never below ``floor``.

    ``half_life_days`` is the same curve said otherwise and wins when given; 0 days
    switches decay off. A memory made by a tool may fade at that tool's own pace.
    """

    tau_days: float = 7.0
    half_life_days: float | None = None
    floor: float = 0.0
    per_tool: tuple[tuple[str, float], ...] = ()
    name: str = "decay"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        paces = dict(self.per_tool)

        def weigh(cand: Candidate) -> Candidate:
            tau = paces.get(str(cand.item.metadata.get("tool", "")), self._tau())
            if tau <= 0:
                return cand
            age = age_days(cand.item, ctx)
            factor = max(self.floor, math.exp(-age / tau))
            return cand.because(self.name, "times", factor, in_words(age))

        return best_first(weigh(cand) for cand in pool)

    def _tau(self) -> float:
        if self.half_life_days is None:
            return self.tau_days
        return self.half_life_days / math.log(2)


@dataclass(frozen=True, slots=True)
class Recency:
    """Fresh memories gain up to ``strength``, old ones gain nothing."""

    half_life_days: float = 30.0
    strength: float = 0.05
    name: str = "recency"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def weigh(cand: Candidate) -> Candidate:
            age = age_days(cand.item, ctx)
            factor = 1.0 + self.strength * 0.5 ** (age / self.half_life_days)
            return cand.because(self.name, "times", factor, in_words(age))

        return best_first(weigh(cand) for cand in pool)


@dataclass(frozen=True, slots=True)
class Importance:
    """Important memories gain, unimportant ones lose; 0.5 is neutral."""

    strength: float = 0.1
    name: str = "importance"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def weigh(cand: Candidate) -> Candidate:
            importance = 1.0 if cand.item.pinned else cand.item.importance
            if importance == 0.5:
                return cand
            factor = 1.0 + self.strength * (2 * importance - 1)
            why = "pinned" if cand.item.pinned else f"importance {importance:.2f}"
            return cand.because(self.name, "times", factor, why)

        return best_first(weigh(cand) for cand in pool)


@dataclass(frozen=True, slots=True)
class CallerBoost:
    """Multiplies by what the caller's own function says of each memory: a factor, or a
    factor and the reason for it. What is no usable number changes nothing."""

    name: str = "boost"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        boost = ctx.boost
        if boost is None:
            return pool
        return best_first(_boosted(cand, boost, self.name) for cand in pool)


def _boosted(cand: Candidate, boost: Boost, name: str) -> Candidate:
    told = boost(cand.item)
    said, why = told if isinstance(told, tuple) else (told, "asked for by the caller")
    factor = float(said)
    if not math.isfinite(factor) or factor < 0:
        return cand.because(name, "times", 1.0, "the caller's boost was no usable number")
    return cand if factor == 1.0 else cand.because(name, "times", factor, str(why))
