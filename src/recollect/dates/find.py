"""Goes through a text word by word and asks the rule for each."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from recollect.dates import absolute, clock, relative
from recollect.dates.names import (
    LAST,
    MONTH,
    NEXT,
    NUMBER,
    PART,
    SEASON,
    SHORT_WEEKDAY,
    UNIT,
    VAGUE,
    WEEKDAY,
)
from recollect.dates.reader import Found, Lean, Reader
from recollect.dates.span import Bound, TimeSpan

Rule = Callable[[Reader, int], Found | None]

_LONGEST = 1 << 16  # characters; the write walk and the read walk refuse longer texts
_MOST = 64  # times; a longer list is a table, not a text
_BOUNDS: dict[str, Bound] = {"since": "since", "after": "after", "before": "before"}
_BOUNDS |= {"until": "until", "till": "until"}

_RULES: dict[str, Rule] = {
    **dict.fromkeys(MONTH, absolute.month_name),
    **dict.fromkeys(SEASON, absolute.season),
    **dict.fromkeys([*WEEKDAY, *SHORT_WEEKDAY], relative.weekday),
    **dict.fromkeys(("yesterday", "today", "tomorrow"), relative.near_day),
    **dict.fromkeys([*LAST, *NEXT, "this"], relative.pointed),
    **dict.fromkeys([*NUMBER, *VAGUE], relative.amount),
    "day": relative.beyond,
    "tonight": relative.tonight,
    "q": absolute.quarter,
}
_STARTS = _RULES.keys() | {"noon", "midnight"}
# Without one of these words and without such figures there is no time in a text.
_TELLTALE = frozenset((_STARTS | UNIT.keys()) - NUMBER.keys() - VAGUE.keys() - {"this"})
_TELLTALE |= PART.keys()
_FIGURES = re.compile(r"\d{4}|\d:\d\d|\d ?[apAP]\.?[mM]|[qQ][1-4]")
_LETTERS = re.compile(r"[a-z]+")


def find_times(text: str, anchor: datetime, *, lean: Lean = "nearest") -> list[TimeSpan]:
    """The times a text speaks of (at most 64), in the order of the text, without overlap.

    A month or weekday without a year is the ``nearest`` one to the anchor or,
    leaning to the ``past``, the last one that has begun.
    """
    text = text[:_LONGEST]
    if _TELLTALE.isdisjoint(_LETTERS.findall(text.lower())) and not _FIGURES.search(text):
        return []
    reader = Reader.of(text, anchor, lean)
    spans: list[TimeSpan] = []
    done = 0
    for i, word in enumerate(reader.words):
        if i >= done and (word in _STARTS or (word[0].isdecimal() and _stands_free(reader, i))):
            found = _read(reader, i)
            if found:
                spans.append(_span(reader, i, found))
                done = found.next
                if len(spans) == _MOST:
                    break
    return _joined(spans, text)


def _read(reader: Reader, i: int) -> Found | None:
    """The time that begins at this word, with the time of day around it."""
    try:
        time = clock.clock(reader, i)
        if time:
            at = time.next + (reader.word(time.next) == ",")
            at += reader.word(at) in ("on", "of")
            return clock.before_date(reader, time, _date(reader, at))
        dated = _date(reader, i)
        return clock.after_date(reader, dated) if dated else None
    except (ValueError, OverflowError):
        return None  # a day no calendar has, a year no clock reaches


def _stands_free(reader: Reader, i: int) -> bool:
    """Whether a number is not a piece of something larger: v2.3.1, 10-20, utf8."""
    return not reader.touches(i) or reader.word(i - 1) in "([{<\"'`|*=,;@—–"


def _date(reader: Reader, i: int) -> Found | None:
    word = reader.word(i)
    if word[:1].isdecimal():
        return absolute.number_date(reader, i) or relative.amount(reader, i)
    rule = _RULES.get(word)
    return rule(reader, i) if rule else None


def _span(reader: Reader, i: int, found: Found) -> TimeSpan:
    at, end = reader.spans[i][0], reader.spans[found.next - 1][1]
    before = i - 1 - (reader.word(i - 1) in ("the", "on"))
    bound = _BOUNDS.get(reader.word(before), "")
    start, stop, granularity = found.start, found.end, found.granularity
    return TimeSpan(start, stop, reader.text[at:end], granularity, at, found.relative, bound)


def _joined(spans: list[TimeSpan], text: str) -> list[TimeSpan]:
    """Makes one span of "from X to Y" and of "between X and Y"."""
    joined: list[TimeSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last and last.start < span.end and _is_range(text, last, span):
            whole = text[last.at : span.at + len(span.text)]
            joined[-1] = last._replace(end=max(last.end, span.end), text=whole, bound="")
        else:
            joined.append(span)
    return joined


def _is_range(text: str, first: TimeSpan, second: TimeSpan) -> bool:
    opening = text[max(0, first.at - 9) : first.at].rstrip().lower()
    between = text[first.at + len(first.text) : second.at].strip().lower()
    return (opening.endswith("from") and between in ("to", "until", "till", "-", "–")) or (
        opening.endswith("between") and between == "and"
    )
