"""Tokens, English time words, spans and calendar arithmetic used by every date rule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.lang.words import MONTHS, WEEKDAYS

DAY_S = 86_400.0


MONTH = {name: number for number, name in enumerate(MONTHS, 1)}
MONTH |= {name[:3]: number for name, number in MONTH.items()} | {"sept": 9}
WEEKDAY = {name: number for number, name in enumerate(WEEKDAYS)}
# Short names; those that are ordinary words, too, need a date after them.
SHORT_WEEKDAY = {"tue": 1, "tues": 1, "thu": 3, "thur": 3, "thurs": 3, "fri": 4}
WEEKDAY_STARTS = (*WEEKDAY, *SHORT_WEEKDAY, "mon", "wed", "sat", "sun")
SEASON = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
# Hours of the day; a night ends on the next morning.
DAY_PART = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 23), "night": (18, 30)}
DAY_PART |= {"lunchtime": (11, 14), "overnight": (18, 30)}
ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70}
TENS |= {"eighty": 80, "ninety": 90}
NUMBER = {"a": 1, "an": 1} | {name: number for number, name in enumerate(ONES, 1)} | TENS
NUMBER |= {"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14}
NUMBER |= {"fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19}
NUMBER |= {"dozen": 12, "hundred": 100}
VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 8)}
ORDINAL = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
ORDINAL |= {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "last": -1, "final": -1}
ORDINAL_ENDS = ("st", "nd", "rd", "th")

UNIT = {name: name for name in ("minute", "hour", "day", "week", "month", "quarter", "year")}
UNIT |= {f"{name}s": name for name in UNIT} | {"decade": "decade", "decades": "decade"}
UNIT |= {"weekend": "weekend", "weekends": "weekend"}
UNIT |= {"fortnight": "fortnight", "fortnights": "fortnight"}
UNIT |= {"min": "minute", "mins": "minute", "hr": "hour", "hrs": "hour", "wk": "week"}
UNIT |= {"wks": "week", "yr": "year", "yrs": "year", "night": "night", "nights": "night"}
# Only directly after a number: 24h, 7d.
SHORT_UNIT = {"h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year"}

LAST = frozenset({"last", "past", "previous"})
NEXT = frozenset({"next", "coming", "upcoming", "following"})
AGO = frozenset({"ago", "earlier", "back"})
LATER = frozenset({"later", "hence"})


def direction(word: str) -> int | None:
    """Whether a word points to the last (-1), this (0) or the next (1) of a recurring time."""
    return -1 if word in LAST else 1 if word in NEXT else 0 if word == "this" else None


# Which third of a longer time is meant.
THIRD_OF_SPAN = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
# Decades in words, of the latest century that has begun.
DECADE = {"twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60}
DECADE |= {"seventies": 70, "eighties": 80, "nineties": 90}

# "March" and "may" are verbs, a year may be any number, and a time a price: alone they need one
# of these words before them.
_BEFORE_ANY = frozenset(
    {"since", "until", "till", "before", "after", "by", "from", "around", "between", "and"}
)
_BEFORE_A_SPAN = _BEFORE_ANY | {"in", "during", "through", "throughout"} | THIRD_OF_SPAN.keys()
BEFORE_A_MONTH = _BEFORE_A_SPAN | {"of", "on"}
BEFORE_A_YEAR = (_BEFORE_A_SPAN - {"by", "around"}) | {"year", "to"}
BEFORE_A_TIME = _BEFORE_ANY | {"at", "to", "about"}
BEFORE_A_SEASON = frozenset({"in", "over", "during", "since", "until", "before", "after", "last"})

Granularity = Literal[
    "minute", "hour", "part", "day", "week", "month", "quarter", "season", "year", "decade"
]
Bound = Literal["", "since", "after", "before", "until"]


class TimeSpan(NamedTuple):
    """A time in a text: from ``start`` up to, not including, ``end``.

    ``text`` was found at position ``at``; ``relative`` ones depend on the anchor; ``bound``
    says that the text means the time since, after, before or until it; ``confidence`` is
    below 1 where the words are vague ("recently").
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
        """The time meant, with the bound applied."""
        return apply_bound(self.start, self.end, self.bound)


def apply_bound(start: datetime, end: datetime, bound: Bound) -> tuple[datetime, datetime]:
    """The time since, after, before or until a span; without a bound, the span itself."""
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
    """A time as search terms: ``2023-05-07 7 may 2023 sunday``."""
    year = f"{start.year:04}"
    month = MONTHS[start.month - 1]
    if granularity in ("year", "decade"):
        return year
    if granularity in ("week", "month", "quarter", "season"):
        return f"{year}-{start.month:02} {month} {year}"
    weekday = WEEKDAYS[start.weekday()]
    return f"{year}-{start.month:02}-{start.day:02} {start.day} {month} {year} {weekday}"


