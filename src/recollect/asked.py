"""What a question asks: its telling words, the times it names, the kind of answer."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.context import Context
from recollect.dates import find_times
from recollect.model import Item
from recollect.ports import Word

DAY_S = 86_400.0

Wanted = Literal["a time", "a number", "a name"]

_WHEN = re.compile(
    r"\s*(?:when|since when|how long|what (?:date|year|month|day|time))\b", re.IGNORECASE
)
_NUMBER = re.compile(
    r"\bhow (?:many|much|old|long|often|far|big|tall)\b"
    r"|\bwhat (?:percentage|share|amount|number|total|time|price|size|version|port)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b(?:who|whom|whose|where|which|name)\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"\b(?:can|could|would|will) you (?:please )?(?:suggest|recommend|advise|propose)\b"
    r"|\b(?:do|would) you (?:suggest|recommend)\b"
    r"|^\s*(?:please )?(?:suggest|recommend|advise)\b"
    r"|\bany (?:good )?(?:tips|advice|ideas?|suggestions?|recommendations?)\b"
    r"|\bshould (?:I|we)\b",
    re.IGNORECASE,
)
_SAYS_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?|days?"
    r"|morning|evening|night|recently|since|monday|tuesday|wednesday|thursday|friday|saturday"
    r"|sunday|january|february|march|april|may|june|july|august|september|october|november"
    r"|december|spring|summer|autumn|fall|winter|\d{4}|\d{1,2}(?:st|nd|rd|th))\b",
    re.IGNORECASE,
)
_SAYS_NUMBER = re.compile(r"\d")
_SAYS_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_ANSWERS = {"a time": _SAYS_TIME, "a number": _SAYS_NUMBER, "a name": _SAYS_NAME}


class Telling(NamedTuple):
    """A word of the question that says something, and how much: its rarity here."""

    word: Word
    weight: float


def telling_words(ctx: Context) -> tuple[Telling, ...]:
    """The question's words without those that are about nothing."""
    return ctx.once(
        "telling",
        lambda: tuple(Telling(word, ctx.rarity(word)) for word in ctx.words() if not word.common),
    )


def unknown_share(ctx: Context) -> float:
    """The share of the question's telling words that no memory here holds."""
    asked = telling_words(ctx)
    known = ctx.statistics().frequencies
    total = sum(telling.weight for telling in asked)
    unknown = [telling for telling in asked if not all(map(known.get, telling.word.terms))]
    return sum(telling.weight for telling in unknown) / total if total else 0.0


def wanted(text: str) -> tuple[Wanted, ...]:
    """What kind of answer a question asks for, if it lets on."""
    kinds: list[Wanted] = []
    if _WHEN.match(text):
        kinds.append("a time")
    if _NUMBER.search(text):
        kinds.append("a number")
    if _NAME.search(text):
        kinds.append("a name")
    return tuple(kinds)


def asks_advice(text: str) -> bool:
    """Whether somebody wants a suggestion, for which what is known of them may help."""
    return _ADVICE.search(text) is not None


def gives(text: str, kinds: tuple[Wanted, ...]) -> Wanted | None:
    """Which of the wanted kinds a memory could give; None where none of them."""
    return next((kind for kind in kinds if _ANSWERS[kind].search(text)), None)


class Period(NamedTuple):
    """A stretch of time the question names, in its words."""

    start: datetime
    end: datetime
    said: str


def periods(ctx: Context) -> tuple[Period, ...]:
    """The times the question speaks of, counted from its own clock."""
    return ctx.once("periods", lambda: _periods(ctx))


def _periods(ctx: Context) -> tuple[Period, ...]:
    spans = find_times(ctx.query.text, ctx.query.moment, lean="past")
    return tuple(Period(*span.window(), span.text) for span in spans)


def nearness(item: Item, when: Period, *, before_days: float, after_days: float) -> float:
    """1 inside the period, fading outside: what is told later still speaks of it."""
    moment = item.when
    late = max(0.0, (moment - when.end).total_seconds() / DAY_S) if moment >= when.end else 0.0
    early = max(0.0, (when.start - moment).total_seconds() / DAY_S) if moment < when.start else 0.0
    return math.exp(-late / after_days - early / before_days)
