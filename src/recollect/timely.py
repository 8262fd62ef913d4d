"""How well the time of a memory suits a question: gently by age, firmly by a time it names."""

from __future__ import annotations

import math
from datetime import datetime
from typing import NamedTuple

from recollect.asked import DAY_S, Period, periods
from recollect.context import Context
from recollect.model import Item


class Curve(NamedTuple):
    """How fast, a day, and how far at most: by age, and by distance from a named time."""

    per_day: float = 0.0019
    floor: float = 0.7
    outside_per_day: float = 0.023
    outside_floor: float = 0.3


def time_factor(item: Item, ctx: Context, curve: Curve) -> tuple[float, str]:
    """What to multiply a score with, 1 at most, and why.

    A memory that does not say when it happened is not judged by its time.
    """
    at = item.occurred_at
    if at is None:
        return 1.0, "no date of its own"
    named = periods(ctx)
    if not named:
        days = max(0.0, (ctx.query.moment - at).total_seconds() / DAY_S)
        return max(curve.floor, math.exp(-curve.per_day * days)), f"{days:.0f} days old"
    near = min(named, key=lambda period: _days_outside(at, item.occurred_end, period))
    days = _days_outside(at, item.occurred_end, near)
    if not days:
        return 1.0, f"of {near.said}"
    factor = max(curve.outside_floor, math.exp(-curve.outside_per_day * days))
    return factor, f"{days:.0f} days off {near.said}"


def _days_outside(start: datetime, end: datetime | None, period: Period) -> float:
    """How far what happened lies from the period, 0 where they meet."""
    last = max(start, end) if end is not None else start
    if start >= period.end:
        return max((start - period.end).total_seconds(), 1.0) / DAY_S
    return max(0.0, (period.start - last).total_seconds() / DAY_S)
