"""Small leanings after the search: confirmed by meaning, fits the moment, well rehearsed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from recollect.context import Context
from recollect.model import Candidate, Pool, best_first
from recollect.stages.adjust import DAY_S
from recollect.stages.fitness import found_by, judged, times

GENERAL = "general"
WEEKEND_FROM = 5  # Monday is 0


def part_of_day(hour: int) -> str:
    """Morning from 6, afternoon from 12, evening from 18, night from 23."""
    for name, start, end in (("morning", 6, 12), ("afternoon", 12, 18), ("evening", 18, 23)):
        if start <= hour < end:
            return name
    return "night"


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """× ``factor`` for what the channels ``of`` found and the channel ``by`` did not.

    Only when ``by`` was asked and found anything at all. Compared with everything it
    found, whether others had found it before or not.
    """

    of: tuple[str, ...] = ()
    by: str = "dense"
    factor: float = 0.5
    name: str = "unconfirmed"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not any(found_by(cand, (self.by,)) for cand in pool):
            return pool

        def judge(cand: Candidate) -> Candidate:
            if found_by(cand, (self.by,)):
                return cand
            return times(self.name, cand, self.factor, f"not confirmed by {self.by}")

        return judged(pool, self.of, judge) if self.of else pool


@dataclass(frozen=True, slots=True)
class Moment:
    """Adds where a memory fits the moment of the question: ``hour`` for the same part of
    the day, ``weekday`` for the same day of the week (half for the same kind of day),
    ``topic`` for the topic at hand.

    The moment is the caller's (``recall(context={"hour": 9, "topic": "auth"})``); what
    the caller leaves out is the query's own hour and weekday, and no topic. Times in UTC.
    """

    hour: float = 0.02
    weekday: float = 0.015
    topic: float = 0.03
    name: str = "moment"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        around = ctx.query.context
        hour = ctx.query.moment.hour if around.hour is None else around.hour
        weekday = ctx.query.moment.weekday() if around.weekday is None else around.weekday

        def judge(cand: Candidate) -> Candidate:
            when = cand.item.when
            part = part_of_day(hour)
            if self.hour and part_of_day(when.hour) == part:
                cand = cand.because(self.name, "add", self.hour, f"{part}, like now")
            cand = self._same_day(cand, when, weekday)
            topic = cand.item.topic
            if self.topic and topic and topic == around.topic != GENERAL:
                cand = cand.because(self.name, "add", self.topic, f"topic {topic}")
            return cand

        return best_first(map(judge, pool))

    def _same_day(self, cand: Candidate, when: datetime, weekday: int) -> Candidate:
        if not self.weekday:
            return cand
        if when.weekday() == weekday:
            return cand.because(self.name, "add", self.weekday, "same day of the week")
        kinds = [day >= WEEKEND_FROM for day in (when.weekday(), weekday)]
        if kinds[0] != kinds[1]:
            return cand
        kind = "weekend" if kinds[0] else "working day"
        return cand.because(self.name, "add", self.weekday / 2, f"{kind}, like now")


@dataclass(frozen=True, slots=True)
class Spacing:
    """× for what was recalled again and again with time between: ``long_factor`` from an
    average of ``long_days`` on, ``short_factor`` from ``short_days`` on.

    Over the last twenty recalls; one recall has no interval.
    """

    long_days: float = 7.0
    long_factor: float = 1.3
    short_days: float = 1.0
    short_factor: float = 1.15
    name: str = "spacing"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        usage = ctx.usage([cand.item.id for cand in pool])

        def judge(cand: Candidate) -> Candidate:
            used = usage.get(cand.item.id)
            days = mean_interval_days(used.stamps) if used else None
            if days is None or days < self.short_days:
                return cand
            factor = self.long_factor if days >= self.long_days else self.short_factor
            return times(self.name, cand, factor, f"recalled every {days:.1f} days")

        return best_first(map(judge, pool))


def mean_interval_days(stamps: tuple[datetime, ...]) -> float | None:
    """The average time between recalls; None for fewer than two."""
    if len(stamps) < 2:
        return None
    gaps = [(later - sooner).total_seconds() for sooner, later in pairwise(sorted(stamps))]
    return sum(gaps) / len(gaps) / DAY_S


@dataclass(frozen=True, slots=True)
class Quality:
    """Weighs in how memories fared in answers: metadata ``cited`` and ``rejected`` count it.

    Adds ``weight`` × (cited − rejected) / recalls within ``least`` and ``most``; × ``ignored``
    for one recalled ``often`` times in thirty days and never cited. A memory that nobody
    counted for is left alone.
    """

    weight: float = 0.15
    least: float = -0.1
    most: float = 0.15
    often: int = 5
    ignored: float = 0.85
    name: str = "quality"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        usage = ctx.usage([cand.item.id for cand in pool])

        def judge(cand: Candidate) -> Candidate:
            used = usage.get(cand.item.id)
            counted = [_count(cand, name) for name in ("cited", "rejected")]
            if used is None or not used.recalls or counted == [None, None]:
                return cand
            cited, rejected = (count or 0.0 for count in counted)
            fared = self.weight * (cited - rejected) / used.recalls
            bonus = min(self.most, max(self.least, fared))
            why = f"cited {cited:g}, rejected {rejected:g} of {used.recalls}"
            cand = cand.because(self.name, "add", bonus, why) if bonus else cand
            if used.in_30_days >= self.often and not cited:
                return times(self.name, cand, self.ignored, "often recalled, never cited")
            return cand

        return best_first(map(judge, pool))


def _count(cand: Candidate, name: str) -> float | None:
    value = cand.item.metadata.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return max(0.0, float(value)) if math.isfinite(value) else None
