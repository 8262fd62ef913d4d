"""A text cut into words, the anchor to count from, and what a rule gives back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal, NamedTuple

from recollect.dates.span import Granularity

Lean = Literal["nearest", "past"]
Cycle = Literal["", "day", "week", "year"]
Place = tuple[int, int]

TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")


class Found(NamedTuple):
    """A time read from the words up to, not including, ``next``.

    ``cycle`` says which longer unit the words left open: a weekday comes every week,
    a month every year.
    """

    start: datetime
    end: datetime
    granularity: Granularity
    next: int
    relative: bool = True
    cycle: Cycle = ""
    confidence: float = 1.0


class Reading(NamedTuple):
    """How a text is to be read: from when, towards the past, guesses and all; whether
    days come before months, and whether spaces part its words."""

    anchor: datetime
    lean: Lean = "nearest"
    vague: bool = False
    day_first: bool = False
    spaced: bool = True


@dataclass(frozen=True)
class Reader:
    """What every rule reads from: words, numbers and signs, in English and lower case.

    ``places`` says where each word stands, for texts that were put into English.
    """

    text: str
    words: tuple[str, ...]
    how: Reading
    places: tuple[Place, ...] | None = None

    @classmethod
    def of(cls, text: str, how: Reading) -> Reader:
        return cls(text, tuple([word.lower() for word in TOKEN.findall(text)]), how)

    @cached_property
    def spans(self) -> tuple[Place, ...]:
        """Where each word stands; only asked for once a time seems to be there."""
        if self.places is not None:
            return self.places
        return tuple([match.span() for match in TOKEN.finditer(self.text)])

    @property
    def anchor(self) -> datetime:
        return self.how.anchor

    @property
    def today(self) -> datetime:
        return self.how.anchor.replace(hour=0, minute=0, second=0, microsecond=0)

    def word(self, i: int) -> str:
        """The word at a place; empty before the first and after the last."""
        return self.words[i] if 0 <= i < len(self.words) else ""

    def number(self, i: int, digits: int) -> int | None:
        """The number at a place, if it has at most so many digits."""
        word = self.word(i)
        return int(word) if 0 < len(word) <= digits and word.isdecimal() else None

    def year(self, i: int) -> int | None:
        """The four-digit year at a place."""
        number = self.number(i, 4)
        return number if number is not None and number >= 1000 else None

    def touches(self, i: int) -> bool:
        """Whether no space stands between this word and the one before."""
        return 0 < i < len(self.words) and self.spans[i - 1][1] == self.spans[i][0]

    def same_line(self, i: int) -> bool:
        """Whether no new line stands between this word and the one before."""
        if not 0 < i < len(self.words):
            return False
        return "\n" not in self.text[self.spans[i - 1][1] : self.spans[i][0]]

    def after(self, position: int, start: int) -> int:
        """The first word from ``start`` on that begins at or behind a position."""
        while start < len(self.words) and self.spans[start][0] < position:
            start += 1
        return start

    def midnight(self, year: int, month: int, day: int) -> datetime:
        return datetime(year, month, day, tzinfo=self.anchor.tzinfo)

    def day(self, start: datetime, after: int, *, relative: bool = True) -> Found:
        """The whole day that begins then."""
        return Found(start, start + timedelta(days=1), "day", after, relative)

    def years_around(self, reach: int = 1) -> range:
        """The years in which something may lie whose year was left out."""
        return range(self.anchor.year - reach, self.anchor.year + reach + 1)

    def choose(self, candidates: list[datetime]) -> datetime:
        """The one meant when a text leaves the year out."""
        begun = [start for start in candidates if start <= self.anchor]
        if self.how.lean == "past" and begun:
            return max(begun)
        return min(candidates, key=lambda start: (abs(start - self.anchor), start))
