"""Rules for times counted from the anchor: two weeks ago, the last three days, recently."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from recollect.dates.absolute import day_behind
from recollect.dates.names import (
    AGO,
    LATER,
    NUMBER,
    ONES,
    PART,
    SHORT_UNIT,
    TENS,
    UNIT,
    VAGUE,
    WEEKDAY,
)
from recollect.dates.reader import Found, Reader
from recollect.dates.units import GRANULARITY, begin, moved

_UNSURE = 0.7
_SECONDS = ("second", "seconds", "sec", "secs")
COUNTED = UNIT | {f"{day}s": f"{day}s" for day in WEEKDAY} | dict.fromkeys(_SECONDS, "second")
_BEHIND_A_COUNT = COUNTED.keys() | VAGUE.keys() | SHORT_UNIT.keys() | {"of", "-", "and", "dozen"}
_HALVES = {"year": ("month", 6), "hour": ("minute", 30), "decade": ("year", 5), "day": ("hour", 12)}
_HALVES |= {"month": ("day", 15)}
# Days from the anchor's day: first, and the one behind the last.
_RECENT = {"recently": (-7, 1), "lately": (-7, 1), "recent": (-7, 1), "nowadays": (-30, 1)}


class Amount(NamedTuple):
    """From ``fewest`` to ``most`` units, up to word ``next``."""

    fewest: int
    most: int
    unit: str
    next: int


def unit_away(reader: Reader, unit: str, count: int, after: int) -> Found:
    """The whole unit that lies so many units from the anchor's own."""
    if unit == "night":
        day = reader.today + timedelta(days=count)
        first, last = (day + timedelta(hours=hour) for hour in PART["night"])
        return Found(first, last, "part", after)
    if unit == "fortnight":
        unit, count = "week", count * 2
    start = moved(begin(reader.anchor, unit), unit, count)
    if unit == "weekend":
        return Found(start, start + timedelta(days=2), "day", after)
    return Found(start, moved(start, unit, 1), GRANULARITY.get(unit, "day"), after)


def number(reader: Reader, i: int) -> tuple[int, int, int] | None:
    """Fewest, most and the place behind: "3", "twenty-one", "a couple of", "a few"."""
    at = i + (reader.word(i) == "a" and reader.word(i + 1) in VAGUE.keys() | {"dozen"})
    if reader.word(at) in VAGUE:
        fewest, most = VAGUE[reader.word(at)]
        return fewest, most, at + 1 + (reader.word(at + 1) == "of")
    if reader.word(at) in TENS:
        ones = at + 1 + (reader.word(at + 1) == "-")
        if reader.word(ones) in ONES:
            both = TENS[reader.word(at)] + NUMBER[reader.word(ones)]
            return both, both, ones + 1
    figure = reader.number(at, 4)
    if figure is None:
        figure = NUMBER.get(reader.word(at))
    return None if figure is None else (figure, figure, at + 1)


def _amount(reader: Reader, i: int) -> Amount | None:
    """Three days, 24h, half a year, a year and a half, one and a half years."""
    if reader.word(i) == "half":
        at = i + 1 + (reader.word(i + 1) in ("a", "an"))
        half = _HALVES.get(UNIT.get(reader.word(at), ""))
        return Amount(half[1], half[1], half[0], at + 1) if half else None
    count = number(reader, i)
    if count is None:
        return None
    fewest, most, at = count
    halved = (reader.word(at), reader.word(at + 1), reader.word(at + 2)) == ("and", "a", "half")
    at += 3 if halved else reader.word(at) == "-"
    unit = COUNTED.get(reader.word(at))
    if unit is None and reader.touches(at) and reader.number(i, 4) is not None:
        unit = SHORT_UNIT.get(reader.word(at))
    if unit is None:
        return None
    words = (reader.word(at + 1), reader.word(at + 2), reader.word(at + 3))
    if halved or words == ("and", "a", "half"):
        after = at + 1 if halved else at + 4
        if unit not in _HALVES:
            return None
        smaller, extra = _HALVES[unit]
        whole = 2 * extra * fewest + extra
        return Amount(whole, whole, smaller, after)
    return Amount(fewest, most, unit, at + 1)


