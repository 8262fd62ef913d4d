"""Time decay: how well the time of a memory fits a question, by age or by a named time."""

from __future__ import annotations

import math
from datetime import datetime
from typing import NamedTuple

from bethink.model import Item
from bethink.retrieval.context import Context
from bethink.retrieval.query_analysis import DAY_S, Period, periods


class TimeDecay(NamedTuple):
    """Decay rates per day and floors: by age, and by distance from a named time."""

    per_day: float = 0.0019
    floor: float = 0.7
    outside_per_day: float = 0.023
    outside_floor: float = 0.3


def time_factor(item: Item, ctx: Context, decay: TimeDecay) -> tuple[float, str]:
    """The factor for a score, at most 1, and the reason.

    A memory without a date of its own is not judged by its time.
    """
    at = item.occurred_at
    if at is None:
        return 1.0, "no date of its own"
    named = periods(ctx)
    if not named:
        days = max(0.0, (ctx.query.moment - at).total_seconds() / DAY_S)
        return max(decay.floor, math.exp(-decay.per_day * days)), f"{days:.0f} days old"
    near = min(named, key=lambda period: _days_outside(at, item.occurred_end, period))
    days = _days_outside(at, item.occurred_end, near)
    if not days:
        return 1.0, f"of {near.said}"
    factor = max(decay.outside_floor, math.exp(-decay.outside_per_day * days))
    return factor, f"{days:.0f} days off {near.said}"


def _days_outside(start: datetime, end: datetime | None, period: Period) -> float:
    """Distance in days between an event and the period; 0 where they overlap."""
    last = max(start, end) if end is not None else start
    if start >= period.end:
        return max((start - period.end).total_seconds(), 1.0) / DAY_S
    return max(0.0, (period.start - last).total_seconds() / DAY_S)
