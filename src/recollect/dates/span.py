"""A time that a text speaks of, and its words."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from recollect.dates.names import MONTHS, WEEKDAYS

Granularity = Literal[
    "minute", "hour", "part", "day", "week", "month", "quarter", "season", "year", "decade"
]
Bound = Literal["", "since", "after", "before", "until"]


class TimeSpan(NamedTuple):
    """A time a text speaks of: from ``start`` up to, not including, ``end``.

    ``text`` was found ``at`` that position; ``relative`` ones depend on the anchor;
    ``bound`` says that the text means what lies since, after, before or until it;
    ``confidence`` is below 1 where the words are vague ("recently").
    """

    start: datetime
    end: datetime
    text: str
    granularity: Granularity
    at: int = 0
    relative: bool = False
    bound: Bound = ""
    confidence: float = 1.0

    def window(self) -> tuple[datetime, datetime]:
        """The time that is meant, the bound taken into account."""
        return bounded(self.start, self.end, self.bound)


def bounded(start: datetime, end: datetime, bound: Bound) -> tuple[datetime, datetime]:
    """What lies since, after, before or until a time; without a bound, the time itself."""
    first = datetime.min.replace(tzinfo=start.tzinfo)
    last = datetime.max.replace(tzinfo=start.tzinfo)
    if bound == "since":
        return start, last
    if bound == "after":
        return end, last
    if bound == "before":
        return first, start
    if bound == "until":
        return first, end
    return start, end


def date_words(start: datetime, granularity: Granularity = "day") -> str:
    """A time as words to be found by: ``2023-05-07 7 may 2023 sunday``."""
    year = f"{start.year:04}"
    month = MONTHS[start.month - 1]
    if granularity in ("year", "decade"):
        return year
    if granularity in ("week", "month", "quarter", "season"):
        return f"{year}-{start.month:02} {month} {year}"
    weekday = WEEKDAYS[start.weekday()]
    return f"{year}-{start.month:02}-{start.day:02} {start.day} {month} {year} {weekday}"
