"""Which rule reads the time that begins at a word."""

from __future__ import annotations

from collections.abc import Callable

from recollect.dates import absolute, counted, holidays, relative
from recollect.dates.names import (
    DECADE,
    LAST,
    MONTH,
    NEXT,
    NUMBER,
    SEASON,
    SHORT_WEEKDAY,
    VAGUE,
    WEEKDAY,
)
from recollect.dates.reader import Found, Reader

Rule = Callable[[Reader, int], Found | None]


def _season(reader: Reader, i: int) -> Found | None:
    return relative.beyond(reader, i) or absolute.season(reader, i)


SIMPLE: dict[str, Rule] = {
    **dict.fromkeys(holidays.STARTS, holidays.holiday),
    **dict.fromkeys(MONTH, absolute.month_name),
    **dict.fromkeys(SEASON, _season),
    **dict.fromkeys(DECADE, absolute.decade_name),
    **dict.fromkeys([*WEEKDAY, *SHORT_WEEKDAY], relative.weekday),
    **dict.fromkeys(("yesterday", "today", "tomorrow"), relative.near_day),
    **dict.fromkeys(("earlier", "later"), relative.so_far),
    **dict.fromkeys([*LAST, *NEXT, "this"], relative.pointed),
    **dict.fromkeys([*NUMBER, *VAGUE, "half"], counted.amount),
    **dict.fromkeys(("day", "week", "weekend", "month", "year", "night"), relative.beyond),
    **dict.fromkeys(("recently", "lately", "recent", "nowadays"), counted.recently),
    **dict.fromkeys(("other", "these"), counted.other_day),
    "tonight": relative.tonight,
    "overnight": relative.overnight,
    "q": absolute.quarter,
    "h": absolute.quarter,
}


def simple_date(reader: Reader, i: int) -> Found | None:
    """A date that is no part of another and has no time of day."""
    word = reader.word(i)
    if word[:1].isdecimal():
        return absolute.number_date(reader, i) or counted.amount(reader, i)
    rule = SIMPLE.get(word)
    return rule(reader, i) if rule else None
