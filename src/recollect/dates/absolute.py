"""Rules for dates by name: 8 May 2023, March, Q3 2024, summer 2022, in 2022, the 90s."""

from __future__ import annotations

from calendar import isleap
from datetime import datetime, timedelta
from typing import NamedTuple

from recollect.dates.figures import month_of_year, numeric, week_of_year
from recollect.dates.names import (
    BEFORE_A_MONTH,
    BEFORE_A_SEASON,
    BEFORE_A_YEAR,
    DECADE,
    LAST,
    MONTH,
    NEXT,
    ORDINAL_ENDS,
    SEASON,
    THIRD,
)
from recollect.dates.reader import Found, Reader
from recollect.dates.units import moved


class Year(NamedTuple):
    """A year that stands behind something, up to word ``next``."""

    number: int
    next: int
    relative: bool = False


def year_behind(reader: Reader, i: int) -> Year | None:
    """The year a date goes on with: 2023, '23, of last year."""
    i += reader.word(i) in ("of", ",", "/", "-", "in")
    number = reader.year(i)
    if number is not None:
        return Year(number, i + 1)
    if reader.word(i) in ("'", "’") and len(reader.word(i + 1)) == 2 and reader.touches(i + 1):
        short = reader.number(i + 1, 2)
        return None if short is None else Year(2000 + short, i + 2)
    i += reader.word(i) == "the"
    if reader.word(i + 1) == "year":
        word = reader.word(i)
        step = -1 if word in LAST else 1 if word in NEXT else 0 if word == "this" else None
        return None if step is None else Year(reader.anchor.year + step, i + 2, relative=True)
    return None


def introduced(reader: Reader, i: int, words: frozenset[str]) -> bool:
    """Whether one of the words stands before a place; "mid-" counts as well."""
    before, further = reader.word(i - 1), reader.word(i - 2)
    if before in ("-", "of") and further in THIRD:
        return True
    return before in words or (before == "than" and further in ("earlier", "later"))


def number_date(reader: Reader, i: int) -> Found | None:
    """A date that begins with a number."""
    return numeric(reader, i) or _day_month(reader, i) or _day_alone(reader, i) or _year(reader, i)


def day_behind(reader: Reader, i: int) -> Found | None:
    """A single day with its date that stands at a place: 8 May 2023, May 8, 2023-05-08."""
    i += reader.word(i) in ("the", "on")
    if reader.word(i)[:1].isdecimal():
        dated = number_date(reader, i)
    else:
        dated = month_name(reader, i) if reader.word(i) in MONTH else None
    return dated if dated and dated.granularity == "day" else None


def _day_number(reader: Reader, i: int) -> tuple[int, int] | None:
    """A day of a month, "8" or "8th" (or "8." where days are written so), and the place
    behind it."""
    day = reader.number(i, 2)
    if day is None or not 1 <= day <= 31:
        return None
    ordinal = reader.touches(i + 1) and reader.word(i + 1) in ORDINAL_ENDS
    dotted = reader.how.day_first and reader.word(i + 1) == "."
    return day, i + 1 + (ordinal or dotted)


def _day_range(reader: Reader, i: int) -> tuple[int, int, int] | None:
    """First day, last day and the place behind: "8", "8th", "3-5"."""
    first = _day_number(reader, i)
    if first is None:
        return None
    day, after = first
    if reader.word(after) in ("-", "–", "to"):
        second = _day_number(reader, after + 1)
        if second and second[0] > day:
            return day, second[0], second[1]
    return day, day, after


def _day_month(reader: Reader, i: int) -> Found | None:
    days = _day_range(reader, i)
    if days is None:
        return None
    first, last, at = days
    at += reader.word(at) in ("of", "-")
    month = MONTH.get(reader.word(at))
    # "3 may" followed by a verb is no date: a lower-case may or march needs its year.
    if month is None or (_is_verb_too(reader, at) and not year_behind(reader, at + 1)):
        return None
    return _with_year(reader, (first, last), month, at + 1)


