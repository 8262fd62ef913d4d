"""What a statement says that something is: a number, a time, a name, a place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from recollect.ingest.fact_clause import Word
from recollect.ingest.fact_words import (
    ABOUT,
    ADJECTIVES,
    ADVERBS,
    GOES_ON,
    MANNERS,
    NEW_NOW,
    NO_PLACES,
    NO_VALUES,
    NUMBERS,
    PAST,
    PERIODS,
    PLACE_NOUNS,
    REASONS,
    RECURRING,
    TIMES,
    UNITS,
    WHOSE,
)

MOST_WORDS = 8
_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}|\d{1,2}(?:am|pm|st|nd|rd|th)|\d{4}-\d{2}-\d{2}")
_DOTTED = re.compile(r"\d{1,2}\.\d{2}")
_NUMBER = re.compile(r"[-+~<>≈€$£#]?\d")
_NAMELIKE = re.compile(r"\d+[a-z]{4,}")
_SIGNS = frozenset("_/\\@:.0123456789")
_TIMELY = NUMBERS | {"every", "early", "late", "mid", "end", "a", "first", "last", "second"}
_THE = frozenset({"the", "our", "an", "a"})
_FROM = frozenset({"from", "starting", "effective", "as"})
_AT_ONCE = {
    *(("today",), ("now",), ("immediately",)),
    *((day, on) for day in ("today", "now") for on in ("on", "onward", "onwards")),
}
_LIMITING = frozenset({"in", "on", "at", "for", "with", "by", "to", "of", "and", "or", "the"})
_UNIT_WORDS = frozenset(UNITS) | frozenset(UNITS.values())
_MOST_INSTEAD = 3  # words

Kind = Literal["time", "number", "name", "plain"]


class Value(NamedTuple):
    """A value in the form it is compared in. ``recurring`` times hold again and again;
    ``now`` says that the words call it new; ``rest`` is what follows it, a reason or more;
    ``instead`` is what it stands instead of."""

    key: str
    kind: Kind
    recurring: bool = False
    now: bool = False
    rest: tuple[Word, ...] = ()
    more: bool = False
    instead: str = ""


def value_of(words: Sequence[Word]) -> Value | None:
    """The value that words begin with; None where it is none, or more than one."""
    held: list[Word] = []
    now = more = False
    rest: tuple[Word, ...] = ()
    for at, word in enumerate(words):
        if held and word.low in _FROM and _from_now(words[at:]):
            now = True
            break
        if word.low in PAST or (word.low == "as" and is_guise(words[at + 1 :])):
            return None
        if word.low in ADVERBS:
            now |= word.low in NEW_NOW
        elif held and word.low in ("and", "or", "&", "/"):
            return None
        elif held and (word.low in REASONS or word.low in GOES_ON):
            rest, more = tuple(words[at:]), word.low in GOES_ON
            break
        else:
            held.append(word)
        if word.pause and at + 1 < len(words):
            rest = tuple(words[at + 1 :])
            more = rest[0].low not in REASONS
            if more and any(one.low in ("and", "or") or one.pause for one in rest):
                return None  # a list, most probably
            break
    held = _without_articles(held)
    if not held or len(held) > MOST_WORDS or held[0].low in NO_VALUES:
        return None
    recurring = any(word.low in RECURRING for word in held)
    return Value(key_of(held), _kind(held), recurring, now, rest, more, _instead(rest))


def is_guise(behind: Sequence[Word]) -> bool:
    """As in "as an experiment", "as a workaround": so for a while, or for some."""
    return bool(behind) and behind[0].low in ("a", "an")


def _from_now(words: Sequence[Word]) -> bool:
    """As in "from today", "as of now", "starting today"."""
    low = tuple(word.low for word in words[:5])
    return (low[2:] if low[:2] == ("as", "of") else low[1:]) in _AT_ONCE


def without_now(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], bool]:
    """Words without "now" or "as of today" at their end, and whether that was there."""
    now = False
    at = next((at for at, word in enumerate(words) if at and word.low in _FROM), len(words))
    if at < len(words) and _from_now(words[at:]):
        words, now = words[:at], True
    while words and words[-1].low in ADVERBS:
        now |= words[-1].low in NEW_NOW
        words = words[:-1]
    return words, now


def _instead(rest: Sequence[Word]) -> str:
    """What "instead of" names, if it names that alone: not "instead of spaces in Makefiles"."""
    if [word.low for word in rest[:2]] not in (["instead", "of"], ["rather", "than"]):
        return ""
    end = next((at for at, word in enumerate(rest) if at > 1 and word.low in REASONS), None)
    named = [word for word in rest[2:end] if word.low not in ADVERBS]
    limited = any(word.low in _LIMITING or word.pause for word in named[:-1])
    return "" if limited or not 1 <= len(named) <= _MOST_INSTEAD else key_of(named)


def _without_articles(held: list[Word]) -> list[Word]:
    while held and held[0].low in ABOUT:
        held = held[1:]
    return held[1:] if len(held) > 1 and held[0].low in _THE - {"a", "an"} else held


def key_of(words: Sequence[Word]) -> str:
    """Words as they are compared: units in one spelling, numbers without commas."""
    kept: list[str] = []
    for at, word in enumerate(words, 1):
        low = UNITS.get(word.low, word.low)
        if word.raw in _THE and at < len(words):
            continue
        if kept and _NUMBER.match(kept[-1]) and low in UNITS.values():
            kept[-1] += low  # "30 s" and "30s" are one
        else:
            kept.append(low.replace(",", "") if _NUMBER.match(low) else low)
    return " ".join(kept)


def _kind(held: Sequence[Word]) -> Kind:
    first = held[0]
    if first.low in ("every", "each") and any(word.low in PERIODS for word in held[1:4]):
        return "time"
    if _NUMBER.match(first.low) and len(held) > 1 and held[1].low in _UNIT_WORDS:
        return "number"  # raised to 45 s on Monday
    if _is_timely(first) or (
        (_NUMBER.match(first.low) or first.low in _TIMELY) and any(map(_is_timely, held[1:4]))
    ):
        return "time"
    if (_NUMBER.match(first.low) and not _NAMELIKE.fullmatch(first.low)) or (
        first.low in NUMBERS and len(held) > 1
    ):
        return "number"
    if first.raw[0].isupper() or _is_code(first.low):
        return "name"
    return "plain"


def _is_code(word: str) -> bool:
    """Whether a word looks like an identifier, an address or a version."""
    return not _SIGNS.isdisjoint(word) or ("-" in word.strip("-") and word.isascii())


def _is_timely(word: Word) -> bool:
    return word.low in TIMES or word.raw == "May" or _CLOCK.fullmatch(word.low) is not None


def not_clock(value: Value) -> Value:
    """The value where no "at" says that it is a time: 3.12 is a version or a price."""
    dotted = value.kind == "time" and _DOTTED.fullmatch(value.key) is not None
    return value._replace(kind="number") if dotted else value


def is_naming(value: Value) -> bool:
    """Whether a plain word may name something rather than describe it."""
    first = value.key.split()[0]
    ending = first.endswith(("ed", "ing", "ly", "ous", "ful", "able", "ible", "less"))
    return first not in ADJECTIVES and not ending and len(value.key.split()) <= 3


def is_place(value: Value) -> bool:
    """Whether it may be where something is: "in progress" and "in good shape" are not."""
    words = value.key.split()
    if value.kind != "time" and not TIMES.isdisjoint(words):
        return False  # in Lyon on Saturday: something that happens
    return words[0] not in NO_PLACES and words[0] not in ADJECTIVES and WHOSE.isdisjoint(words)


def is_manner(value: Value) -> bool:
    """Whether it says in which language or form something is, not where: "in German"."""
    return value.kind != "time" and value.key.split()[-1] in MANNERS


def is_known_place(value: Value) -> bool:
    """Whether it names a place, rather than a situation: "in vault A", not "in the works"."""
    words = value.key.split()
    named = value.kind != "plain" or any(_NUMBER.match(word) for word in words)
    return named or not PLACE_NOUNS.isdisjoint(words)


def agree(one: str, other: str) -> bool:
    """Whether two values may both be so: equal, or one says the other more precisely."""
    first, second = ({word.removesuffix("'s") for word in each.split()} for each in (one, other))
    if not (first <= second or second <= first):
        return False
    counted = [bool(_NUMBER.match(word)) for word in first ^ second]
    return not any(counted) or not any(_NUMBER.match(word) for word in first & second)
