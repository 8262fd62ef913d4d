"""Rules for a part of a longer time: early 2024, end of last month, first week of June."""

from __future__ import annotations

from datetime import timedelta

from recollect.dates import counted
from recollect.dates.absolute import span_of_year
from recollect.dates.counted import unit_away
from recollect.dates.names import HALF, MONTH, ORDINAL, THIRD, UNIT, WEEKDAY
from recollect.dates.reader import Found, Reader
from recollect.dates.rules import simple_date
from recollect.dates.span import Granularity
from recollect.dates.units import GRANULARITY, begin, moved, third

_DAY = timedelta(days=1)
_PICKED = frozenset({"day", "week", "month", "quarter", "year"})


def third_of(reader: Reader, i: int) -> Found | None:
    """Early 2024, mid-March, the end of last month, the beginning of the year."""
    at = i + 1 + (reader.word(i + 1) in ("-", "in"))
    of = reader.word(at) == "of"
    if reader.word(at) == "the" and not (of or reader.word(i) in ("early", "mid", "late")):
        return None  # "start the day"
    whole = _whole(reader, at + of)
    if whole is None or whole.confidence < 1:
        return None
    start, end = third(whole.start, whole.end, whole.granularity, THIRD[reader.word(i)])
    return whole._replace(start=start, end=end)


def _whole(reader: Reader, at: int) -> Found | None:
    """The time a part is taken of: a date, or "the month"."""
    if reader.word(at) == "the" and reader.word(at + 1) in ("week", "month", "year"):
        return unit_away(reader, reader.word(at + 1), 0, at + 2)
    at += reader.word(at) == "the"
    year = reader.year(at)
    if year is not None and reader.word(at + 1) != "s" and 1900 <= year <= 2100:
        start = reader.midnight(year, 1, 1)
        return Found(start, moved(start, "year", 1), "year", at + 1, relative=False)
    return simple_date(reader, at)


def ordinal(reader: Reader, i: int) -> Found | None:
    """The first week of June, the last Friday of May, the second half of 2023."""
    word = reader.word(i)
    at = i + 1
    if reader.number(i, 1) is not None:  # 1st, 2nd
        word, at = f"{word}{reader.word(at)}", at + 1
    number = ORDINAL.get(word)
    what = reader.word(at)
    if number is None:
        return None
    if what == "quarter" and 1 <= number <= 4:
        return _quarter(reader, number, at + 1)
    many = counted.number(reader, at)
    if many is not None and abs(number) == 1:
        return _several(reader, (many[0], number), many[2])
    if what == "of" and reader.word(at + 1) in MONTH and number > 0:
        what, at = "day", at - 1  # the first of May
    whole = _whole(reader, at + 2) if reader.word(at + 1) in ("of", "in") else None
    picked = what in UNIT or what in WEEKDAY or what == "half"
    if whole is None or not picked or whole.end - whole.start < 6 * _DAY:
        return None
    return _pick(whole, what, number)


def _several(reader: Reader, counts: tuple[int, int], at: int) -> Found | None:
    """The first three months of 2024, the last two days of May."""
    unit = UNIT.get(reader.word(at))
    if unit not in _PICKED or reader.word(at + 1) not in ("of", "in"):
        return None
    whole = _whole(reader, at + 2)
    if whole is None:
        return None
    count, number = counts
    if number > 0:
        return _inside(whole, whole._replace(end=min(moved(whole.start, unit, count), whole.end)))
    return _inside(whole, whole._replace(start=moved(whole.end, unit, -count)))


def _quarter(reader: Reader, number: int, after: int) -> Found | None:
    found = span_of_year(reader, (number, 3), after)
    # "the third quarter" alone may be a game's; a question is given the benefit.
    return found if found and (not found.cycle or reader.how.vague) else None


def _pick(whole: Found, what: str, number: int) -> Found | None:
    if what == "half":
        middle = begin(whole.start + (whole.end - whole.start) / 2, "day")
        if whole.granularity == "year":
            middle = moved(whole.start, "month", 6)
        first = HALF["last" if number < 0 else "first" if number == 1 else "second"] == 0
        return whole._replace(start=whole.start if first else middle,
                              end=middle if first else whole.end)  # fmt: skip
    if what in WEEKDAY or what == "weekend":
        return _weekday(whole, WEEKDAY.get(what, 5), number, 2 if what == "weekend" else 1)
    unit = UNIT[what]
    if unit not in _PICKED:
        return None
    if number < 0:
        start, end = moved(whole.end, unit, -1), whole.end
    else:
        start = moved(whole.start, unit, number - 1)
        end = min(moved(start, unit, 1), whole.end)
    return _inside(whole, whole._replace(start=start, end=end, granularity=_named(unit)))


def _weekday(whole: Found, weekday: int, number: int, days: int) -> Found | None:
    if number > 0:
        ahead = (weekday - whole.start.weekday()) % 7
        start = whole.start + timedelta(days=ahead + 7 * (number - 1))
    else:
        last = whole.end - _DAY
        start = last - timedelta(days=(last.weekday() - weekday) % 7)
    found = whole._replace(start=start, end=start + timedelta(days=days), granularity="day")
    return _inside(whole, found)


def _inside(whole: Found, found: Found) -> Found | None:
    return found if whole.start <= found.start < whole.end and found.start < found.end else None


def _named(unit: str) -> Granularity:
    return GRANULARITY.get(unit, "day")
