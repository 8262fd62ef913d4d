"""Rules for times counted from the anchor: yesterday, last Friday, two weeks ago."""

from __future__ import annotations

from datetime import datetime, timedelta

from recollect.dates.absolute import month_name, number_date
from recollect.dates.names import (
    AGO,
    LAST,
    LATER,
    MONTH,
    NEXT,
    NUMBER,
    PART,
    SEASON,
    UNIT,
    VAGUE,
    WEEKDAY,
)
from recollect.dates.reader import Found, Reader
from recollect.dates.span import Granularity
from recollect.dates.units import begin, moved

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_BEHIND_A_COUNT = UNIT.keys() | VAGUE.keys() | {"of"}
_GRANULARITY: dict[str, Granularity] = {
    "minute": "minute",
    "hour": "hour",
    "week": "week",
    "month": "month",
    "quarter": "quarter",
    "year": "year",
    "decade": "decade",
}


def near_day(reader: Reader, i: int) -> Found:
    """Yesterday, today or tomorrow."""
    return reader.day(reader.today + timedelta(days=_DAYS[reader.word(i)]), i + 1)


def tonight(reader: Reader, i: int) -> Found:
    return part_of_day(reader.today, "night", i + 1)


def part_of_day(day: datetime, name: str, after: int) -> Found:
    """The morning, afternoon, evening or night of a day."""
    first, last = PART[name]
    return Found(day + timedelta(hours=first), day + timedelta(hours=last), "part", after)


def beyond(reader: Reader, i: int) -> Found | None:
    """The day before yesterday, the day after tomorrow."""
    if (reader.word(i + 1), reader.word(i + 2)) == ("before", "yesterday"):
        return reader.day(reader.today - timedelta(days=2), i + 3)
    if (reader.word(i + 1), reader.word(i + 2)) == ("after", "tomorrow"):
        return reader.day(reader.today + timedelta(days=2), i + 3)
    return amount(reader, i)


def weekday(reader: Reader, i: int) -> Found | None:
    """Friday, or the date behind it: Friday, 5 May 2023."""
    at = i + 1 + (reader.word(i + 1) in (",", "."))
    at += reader.word(at) == "the"
    if reader.word(at)[:1].isdecimal():
        dated = number_date(reader, at)
    else:
        dated = month_name(reader, at) if reader.word(at) in MONTH else None
    if dated and dated.granularity == "day":
        return dated
    if reader.word(i) not in WEEKDAY or reader.word(i - 1) in ("every", "each"):
        return None
    ahead = (WEEKDAY[reader.word(i)] - reader.today.weekday()) % 7
    back = ahead - 7 if ahead else 0
    days = back if reader.lean == "past" or -back < ahead else ahead
    return reader.day(reader.today + timedelta(days=days), i + 1)


def pointed(reader: Reader, i: int) -> Found | None:
    """Last, this or next week, Friday, March, summer, night; the last three days."""
    step = -1 if reader.word(i) in LAST else 1 if reader.word(i) in NEXT else 0
    what = reader.word(i + 1)
    if what in WEEKDAY:
        return reader.day(_pointed_weekday(reader, WEEKDAY[what], step), i + 2)
    if what in MONTH or what in SEASON:
        return _pointed_month(reader, what, step, i + 2)
    if what in PART and step <= 0:
        day = reader.today + timedelta(days=step)
        return part_of_day(day, what, i + 2)
    if what in UNIT and what not in ("minute", "hour", "day") and reader.word(i) != "past":
        return unit_away(reader, UNIT[what], step, i + 2)
    return _stretch(reader, i + 1, step) if step else None


def _pointed_weekday(reader: Reader, number: int, step: int) -> datetime:
    monday = begin(reader.today, "week")
    if step < 0:
        # The last one before today, even if it was only yesterday.
        back = (reader.today.weekday() - number - 1) % 7 + 1
        return reader.today - timedelta(days=back)
    return monday + timedelta(days=number + 7 * step)


def _pointed_month(reader: Reader, name: str, step: int, after: int) -> Found | None:
    length, month = ("month", MONTH[name]) if name in MONTH else ("quarter", SEASON[name])
    if reader.year(after) is not None or reader.number(after, 2) is not None:
        return None  # "last May 8" and "this March 2024" are read from the month on
    years = range(reader.anchor.year - 2, reader.anchor.year + 3)
    starts = [reader.midnight(year, month, 1) for year in years]
    if step < 0:
        start = max(s for s in starts if moved(s, length, 1) <= reader.today)
    elif step > 0:
        start = min(s for s in starts if s > reader.today)
    else:
        start = reader.midnight(reader.anchor.year, month, 1)
    granularity: Granularity = "month" if name in MONTH else "season"
    return Found(start, moved(start, length, 1), granularity, after)


def unit_away(reader: Reader, unit: str, count: int, after: int) -> Found:
    """The whole unit that lies so many units from the anchor's own."""
    if unit == "fortnight":
        unit, count = "week", count * 2
    start = moved(begin(reader.anchor, unit), unit, count)
    if unit == "weekend":
        return Found(start, start + timedelta(days=2), "day", after)
    return Found(start, moved(start, unit, 1), _GRANULARITY.get(unit, "day"), after)


def _count(reader: Reader, i: int) -> tuple[int, int, int] | None:
    """Fewest, most and the place behind: "3", "two", "a couple of", "a few"."""
    at = i + (reader.word(i) == "a" and reader.word(i + 1) in VAGUE)
    if reader.word(at) in VAGUE:
        fewest, most = VAGUE[reader.word(at)]
        return fewest, most, at + 1 + (reader.word(at + 1) == "of")
    number = reader.number(at, 4)
    if number is None:
        number = NUMBER.get(reader.word(at))
    return None if number is None else (number, number, at + 1)


def amount(reader: Reader, i: int) -> Found | None:
    """Three days ago, in two weeks, a month later."""
    if reader.word(i + 1) not in _BEHIND_A_COUNT:
        return None  # most of all the many words "a"
    count = _count(reader, i)
    unit = UNIT.get(reader.word(count[2])) if count else None
    if count is None or unit is None:
        return None
    fewest, most, at = count
    following = reader.word(at + 1)
    if following in AGO:
        near, far = unit_away(reader, unit, -fewest, at + 2), unit_away(reader, unit, -most, at + 2)
        return near._replace(start=far.start)
    from_now = following == "from" and reader.word(at + 2) in ("now", "today")
    if following in LATER or from_now or reader.word(i - 1) in ("in", "within"):
        after = at + 3 if from_now else at + 1 + (following in LATER)
        near, far = unit_away(reader, unit, fewest, after), unit_away(reader, unit, most, after)
        return near._replace(end=far.end)
    return None


def _stretch(reader: Reader, i: int, step: int) -> Found | None:
    """(The last) three days, few weeks: up to the anchor, or on from it."""
    count = (1, 1, i) if reader.word(i) in UNIT else _count(reader, i)
    unit = UNIT.get(reader.word(count[2])) if count else None
    if count is None or unit is None:
        return None
    if unit in ("weekend", "fortnight"):
        unit, count = "week", (count[0], count[1] * (2 if unit == "fortnight" else 1), count[2])
    granularity = _GRANULARITY.get(unit, "day")
    counted_in = "minute" if unit in ("minute", "hour") else "day"
    this = begin(reader.anchor, counted_in)
    end = moved(this, counted_in, 1)
    if step < 0:
        return Found(moved(this, unit, -count[1]), end, granularity, count[2] + 1)
    return Found(this, moved(end, unit, count[1]), granularity, count[2] + 1)
