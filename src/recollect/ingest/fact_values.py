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
    NEW_NOW,
    NO_PLACES,
    NO_VALUES,
    NUMBERS,
    PAST,
    PLACE_NOUNS,
    REASONS,
    RECURRING,
    TIMES,
    UNITS,
    WHOSE,
)

MOST_WORDS = 8
_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}|\d{1,2}(?:am|pm)|\d{4}-\d{2}-\d{2}")
_NUMBER = re.compile(r"[-+~<>≈€$£#]?\d")
_NAMELIKE = re.compile(r"\d+[a-z]{4,}")
_SIGNS = frozenset("_/\\@:.0123456789")
_TIMELY = NUMBERS | {"every", "early", "late", "mid", "end", "a", "first", "last", "second"}
_THE = frozenset({"the", "our", "an", "a"})

Kind = Literal["time", "number", "name", "plain"]


class Value(NamedTuple):
    """A value in the form it is compared in. ``recurring`` times hold again and again;
    ``now`` says that the words call it new; ``rest`` is what follows it, a reason or more."""

    key: str
    kind: Kind
    recurring: bool = False
    now: bool = False
    rest: tuple[Word, ...] = ()
    more: bool = False


def value_of(words: Sequence[Word]) -> Value | None:
    """The value that words begin with; None where it is none, or more than one."""
    held: list[Word] = []
    now = more = False
    rest: tuple[Word, ...] = ()
    for at, word in enumerate(words):
        if word.low in PAST:
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
    return Value(key_of(held), _kind(held), recurring, now, rest, more)


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


def is_known_place(value: Value) -> bool:
    """Whether it names a place, rather than a situation: "in vault A", not "in the works"."""
    words = value.key.split()
    named = value.kind != "plain" or any(_NUMBER.match(word) for word in words)
    return named or not PLACE_NOUNS.isdisjoint(words)


def agree(one: str, other: str) -> bool:
    """Whether two values may both be so: equal, or one says the other more precisely."""
    first, second = set(one.split()), set(other.split())
    if not (first <= second or second <= first):
        return False
    counted = [bool(_NUMBER.match(word)) for word in first ^ second]
    return not any(counted) or not any(_NUMBER.match(word) for word in first & second)
