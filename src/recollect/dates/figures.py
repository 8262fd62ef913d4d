"""Rules for dates in figures: 2023-05-08, 08.05.2023, 2023-W19, 2019–2021."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from recollect.dates.names import BEFORE_A_YEAR
from recollect.dates.reader import Found, Reader
from recollect.dates.units import moved

_ENDS = r"(?![\w/-]|[.,:]\d)"
_ISO = re.compile(
    r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?" + _ENDS
)
_YEAR_WEEK = re.compile(r"(\d{4})-W(\d\d)" + _ENDS)
_YEAR_MONTH = re.compile(r"(\d{4})-(\d\d)" + _ENDS)
_YEAR_QUARTER = re.compile(r"(\d{4})[ -]?[Qq]([1-4])" + _ENDS)
_YEARS = re.compile(r"(\d{4}) ?[-–—] ?(\d{4})" + _ENDS)
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})" + _ENDS)
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})" + _ENDS)


def numeric(reader: Reader, i: int) -> Found | None:
    """A date written in figures and signs alone."""
    at = reader.spans[i][0]
    # Four digits begin a year, one or two a day or month: no text is tried by all.
    if len(reader.word(i)) == 4:
        return _year_first(reader, i, at)
    if len(reader.word(i)) > 2:
        return None
    if match := _DOTTED.match(reader.text, at):
        start = reader.midnight(int(match[3]), int(match[2]), int(match[1]))
        return reader.day(start, reader.after(match.end(), i), relative=False)
    if match := _SLASHED.match(reader.text, at):
        # In English the month comes first, unless it cannot be one.
        first, second = int(match[1]), int(match[2])
        turned = first > 12 or (reader.how.day_first and second <= 12)
        month, day = (second, first) if turned else (first, second)
        start = reader.midnight(int(match[3]), month, day)
        return reader.day(start, reader.after(match.end(), i), relative=False)
    return None


def _year_first(reader: Reader, i: int, at: int) -> Found | None:
    if match := _ISO.match(reader.text, at):
        return _iso(reader, i, match)
    if match := _YEAR_WEEK.match(reader.text, at):
        return week_of_year(reader, int(match[1]), int(match[2]), reader.after(match.end(), i))
    if match := _YEAR_QUARTER.match(reader.text, at):
        start = reader.midnight(int(match[1]), int(match[2]) * 3 - 2, 1)
        after = reader.after(match.end(), i)
        return Found(start, moved(start, "quarter", 1), "quarter", after, relative=False)
    if match := _YEAR_MONTH.match(reader.text, at):
        return month_of_year(reader, int(match[1]), int(match[2]), reader.after(match.end(), i))
    if (match := _YEARS.match(reader.text, at)) and reader.word(i - 1) in BEFORE_A_YEAR:
        start = reader.midnight(int(match[1]), 1, 1)
        end = reader.midnight(int(match[2]) + 1, 1, 1)
        if 1900 <= start.year < end.year <= 2101:
            return Found(start, end, "year", reader.after(match.end(), i), relative=False)
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


def week_of_year(reader: Reader, year: int, week: int, after: int) -> Found:
    """A week by its ISO 8601 number."""
    monday = datetime.fromisocalendar(year, week, 1)
    start = monday.replace(tzinfo=reader.anchor.tzinfo)
    return Found(start, start + timedelta(weeks=1), "week", after, relative=False)


def month_of_year(reader: Reader, year: int, month: int, after: int) -> Found:
    start = reader.midnight(year, month, 1)
    return Found(start, moved(start, "month", 1), "month", after, relative=False)
