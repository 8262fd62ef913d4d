"""Times of day: 14:30, 3 pm, noon, and the date they stand beside."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from recollect.dates.names import BEFORE_A_TIME, PART
from recollect.dates.reader import Found, Reader
from recollect.dates.span import Granularity

_NAMED = {"noon": 12, "midnight": 0}
_LENGTH = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_ONE_DAY = timedelta(days=1)


class Clock(NamedTuple):
    """A time of day up to word ``next``. Unless ``sure`` it needs a date beside it."""

    offset: timedelta
    granularity: Granularity
    next: int
    sure: bool


def clock(reader: Reader, i: int) -> Clock | None:
    """The time of day that begins at this word."""
    word = reader.word(i)
    if word in _NAMED:
        sure = reader.word(i - 1) in BEFORE_A_TIME
        return Clock(timedelta(hours=_NAMED[word]), "hour", i + 1, sure)
    hour = reader.number(i, 2)
    if hour is None:
        return None
    minute, at = _minute(reader, i + 1)
    half, after = _half(reader, at)
    if half is not None and 1 <= hour <= 12:
        hour = hour % 12 + half
    elif half is not None or minute is None:
        return None
    if hour > 23 or (minute or 0) > 59 or _runs_on(reader, after):
        return None
    sure = half is not None or len(word) == 2 or reader.word(i - 1) in BEFORE_A_TIME
    granularity: Granularity = "hour" if minute is None else "minute"
    return Clock(timedelta(hours=hour, minutes=minute or 0), granularity, after, sure)


def _minute(reader: Reader, i: int) -> tuple[int | None, int]:
    if not _part_follows(reader, i):
        return None, i
    seconds = _part_follows(reader, i + 2)
    return reader.number(i + 1, 2), i + (4 if seconds else 2)


def _part_follows(reader: Reader, i: int) -> bool:
    tight = reader.touches(i) and reader.touches(i + 1)
    return tight and reader.word(i) == ":" and len(reader.word(i + 1)) == 2


def _half(reader: Reader, i: int) -> tuple[int | None, int]:
    """Hours to add for am and pm, and the place behind."""
    halves = {"am": 0, "a": 0, "pm": 12, "p": 12}
    word = reader.word(i)
    if word in ("am", "pm"):
        return halves[word], i + 1
    if word in ("a", "p") and (reader.word(i + 1), reader.word(i + 2)) == (".", "m"):
        return halves[word], i + 3 + (reader.word(i + 3) == ".")
    return None, i


def _runs_on(reader: Reader, i: int) -> bool:
    """Whether more of the same number follows, as in 12:30:45:11 or 10:20px."""
    return reader.touches(i) and (reader.word(i)[0].isalnum() or reader.word(i) in ":/%")


def before_date(reader: Reader, time: Clock, dated: Found | None) -> Found | None:
    """A time of day with the date that follows, else of the anchor's day."""
    if dated and _is_one_day(dated):
        return _at(dated, time, dated.next)
    return _at(reader.day(reader.today, time.next), time, time.next) if time.sure else None


def after_date(reader: Reader, dated: Found) -> Found:
    """A day with the time of day that follows it, if one does."""
    if not _is_one_day(dated):
        return dated
    at = dated.next + (reader.word(dated.next) == ",")
    time = clock(reader, at + (reader.word(at) in ("at", "around", "about", "by", "@")))
    if time:
        return _at(dated, time, time.next)
    if (reader.word(at), reader.word(at + 1)) == ("in", "the"):
        at += 2
    if reader.word(at) in PART:
        first, last = (timedelta(hours=hour) for hour in PART[reader.word(at)])
        return Found(dated.start + first, dated.start + last, "part", at + 1, dated.relative)
    return dated


def _is_one_day(dated: Found) -> bool:
    return dated.granularity == "day" and dated.end - dated.start == _ONE_DAY


def _at(dated: Found, time: Clock, after: int) -> Found:
    start = dated.start + time.offset
    return Found(start, start + _LENGTH[time.granularity], time.granularity, after, dated.relative)