_UNIT_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_UNIT_LENGTH = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "night": timedelta(days=1),
    "week": timedelta(weeks=1),
    "weekend": timedelta(weeks=1),
    "fortnight": timedelta(weeks=2),
}
_START_OF_UNIT: dict[str, Callable[[datetime], datetime]] = {
    "week": lambda day: day - timedelta(days=day.weekday()),
    "weekend": lambda day: day + timedelta(days=5 - day.weekday()),
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "year": lambda day: day.replace(month=1, day=1),
    "decade": lambda day: day.replace(year=day.year // 10 * 10, month=1, day=1),
}
GRANULARITY: dict[str, Granularity] = {
    "second": "minute",
    "minute": "minute",
    "hour": "hour",
    "week": "week",
    "fortnight": "week",
    "month": "month",
    "quarter": "quarter",
    "year": "year",
    "decade": "decade",
}
# Where the beginning, the middle and the end of a longer time lie: offsets from its
# start, counted in a smaller unit. The last one reaches to the end, however long it is.
_THIRDS: dict[Granularity, tuple[str, tuple[int, int, int, int]]] = {
    "day": ("hour", (0, 10, 16, 24)),
    "week": ("day", (0, 3, 4, 7)),
    "month": ("day", (0, 10, 20, 31)),
    "quarter": ("month", (0, 1, 2, 3)),
    "season": ("month", (0, 1, 2, 3)),
    "year": ("month", (0, 4, 8, 12)),
    "decade": ("year", (0, 4, 7, 10)),
}


def start_of(moment: datetime, unit: str) -> datetime:
    """The start of the unit that contains this moment."""
    if unit == "second":
        return moment.replace(microsecond=0)
    if unit == "minute":
        return moment.replace(second=0, microsecond=0)
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return _START_OF_UNIT[unit](day) if unit in _START_OF_UNIT else day


def add_units(moment: datetime, unit: str, count: int) -> datetime:
    """Add so many units; the day of the month is clamped where a month is shorter."""
    if unit not in _UNIT_MONTHS:
        return moment + count * _UNIT_LENGTH[unit]
    index = moment.year * 12 + moment.month - 1 + count * _UNIT_MONTHS[unit]
    first = moment.replace(year=index // 12, month=index % 12 + 1, day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return first.replace(day=min(moment.day, last.day))


def third_of_span(
    start: datetime, end: datetime, granularity: Granularity, which: int
) -> tuple[datetime, datetime]:
    """The beginning (0), middle (1) or end (2) of a span; short ones are left whole."""
    if granularity not in _THIRDS:
        return start, end
    unit, cuts = _THIRDS[granularity]
    last = end if which == 2 else add_units(start, unit, cuts[which + 1])
    return add_units(start, unit, cuts[which]), last


Lean = Literal["nearest", "past"]
Cycle = Literal["", "day", "week", "year"]
CharSpan = tuple[int, int]

TOKEN = lazy_pattern(r"[^\W\d_]+|\d+|[^\w\s]")


class ParsedTime(NamedTuple):
    """A time parsed from the words up to, not including, ``next``.

    ``cycle`` says which longer unit the words left open: a weekday recurs every week, a
    month every year.
    """

    start: datetime
    end: datetime
    granularity: Granularity
    next: int
    relative: bool = True
    cycle: Cycle = ""
    confidence: float = 1.0


class ReadOptions(NamedTuple):
    """Options for parsing: anchor, lean to the past, vague times, day before month, spaces."""

    anchor: datetime
    lean: Lean = "nearest"
    vague: bool = False
    day_first: bool = False
    spaced: bool = True


class TokenReader:
    """The tokens every rule reads: words, numbers and signs, in English and lower case.

    ``places`` holds the position of each word, for texts that were translated to English.
    """

    def __init__(
        self,
        text: str,
        words: tuple[str, ...],
        options: ReadOptions,
        places: tuple[CharSpan, ...] | None = None,
    ) -> None:
        self.text, self.words, self.options, self.places = text, words, options, places
        self.anchor = options.anchor

    @classmethod
    def from_text(cls, text: str, options: ReadOptions) -> TokenReader:
        if text.isascii():
            return cls(text, tuple(TOKEN.findall(text.lower())), options)
        # Lower case may be longer, and split otherwise.
        return cls(text, tuple([word.lower() for word in TOKEN.findall(text)]), options)

    @cached_property
    def spans(self) -> tuple[CharSpan, ...]:
        """Positions of the words in the text; computed only when a time may be present."""
        if self.places is not None:
            return self.places
        return tuple([match.span() for match in TOKEN.finditer(self.text)])

    @property
    def today(self) -> datetime:
        return self.options.anchor.replace(hour=0, minute=0, second=0, microsecond=0)

    def word(self, i: int) -> str:
        """The word at an index; empty outside the text."""
        return self.words[i] if 0 <= i < len(self.words) else ""

    def number(self, i: int, digits: int) -> int | None:
        """The number at an index, if it has at most so many digits."""
        word = self.word(i)
        return int(word) if 0 < len(word) <= digits and word.isdecimal() else None

    def year(self, i: int) -> int | None:
        """The four-digit year at an index."""
        number = self.number(i, 4)
        return number if number is not None and number >= 1000 else None

    def touches(self, i: int) -> bool:
        """Whether there is no space between this word and the one before."""
        return 0 < i < len(self.words) and self.spans[i - 1][1] == self.spans[i][0]

    def same_line(self, i: int) -> bool:
        """Whether there is no line break between this word and the one before."""
        if not 0 < i < len(self.words):
            return False
        return "\n" not in self.text[self.spans[i - 1][1] : self.spans[i][0]]

    def after(self, position: int, start: int) -> int:
        """The first word from ``start`` on that begins at or after a position."""
        while start < len(self.words) and self.spans[start][0] < position:
            start += 1
        return start

    def midnight(self, year: int, month: int, day: int) -> datetime:
        return datetime(year, month, day, tzinfo=self.anchor.tzinfo)

    def day(self, start: datetime, after: int, *, relative: bool = True) -> ParsedTime:
        """The whole day that begins at ``start``."""
        return ParsedTime(start, start + timedelta(days=1), "day", after, relative)

    def years_around(self, reach: int = 1) -> range:
        """The years to consider for a date without a year."""
        return range(self.anchor.year - reach, self.anchor.year + reach + 1)

    def choose(self, candidates: list[datetime]) -> datetime:
        """Choose the candidate meant by a date without a year."""
        past = [start for start in candidates if start <= self.anchor]
        if self.options.lean == "past" and past:
            return max(past)
        return min(candidates, key=lambda start: (abs(start - self.anchor), start))