def amount(reader: Reader, i: int) -> Found | None:
    """Three days ago, in two weeks, a month later, two Fridays ago, two days before 8 May."""
    # Most of all the many words "a" need not be looked at any further.
    likely = reader.word(i + 1) in _BEHIND_A_COUNT or reader.word(i) == "half"
    counted = _amount(reader, i) if likely else None
    if counted is None:
        return None
    if counted.unit.removesuffix("s") in WEEKDAY:
        return _weekdays_ago(reader, counted)
    fewest, most, unit, at = counted
    following = reader.word(at)
    if following in AGO:
        return _between(reader, unit, (-most, -fewest), at + 1)
    if following in ("before", "after"):
        return _from_a_date(reader, counted)
    from_now = following == "from" and reader.word(at + 1) in ("now", "today")
    ahead = reader.word(i - 1) == "in" and reader.word(at - 1) not in SHORT_UNIT  # "in 3D"
    if not (following in LATER or from_now or ahead):
        return None
    return _between(reader, unit, (fewest, most), at + (2 if from_now else following in LATER))


def _from_a_date(reader: Reader, counted: Amount) -> Found | None:
    """Two weeks before 8 May 2023."""
    fewest, most, unit, at = counted
    dated = day_behind(reader, at + 1)
    if dated is None:
        return None
    there = Reader(reader.text, reader.words, reader.how._replace(anchor=dated.start))
    counts = (-most, -fewest) if reader.word(at) == "before" else (fewest, most)
    return _between(there, unit, counts, dated.next)._replace(relative=dated.relative)


def _between(reader: Reader, unit: str, counts: tuple[int, int], after: int) -> Found:
    first, last = (unit_away(reader, unit, count, after) for count in counts)
    return first._replace(end=last.end)


def _weekdays_ago(reader: Reader, counted: Amount) -> Found | None:
    if reader.word(counted.next) not in AGO:
        return None
    weekday = WEEKDAY[counted.unit.removesuffix("s")]
    back = (reader.today.weekday() - weekday - 1) % 7 + 1
    day = reader.today - timedelta(days=back + 7 * (counted.fewest - 1))
    return reader.day(day, counted.next + 1)


def stretch(reader: Reader, i: int, step: int) -> Found | None:
    """(The last) three days, few weeks: up to the anchor, or on from it."""
    unit = UNIT.get(reader.word(i))
    counted = Amount(1, 1, unit, i + 1) if unit else _amount(reader, i)
    if counted is None or counted.unit.removesuffix("s") in WEEKDAY or counted.unit == "night":
        return None
    if step < 0:
        return _up_to_now(reader, counted)
    this, end = _now(reader, counted.unit)
    granularity = GRANULARITY.get(counted.unit, "day")
    return Found(this, moved(end, _stepped(counted.unit), counted.most), granularity, counted.next)


def _up_to_now(reader: Reader, counted: Amount) -> Found:
    """So many units that end with the anchor's own day, minute or second."""
    _, count, unit, after = counted
    granularity = GRANULARITY.get(unit, "day")
    if (unit, count) == ("day", 1):
        unit, count = "hour", 24
    _, end = _now(reader, unit)
    return Found(moved(end, _stepped(unit), -count), end, granularity, after)


def _stepped(unit: str) -> str:
    return "week" if unit == "weekend" else unit


def _now(reader: Reader, unit: str) -> tuple[datetime, datetime]:
    """The day the anchor lies in; for short units its minute or second."""
    counted_in = {"minute": "minute", "hour": "minute", "second": "second"}.get(unit, "day")
    this = begin(reader.anchor, counted_in)
    return this, moved(this, counted_in, 1)


def recently(reader: Reader, i: int) -> Found | None:
    """Recently, lately, in recent weeks: a guess, and marked as one."""
    if not reader.how.vague:
        return None
    first, last = _RECENT[reader.word(i)]
    after = i + 1
    if reader.word(i) == "recent":
        unit = UNIT.get(reader.word(after))
        if unit not in ("day", "week", "month", "year") or not reader.word(after).endswith("s"):
            return None
        first, after = {"day": -4, "week": -28, "month": -92, "year": -1096}[unit], after + 1
    return _guess(reader, first, last, after)


def other_day(reader: Reader, i: int) -> Found | None:
    """The other day, these days, a while ago, just now."""
    if not reader.how.vague:
        return None
    phrases = {
        ("other", "day"): (-7, 0),
        ("other", "night"): (-7, 0),
        ("these", "days"): (-30, 1),
        ("just", "now"): (0, 1),
    }
    days = phrases.get((reader.word(i), reader.word(i + 1)))
    if days is None or (reader.word(i) == "other" and reader.word(i - 1) != "the"):
        return None
    return _guess(reader, *days, i + 2)


def _guess(reader: Reader, first: int, last: int, after: int) -> Found:
    start, end = (reader.today + timedelta(days=days) for days in (first, last))
    return Found(start, end, "day", after, confidence=_UNSURE)