def _day_alone(reader: Reader, i: int) -> Found | None:
    """On the 15th, the 3rd of last month: a day of some month near the anchor."""
    day = _day_number(reader, i)
    if day is None or day[1] == i + 1 or reader.word(i - 1) != "the":
        return None
    at = day[1] + (reader.word(day[1]) == "of")
    if at > day[1] and reader.word(at + 1) == "month":
        word = reader.word(at)
        step = -1 if word in LAST else 1 if word in NEXT else 0 if word in ("this", "the") else None
        if step is not None:
            first = moved(reader.today.replace(day=1), "month", step)
            return reader.day(first.replace(day=day[0]), at + 2)
    if reader.word(i - 2) not in ("on", "since", "until", "by") or reader.word(at).isalpha():
        return None  # "on the 5th floor"
    firsts = [moved(reader.today.replace(day=1), "month", step) for step in (-2, -1, 0, 1, 2)]
    lasts = [(moved(first, "month", 1) - timedelta(days=1)).day for first in firsts]
    days = [first.replace(day=day[0]) for first, last in zip(firsts, lasts, strict=True)
            if day[0] <= last]  # fmt: skip
    return reader.day(reader.choose(days), day[1])


def month_name(reader: Reader, i: int) -> Found | None:
    """A date that begins with the name of a month."""
    month = MONTH[reader.word(i)]
    at = i + 1 + (reader.word(i + 1) == "." and len(reader.word(i)) <= 4)
    preceded = introduced(reader, i, BEFORE_A_MONTH) or _is_second(reader, i)
    year = year_behind(reader, at)
    if year is not None:
        found = month_of_year(reader, year.number, month, year.next)
        return found._replace(relative=year.relative)
    day = at + (reader.word(at) == "the")
    days = _day_range(reader, day) if reader.same_line(day) else None
    if days and (preceded or not _is_verb_too(reader, i)):
        return _with_year(reader, days[:2], month, days[2])
    # A short name alone is too often something else; May has no longer one.
    if not preceded or (len(reader.word(i)) == 3 and month != 5):
        return None
    start = reader.choose([reader.midnight(year, month, 1) for year in reader.years_around()])
    return Found(start, moved(start, "month", 1), "month", i + 1, cycle="year")


def _is_second(reader: Reader, i: int) -> bool:
    """Whether a month ends a range: May to June. "To April" alone may be to somebody."""
    before = reader.word(i - 2)
    return reader.word(i - 1) in ("to", "–") and (before in MONTH or before.isdecimal())


def _is_verb_too(reader: Reader, i: int) -> bool:
    if reader.places is not None or reader.word(i) not in ("may", "march", "mar"):
        return False
    return reader.text[reader.spans[i][0]].islower()


def _with_year(reader: Reader, days: tuple[int, int], month: int, after: int) -> Found:
    year = year_behind(reader, after)
    if year is None or reader.word(year.next) == ":":  # "8 May 2013:30" is no year
        start, cycle = reader.choose(_valid(reader, month, days[0])), True
    else:
        start, after, cycle = reader.midnight(year.number, month, days[0]), year.next, False
    end = reader.midnight(start.year, month, days[1]) + timedelta(days=1)
    relative = cycle or (year is not None and year.relative)
    return Found(start, end, "day", after, relative, "year" if cycle else "")


def _valid(reader: Reader, month: int, day: int) -> list[datetime]:
    """The day in the years around the anchor; a 29 February is not in each."""
    if (month, day) != (2, 29):
        return [reader.midnight(year, month, day) for year in reader.years_around()]
    leap = [year for year in reader.years_around(8) if 1 <= year <= 9999 and isleap(year)]
    return [reader.midnight(year, month, day) for year in leap]


def _year(reader: Reader, i: int) -> Found | None:
    if decade := _decade(reader, i):
        return decade
    year = reader.year(i)
    if year is None or not 1900 <= year <= 2100:
        return None
    start = reader.midnight(year, 1, 1)
    runs_on = reader.touches(i + 1) and reader.word(i + 1) not in ".,;:!?)\"'"
    joined = reader.how.spaced and reader.touches(i) and reader.word(i - 1) != "-"
    if joined or runs_on or not introduced(reader, i, BEFORE_A_YEAR):
        return None
    return Found(start, moved(start, "year", 1), "year", i + 1, relative=False)


