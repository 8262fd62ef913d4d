"""Times of day: 14:30, 3 pm, noon, after lunch, and the date they stand beside."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from recollect.dates.names import BEFORE_A_TIME, MEAL, PART
from recollect.dates.reader import Found, Reader
from recollect.dates.span import Granularity

_NAMED = {"noon": 12, "midday": 12, "midnight": 0}
_LENGTH = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_ONE_DAY = timedelta(days=1)
_NEAR = ("at", "around", "about", "by", "@")
_MEAL_SIDE = {"before": 0, "at": 1, "over": 1, "during": 1, "around": 1, "after": 2}


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
    minute, at, struck = _minute(reader, i + 1)
    half, after = _half(reader, at)
    if half is not None and 1 <= hour <= 12:
        hour = hour % 12 + half
    elif half is not None or (minute is None and not struck):
        return None
    if hour > 23 or (minute or 0) > 59 or _runs_on(reader, after):
        return None
    introduced = reader.word(i - 1) in BEFORE_A_TIME
    sure = half is not None or struck or introduced or len(word) == 2
    granularity: Granularity = "hour" if minute is None else "minute"
    return Clock(timedelta(hours=hour, minutes=minute or 0), granularity, after, sure)


def _minute(reader: Reader, i: int) -> tuple[int | None, int, bool]:
    """The minutes, the place behind, and whether an o'clock says that it is a time."""
    if reader.word(i) == "oclock":
        short = len(reader.word(i + 1)) == 2
        minute = reader.number(i + 1, 2) if short else None
        return minute, i + 1 + (minute is not None), True
    if reader.word(i) == "o" and reader.word(i + 2) == "clock":
        return None, i + 3, True
    if not _part_follows(reader, i):
        return None, i, False
    seconds = _part_follows(reader, i + 2)
    at = i + (4 if seconds else 2)
    return reader.number(i + 1, 2), at + (reader.word(at) == "oclock"), False


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
    if not reader.touches(i) or not reader.how.spaced:
        return False
    return reader.word(i)[0].isalnum() or reader.word(i) in ":/%"


def before_date(reader: Reader, time: Clock, dated: Found | None) -> Found | None:
    """A time of day with the date that follows, else of the anchor's day."""
    if dated and _is_one_day(dated):
        return _at(dated, time, dated.next)
    if not time.sure:
        return None
    return _at(reader.day(reader.today, time.next), time, time.next)._replace(cycle="day")


def after_date(reader: Reader, dated: Found) -> Found:
    """A day with the time of day that follows it, if one does."""
    if not _is_one_day(dated):
        return dated
    at = dated.next + (reader.word(dated.next) == ",")
    # French says "à" for "at" and for "to".
    near = reader.word(at) in _NEAR or (reader.word(at) == "to" and reader.places is not None)
    time = clock(reader, at + near)
    if time:
        return _at(dated, time, time.next)
    if hours := meal_hours(reader, at):
        return _within(dated, hours, at + 2)
    if (reader.word(at), reader.word(at + 1)) in (("in", "the"), ("at", "the")):
        at += 2
    at += reader.word(at) == "at" and reader.word(at + 1) in PART
    if reader.word(at) in PART:
        return _within(dated, PART[reader.word(at)], at + 1)
    return dated


def meal_hours(reader: Reader, i: int) -> tuple[int, int] | None:
    """The hours that "after lunch" stands for."""
    side = _MEAL_SIDE.get(reader.word(i))
    meal = MEAL.get(reader.word(i + 1))
    return None if side is None or meal is None else meal[side]


def meal(reader: Reader, i: int, dated: Found | None) -> Found | None:
    """After lunch yesterday; after lunch alone is today's, if a question says so."""
    hours = meal_hours(reader, i)
    if hours is None:
        return None
    if dated and _is_one_day(dated):
        return _within(dated, hours, dated.next)
    if not reader.how.vague or reader.word(i + 1) == "work":
        return None
    return _within(reader.day(reader.today, i + 2), hours, i + 2)


def part_of_date(reader: Reader, i: int, dated: Found | None) -> Found | None:
    """The morning of 8 May."""
    if dated is None or not _is_one_day(dated):
        return None
    return _within(dated, PART[reader.word(i)], dated.next)


def _is_one_day(dated: Found) -> bool:
    return dated.granularity == "day" and dated.end - dated.start == _ONE_DAY


def _within(dated: Found, hours: tuple[int, int], after: int) -> Found:
    first, last = (dated.start + timedelta(hours=hour) for hour in hours)
    return Found(first, last, "part", after, dated.relative, dated.cycle)


def _at(dated: Found, time: Clock, after: int) -> Found:
    start = dated.start + time.offset
    end = start + _LENGTH[time.granularity]
    return Found(start, end, time.granularity, after, dated.relative, dated.cycle)
