"""A text cut into words, the anchor to count from, and what a rule gives back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal, NamedTuple

from recollect.dates.span import Granularity

Lean = Literal["nearest", "past"]

_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")


class Found(NamedTuple):
    """A time read from the words up to, not including, ``next``."""

    start: datetime
    end: datetime
    granularity: Granularity
    next: int
    relative: bool = True


@dataclass(frozen=True)
class Reader:
    """What every rule reads from: words, numbers and signs, in lower case."""

    text: str
    words: tuple[str, ...]
    anchor: datetime
    lean: Lean

    @classmethod
    def of(cls, text: str, anchor: datetime, lean: Lean) -> Reader:
        words = [word.lower() for word in _TOKEN.findall(text)]
        return cls(text, tuple(words), anchor, lean)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Where each word stands; only asked for once a time seems to be there."""
        return [match.span() for match in _TOKEN.finditer(self.text)]

    @property
    def today(self) -> datetime:
        return self.anchor.replace(hour=0, minute=0, second=0, microsecond=0)

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

    def choose(self, candidates: list[datetime]) -> datetime:
        """The one meant when a text leaves the year out."""
        begun = [start for start in candidates if start <= self.anchor]
        if self.lean == "past" and begun:
            return max(begun)
        return min(candidates, key=lambda start: (abs(start - self.anchor), start))
