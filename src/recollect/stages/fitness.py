"""What a memory itself brings along: feeling, use, judgement, trust, credibility, tier, age.

Each is a factor or a summand of its own with its own words, and leaves a memory alone
that has nothing to say in the matter. ``channels`` restricts a stage to what these
channels found ("sf" stands for "sf.porter" too); without any it holds for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from recollect.asked import reachable
from recollect.context import Context
from recollect.model import Candidate, Item, Pool, best_first
from recollect.stages.adjust import age_days, in_words

Judge = Callable[[Candidate], Candidate]


def found_by(cand: Candidate, channels: tuple[str, ...]) -> bool:
    """Whether one of these channels found it."""
    return any(
        reason.by == f"channel.{name}" or reason.by.startswith(f"channel.{name}.")
        for name in channels
        for reason in cand.evidence
    )


def judged(pool: Pool, channels: tuple[str, ...], judge: Judge) -> Pool:
    """The pool with the judge's word on those that the channels found."""
    return best_first(
        judge(cand) if not channels or found_by(cand, channels) else cand for cand in pool
    )


def times(by: str, cand: Candidate, factor: float, why: str) -> Candidate:
    """The candidate with one more factor; a factor of 1 needs no reason."""
    return cand if factor == 1.0 else cand.because(by, "times", factor, why)


@dataclass(frozen=True, slots=True)
class Scale:
    """Goes from shares of the best the question's words could reach to BM25 scores, or
    back: for stages whose numbers are meant for one or the other."""

    to: Literal["bm25", "share"] = "bm25"
    channels: tuple[str, ...] = ()
    name: str = "scale"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        reach = reachable(ctx) if pool else 0.0
        if reach <= 0.0:
            return pool
        factor = reach if self.to == "bm25" else 1.0 / reach
        why = f"{'as' if self.to == 'bm25' else 'as a share of'} BM25, {reach:.2f} at most"
        return judged(pool, self.channels, lambda cand: times(self.name, cand, factor, why))


@dataclass(frozen=True, slots=True)
class Emotion:
    """Adds for strong feeling of either sign: ``weight`` × |emotion|, or × ln(1 + |emotion|)
    with the ``curve`` "log"."""

    weight: float = 0.02
    curve: Literal["linear", "log"] = "linear"
    channels: tuple[str, ...] = ()
    name: str = "emotion"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return judged(pool, self.channels, self._judge)

    def _judge(self, cand: Candidate) -> Candidate:
        strength = abs(cand.item.emotion)
        if not strength:
            return cand
        felt = math.log1p(strength) if self.curve == "log" else strength
        return cand.because(self.name, "add", self.weight * felt, _felt(cand.item))


def _felt(item: Item) -> str:
    return f"emotion {item.emotion:+g}"


@dataclass(frozen=True, slots=True)
class Recalled:
    """× (1 + ``weight`` × how often it was recalled before)."""

    weight: float = 0.1
    channels: tuple[str, ...] = ()
    name: str = "recalled"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def judge(cand: Candidate) -> Candidate:
            count = cand.item.recalls
            often = f"{count} time{'s' if count != 1 else ''}"
            return times(self.name, cand, 1.0 + self.weight * count, f"recalled {often}")

        return judged(pool, self.channels, judge)


@dataclass(frozen=True, slots=True)
class Relevance:
    """× (1 + ``weight``) for what somebody found relevant (`recollect boost`)."""

    weight: float = 0.2
    channels: tuple[str, ...] = ()
    name: str = "relevance"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def judge(cand: Candidate) -> Candidate:
            factor = 1.0 + self.weight if cand.item.relevance > 0 else 1.0
            return times(self.name, cand, factor, f"found relevant: {cand.item.relevance:+g}")

        return judged(pool, self.channels, judge)


@dataclass(frozen=True, slots=True)
class Trust:
    """× (``floor`` + (1 − ``floor``) × trust / 3): from the unknown to the owner."""

    floor: float = 0.5
    channels: tuple[str, ...] = ()
    name: str = "trust"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def judge(cand: Candidate) -> Candidate:
            trust = cand.item.trust
            factor = self.floor + (1.0 - self.floor) * trust / 3.0
            return times(self.name, cand, factor, f"trust {trust} of 3")

        return judged(pool, self.channels, judge)


@dataclass(frozen=True, slots=True)
class Credibility:
    """× ``factor`` for what is credible: ``most`` or better, of 0 confirmed to 6 unknown."""

    factor: float = 1.25
    most: int = 2
    channels: tuple[str, ...] = ()
    name: str = "credibility"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def judge(cand: Candidate) -> Candidate:
            grade = cand.item.credibility
            factor = self.factor if grade <= self.most else 1.0
            return times(self.name, cand, factor, f"credibility {grade}")

        return judged(pool, self.channels, judge)


@dataclass(frozen=True, slots=True)
class Tier:
    """× the factor of the memory's tier; tiers that are not named count as they are."""

    factors: tuple[tuple[str, float], ...] = (("core", 1.3),)
    channels: tuple[str, ...] = ()
    name: str = "tier"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        factors = dict(self.factors)

        def judge(cand: Candidate) -> Candidate:
            tier = cand.item.tier
            return times(self.name, cand, factors.get(tier, 1.0), f"tier {tier}")

        return judged(pool, self.channels, judge)


@dataclass(frozen=True, slots=True)
class Fading:
    """Fades in a straight line: × max(``floor``, 1 − age / ``days``), and × (1 + ``emotion``
    × |emotion|), since what was felt strongly fades less."""

    days: float = 365.0
    floor: float = 0.3
    emotion: float = 0.1
    channels: tuple[str, ...] = ()
    name: str = "fading"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        def judge(cand: Candidate) -> Candidate:
            age = age_days(cand.item, ctx)
            left = max(self.floor, 1.0 - age / self.days)
            felt = 1.0 + self.emotion * abs(cand.item.emotion)
            why = in_words(age) + (f", {_felt(cand.item)}" if felt != 1.0 else "")
            return times(self.name, cand, left * felt, why)

        return judged(pool, self.channels, judge)
