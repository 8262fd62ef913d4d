"""Rules for dates that stand by themselves: 2023-05-08, 8 May 2023, Q3 2024, in 2022."""

from __future__ import annotations

import re
from calendar import isleap
from datetime import datetime, timedelta

from recollect.dates.names import BEFORE_A_MONTH, BEFORE_A_YEAR, MONTH, SEASON
from recollect.dates.reader import Found, Reader
from recollect.dates.units import moved

_ENDS = r"(?![\w/-]|[.,:]\d)"
_ISO = re.compile(
    r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?" + _ENDS
)
_YEAR_WEEK = re.compile(r"(\d{4})-W(\d\d)" + _ENDS)
_YEAR_MONTH = re.compile(r"(\d{4})-(\d\d)" + _ENDS)
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})" + _ENDS)
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})" + _ENDS)
_ORDINAL = ("st", "nd", "rd", "th")


def number_date(reader: Reader, i: int) -> Found | None:
    """A date that begins with a number."""
    return _numeric(reader, i) or _day_month(reader, i) or _year(reader, i)


def _numeric(reader: Reader, i: int) -> Found | None:
    at = reader.spans[i][0]
    if match := _ISO.match(reader.text, at):
        return _iso(reader, i, match)
    if match := _YEAR_WEEK.match(reader.text, at):
        monday = datetime.fromisocalendar(int(match[1]), int(match[2]), 1)
        start = monday.replace(tzinfo=reader.anchor.tzinfo)
        end = start + timedelta(weeks=1)
        return Found(start, end, "week", reader.after(match.end(), i), relative=False)
    if match := _YEAR_MONTH.match(reader.text, at):
        return _month(reader, int(match[1]), int(match[2]), reader.after(match.end(), i))
    if match := _DOTTED.match(reader.text, at):
        start = reader.midnight(int(match[3]), int(match[2]), int(match[1]))
        return reader.day(start, reader.after(match.end(), i), relative=False)
    if match := _SLASHED.match(reader.text, at):
        # With slashes the month comes first, unless it cannot be one.
        first, second = int(match[1]), int(match[2])
        month, day = (second, first) if first > 12 else (first, second)
        start = reader.midnight(int(match[3]), month, day)
        return reader.day(start, reader.after(match.end(), i), relative=False)
    return None


def _iso(reader: Reader, i: int, match: re.Match[str]) -> Found:
    after = reader.after(match.end(), i)
    start = reader.midnight(int(match[1]), int(match[3]), int(match[4]))
    if match[5] is None:
        return reader.day(start, after, relative=False)
    if match[8]:
        zone = match[8].replace("Z", "+00:00")
        moment = datetime.fromisoformat(f"{start:%Y-%m-%d}T{match[5]}:{match[6]}{zone}")
        start = moment.astimezone(reader.anchor.tzinfo)
    else:
        start = start.replace(hour=int(match[5]), minute=int(match[6]))
    return Found(start, start + timedelta(minutes=1), "minute", after, relative=False)


def _month(reader: Reader, year: int, month: int, after: int) -> Found:
    start = reader.midnight(year, month, 1)
    return Found(start, moved(start, "month", 1), "month", after, relative=False)


def _day_number(reader: Reader, i: int) -> tuple[int, int] | None:
    """A day of a month, "8" or "8th", and the place behind it."""
    day = reader.number(i, 2)
    if day is None or not 1 <= day <= 31:
        return None
    ordinal = reader.word(i + 1) in _ORDINAL and reader.touches(i + 1)
    return day, i + 1 + ordinal


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
    if month is None or (_is_verb_too(reader, at) and not _year_follows(reader, at + 1)):
        return None
    return _with_year(reader, (first, last), month, at + 1)


def month_name(reader: Reader, i: int) -> Found | None:
    """A date that begins with the name of a month."""
    month = MONTH[reader.word(i)]
    at = i + 1 + (reader.word(i + 1) == "." and len(reader.word(i)) <= 4)
    of = at + (reader.word(at) in ("of", ","))
    year = reader.year(of)
    if year is not None:
        return _month(reader, year, month, of + 1)
    preceded = reader.word(i - 1) in BEFORE_A_MONTH
    days = _day_range(reader, at + (reader.word(at) == "the"))
    if days and (preceded or not _is_verb_too(reader, i)):
        return _with_year(reader, days[:2], month, days[2])
    if not preceded or len(reader.word(i)) == 3 != len("may") * (month == 5):
        return None
    start = reader.choose(
        [reader.midnight(reader.anchor.year + step, month, 1) for step in (-1, 0, 1)]
    )
    return Found(start, moved(start, "month", 1), "month", i + 1)


def _is_verb_too(reader: Reader, i: int) -> bool:
    return reader.word(i) in ("may", "march", "mar") and reader.text[reader.spans[i][0]].islower()


def _year_follows(reader: Reader, i: int) -> bool:
    return reader.year(i + (reader.word(i) == ",")) is not None


def _with_year(reader: Reader, days: tuple[int, int], month: int, after: int) -> Found:
    at = after + (reader.word(after) == ",")
    year = reader.year(at)
    relative = year is None or reader.word(at + 1) == ":"
    if year is None or relative:
        start = reader.choose(_valid(reader, month, days[0]))
    else:
        start, after = reader.midnight(year, month, days[0]), at + 1
    end = reader.midnight(start.year, month, days[1]) + timedelta(days=1)
    return Found(start, end, "day", after, relative)


def _valid(reader: Reader, month: int, day: int) -> list[datetime]:
    """The day in the years around the anchor; a 29 February is not in each."""
    years = range(reader.anchor.year - 8, reader.anchor.year + 9)
    if (month, day) != (2, 29):
        return [reader.midnight(year, month, day) for year in years[7:10]]
    return [reader.midnight(year, month, day) for year in years if isleap(year)]


def _year(reader: Reader, i: int) -> Found | None:
    year = reader.year(i)
    if year is None or not 1900 <= year <= 2100:
        return None
    start = reader.midnight(year, 1, 1)
    if reader.word(i + 1) == "s" and reader.touches(i + 1) and year % 10 == 0:
        return Found(start, moved(start, "decade", 1), "decade", i + 2, relative=False)
    runs_on = reader.touches(i + 1) and reader.word(i + 1) not in ".,;:!?)"
    if reader.touches(i) or runs_on or reader.word(i - 1) not in BEFORE_A_YEAR:
        return None
    return Found(start, moved(start, "year", 1), "year", i + 1, relative=False)


def quarter(reader: Reader, i: int) -> Found | None:
    """Q3 2024, or Q3 alone."""
    number = reader.number(i + 1, 1)
    if number is None or not 1 <= number <= 4 or not reader.touches(i + 1) or reader.touches(i):
        return None
    month = number * 3 - 2
    year = reader.year(i + 2)
    if year is None:
        start = reader.choose(
            [reader.midnight(reader.anchor.year + step, month, 1) for step in (-1, 0, 1)]
        )
        return Found(start, moved(start, "quarter", 1), "quarter", i + 2)
    start = reader.midnight(year, month, 1)
    return Found(start, moved(start, "quarter", 1), "quarter", i + 3, relative=False)


def season(reader: Reader, i: int) -> Found | None:
    """Summer 2022; a winter is named after the year it begins in."""
    at = i + 1 + (reader.word(i + 1) == "of")
    year = reader.year(at)
    if year is None:
        return None
    start = reader.midnight(year, SEASON[reader.word(i)], 1)
    return Found(start, moved(start, "quarter", 1), "season", at + 1, relative=False)
