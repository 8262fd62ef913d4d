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
    ``bound`` says that the text means what lies since, after, before or until it.
    """

    start: datetime
    end: datetime
    text: str
    granularity: Granularity
    at: int = 0
    relative: bool = False
    bound: Bound = ""

    def window(self) -> tuple[datetime, datetime]:
        """The time that is meant, the bound taken into account."""
        first = datetime.min.replace(tzinfo=self.start.tzinfo)
        last = datetime.max.replace(tzinfo=self.start.tzinfo)
        if self.bound == "since":
            return self.start, last
        if self.bound == "after":
            return self.end, last
        if self.bound == "before":
            return first, self.start
        if self.bound == "until":
            return first, self.end
        return self.start, self.end


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
