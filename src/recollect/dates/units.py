"""Calendar arithmetic: where a week, a month or a year begins, and the one after it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from recollect.dates.span import Granularity

_STEP_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_STEP = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "night": timedelta(days=1),
    "week": timedelta(weeks=1),
    "weekend": timedelta(weeks=1),
    "fortnight": timedelta(weeks=2),
}
_BEGIN: dict[str, Callable[[datetime], datetime]] = {
    "week": lambda day: day - timedelta(days=day.weekday()),
    "fortnight": lambda day: day - timedelta(days=day.weekday()),
    "weekend": lambda day: day + timedelta(days=5 - day.weekday()),
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "year": lambda day: day.replace(month=1, day=1),
    "decade": lambda day: day.replace(year=day.year // 10 * 10, month=1, day=1),
}
GRANULARITY: dict[str, Granularity] = {
    "second": "minute",
    "minute": "minute",
    "hour": "hour",
    "night": "part",
    "week": "week",
    "fortnight": "week",
    "month": "month",
    "quarter": "quarter",
    "year": "year",
    "decade": "decade",
}
# Where the beginning, the middle and the end of a longer time lie: offsets from its
# start, counted in a smaller unit. The last one reaches to the end, however long it is.
_THIRDS: dict[Granularity, tuple[str, tuple[int, int, int, int]]] = {
    "day": ("hour", (0, 10, 16, 24)),
    "week": ("day", (0, 3, 4, 7)),
    "month": ("day", (0, 10, 20, 31)),
    "quarter": ("month", (0, 1, 2, 3)),
    "season": ("month", (0, 1, 2, 3)),
    "year": ("month", (0, 4, 8, 12)),
    "decade": ("year", (0, 4, 7, 10)),
}


def begin(moment: datetime, unit: str) -> datetime:
    """Where the unit that holds this moment begins."""
    if unit == "second":
        return moment.replace(microsecond=0)
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


def third(
    start: datetime, end: datetime, granularity: Granularity, which: int
) -> tuple[datetime, datetime]:
    """The beginning (0), middle (1) or end (2) of a time; short ones are left whole."""
    if granularity not in _THIRDS:
        return start, end
    unit, cuts = _THIRDS[granularity]
    last = end if which == 2 else moved(start, unit, cuts[which + 1])
    return moved(start, unit, cuts[which]), last
