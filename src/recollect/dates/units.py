"""Calendar arithmetic: where a week, a month or a year begins, and the one after it."""

from __future__ import annotations

from datetime import datetime, timedelta

_STEP_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_STEP = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "weekend": timedelta(weeks=1),
}


def begin(moment: datetime, unit: str) -> datetime:
    """Where the unit that holds this moment begins."""
    if unit == "minute":
        return moment.replace(second=0, microsecond=0)
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "weekend":
        return day + timedelta(days=5 - day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    if unit == "year":
        return day.replace(month=1, day=1)
    if unit == "decade":
        return day.replace(year=day.year // 10 * 10, month=1, day=1)
    return day


def moved(moment: datetime, unit: str, count: int) -> datetime:
    """So many units later; the day of the month gives way where a month is shorter."""
    if unit not in _STEP_MONTHS:
        return moment + count * _STEP[unit]
    index = moment.year * 12 + moment.month - 1 + count * _STEP_MONTHS[unit]
    first = moment.replace(year=index // 12, month=index % 12 + 1, day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return first.replace(day=min(moment.day, last.day))
