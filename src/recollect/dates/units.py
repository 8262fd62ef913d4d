"""Calendar arithmetic: where a week, a month or a year begins, and the one after it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

_STEP_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_STEP = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "weekend": timedelta(weeks=1),
}


_BEGIN: dict[str, Callable[[datetime], datetime]] = {
    "week": lambda day: day - timedelta(days=day.weekday()),
    "weekend": lambda day: day + timedelta(days=5 - day.weekday()),
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "year": lambda day: day.replace(month=1, day=1),
    "decade": lambda day: day.replace(year=day.year // 10 * 10, month=1, day=1),
}


def begin(moment: datetime, unit: str) -> datetime:
    """Where the unit that holds this moment begins."""
    if unit == "minute":
        return moment.replace(second=0, microsecond=0)
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return _BEGIN[unit](day) if unit in _BEGIN else day


def moved(moment: datetime, unit: str, count: int) -> datetime:
    """So many units later; the day of the month gives way where a month is shorter."""
    if unit not in _STEP_MONTHS:
        return moment + count * _STEP[unit]
    index = moment.year * 12 + moment.month - 1 + count * _STEP_MONTHS[unit]
    first = moment.replace(year=index // 12, month=index % 12 + 1, day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return first.replace(day=min(moment.day, last.day))