def _decade(reader: Reader, i: int) -> Found | None:
    """The 1990s, the 90s."""
    if reader.word(i + 1) != "s" or not reader.touches(i + 1):
        return None
    year = reader.year(i)
    if year is None and len(reader.word(i)) == 2:
        quoted = reader.word(i - 1) in ("'", "’") and reader.touches(i)
        if not quoted and not _the(reader, i):
            return None  # "in my late 40s"
        year = _latest_decade(reader, int(reader.word(i)))
    if year is None or year % 10:
        return None
    start = reader.midnight(year, 1, 1)
    return Found(start, moved(start, "decade", 1), "decade", i + 2, relative=False)


def _the(reader: Reader, i: int) -> bool:
    """Whether "the" leads to a place, at most an early, mid- or late between."""
    before = i - 1 - (reader.word(i - 1) == "-")
    return reader.word(before - (reader.word(before) in ("early", "mid", "late"))) == "the"


def _latest_decade(reader: Reader, short: int) -> int:
    year = reader.anchor.year // 100 * 100 + short
    return year if year <= reader.anchor.year else year - 100


def decade_name(reader: Reader, i: int) -> Found | None:
    """The nineties."""
    if not _the(reader, i):
        return None
    start = reader.midnight(_latest_decade(reader, DECADE[reader.word(i)]), 1, 1)
    return Found(start, moved(start, "decade", 1), "decade", i + 1)


def quarter(reader: Reader, i: int) -> Found | None:
    """Q3 2024, Q3 last year, or Q3 alone; H1 2024."""
    number = reader.number(i + 1, 1)
    half = reader.word(i) == "h"
    if number is None or not reader.touches(i + 1) or not 1 <= number <= (2 if half else 4):
        return None
    runs_on = reader.touches(i + 2) and reader.word(i + 2) not in ".,;:!?)/-'’"
    if reader.touches(i) or runs_on:
        return None
    return span_of_year(reader, (number, 6 if half else 3), i + 2)


def span_of_year(reader: Reader, which: tuple[int, int], after: int) -> Found | None:
    """The so-manieth quarter or half of the year that follows, or of the latest one."""
    number, months = which
    year = year_behind(reader, after)
    month = (number - 1) * months + 1
    if year is None and months == 6:
        return None  # "h1" alone is a heading
    if year is not None:
        start = reader.midnight(year.number, month, 1)
        end = moved(start, "month", months)
        return Found(start, end, "quarter", year.next, year.relative)
    start = reader.choose([reader.midnight(one, month, 1) for one in reader.years_around()])
    return Found(start, moved(start, "quarter", 1), "quarter", after, cycle="year")


def season(reader: Reader, i: int) -> Found | None:
    """Summer 2022; a winter is named after the year it begins in."""
    year = year_behind(reader, i + 1)
    month = SEASON[reader.word(i)]
    if year is not None:
        start = reader.midnight(year.number, month, 1)
        return Found(start, moved(start, "quarter", 1), "season", year.next, year.relative)
    before = i - 1 - (reader.word(i - 1) == "the")
    if not reader.how.vague or reader.word(before) not in BEFORE_A_SEASON:
        return None
    if reader.word(i) == "fall" and reader.word(i - 1) != "the":
        return None  # "in fall" is a season, "after fall" hardly; "in the fall" always
    if reader.word(i) == "spring" and reader.word(i + 1).isalpha() and reader.places is None:
        return None  # "in spring boot"
    start = reader.choose([reader.midnight(one, month, 1) for one in reader.years_around()])
    return Found(start, moved(start, "quarter", 1), "season", i + 1, cycle="year")


def week_number(reader: Reader, i: int) -> Found | None:
    """Week 19, week 19 of 2023, the week of 8 May."""
    number = reader.number(i + 1, 2)
    if number is not None and 1 <= number <= 53:
        year = year_behind(reader, i + 2)
        if year is not None:
            found = week_of_year(reader, year.number, number, year.next)
            return found._replace(relative=year.relative)
        if not reader.how.vague:
            return None  # "week 3 of the course"
        weeks = [week_of_year(reader, one, number, i + 2) for one in reader.years_around()]
        start = reader.choose([week.start for week in weeks])
        return Found(start, start + timedelta(weeks=1), "week", i + 2, cycle="year")
    return None
