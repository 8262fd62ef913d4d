"""Days that everybody knows by name: Christmas, New Year's Eve, Easter."""

from __future__ import annotations

from datetime import datetime, timedelta

from recollect.dates.absolute import year_behind
from recollect.dates.names import BEFORE_A_SEASON, LAST, NEXT
from recollect.dates.reader import Found, Reader

# Month, day and length in days of those that do not move.
_FIXED = {
    "christmas": (12, 24, 3),
    "xmas": (12, 24, 3),
    "christmas eve": (12, 24, 1),
    "christmas day": (12, 25, 1),
    "boxing day": (12, 26, 1),
    "new year": (1, 1, 1),
    "new year eve": (12, 31, 1),
    "halloween": (10, 31, 1),
    "valentine day": (2, 14, 1),
}
# Days from Easter Sunday, and length.
_BY_EASTER = {
    "easter": (-2, 4),
    "easter sunday": (0, 1),
    "easter monday": (1, 1),
    "good friday": (-2, 1),
    "pentecost": (49, 2),
}
_THANKSGIVING = {"thanksgiving": (0, 4), "black friday": (1, 1)}
STARTS = frozenset(name.split()[0] for name in (*_FIXED, *_BY_EASTER, *_THANKSGIVING))
_NAMES = _FIXED.keys() | _BY_EASTER.keys() | _THANKSGIVING.keys()
_BEFORE = BEFORE_A_SEASON | {"at", "on", "by", "around", "for", "this", "next", "past", "previous"}


def holiday(reader: Reader, i: int) -> Found | None:
    """Christmas 2023, last Easter; without a year only where a word introduces it."""
    name, after = _name(reader, i)
    if name is None:
        return None
    year = year_behind(reader, after)
    if year is not None:
        start, days = _dated(reader, name, year.number)
        return Found(start, start + timedelta(days=days), "day", year.next, year.relative)
    before = reader.word(i - 1)
    if before not in _BEFORE or not (reader.how.vague or before in LAST or before in NEXT):
        return None
    return _near(reader, name, before, after)


def _name(reader: Reader, i: int) -> tuple[str | None, int]:
    """The longest name that stands here, 's left out, and the place behind it."""
    words: list[str] = []
    best: tuple[str | None, int] = (None, i)
    at = i
    for _ in range(3):
        words.append(reader.word(at))
        at += 1
        if reader.word(at) in ("'", "’") and reader.word(at + 1) == "s":
            at += 2
        if words == ["new", "year", "day"]:
            return "new year", at
        if " ".join(words) in _NAMES:
            best = " ".join(words), at
    return best


def _near(reader: Reader, name: str, before: str, after: int) -> Found:
    around = [_dated(reader, name, year) for year in reader.years_around()]
    days = around[0][1]
    starts = [start for start, _ in around]
    if before in LAST:
        start = max(one for one in starts if one + timedelta(days=days) <= reader.anchor)
    elif before in NEXT:
        start = min(one for one in starts if one > reader.anchor)
    elif before == "this":
        start = starts[1]
    else:
        start = reader.choose(starts)
    return Found(start, start + timedelta(days=days), "day", after, cycle="year")


def _dated(reader: Reader, name: str, year: int) -> tuple[datetime, int]:
    """When the holiday begins in a year, and how many days it lasts."""
    if name in _FIXED:
        month, day, days = _FIXED[name]
        return reader.midnight(year, month, day), days
    if name in _BY_EASTER:
        shift, days = _BY_EASTER[name]
        return reader.midnight(year, *easter(year)) + timedelta(days=shift), days
    first = reader.midnight(year, 11, 1)
    shift, days = _THANKSGIVING[name]
    return first + timedelta(days=(3 - first.weekday()) % 7 + 21 + shift), days


def easter(year: int) -> tuple[int, int]:
    """Month and day of Easter Sunday in the Gregorian calendar (Oudin's method)."""
    golden = year % 19
    century = year // 100
    moon = (century - century // 4 - (8 * century + 13) // 25 + 19 * golden + 15) % 30
    moon -= moon // 28 * (1 - moon // 28 * (29 // (moon + 1)) * ((21 - golden) // 11))
    weekday = (year + year // 4 + moon + 2 - century + century // 4) % 7
    days = moon - weekday
    month = 3 + (days + 40) // 44
    return month, days + 28 - 31 * (month // 4)
