"""Statements of what is done again and again, and of how many there are.

Releases are cut on Tuesdays, backups run every night, the API returns 100 items per page.
"""

from __future__ import annotations

import re

from recollect.ingest import fact_words as words_of
from recollect.ingest.fact_clause import Word
from recollect.ingest.fact_parts import Fact, Holds, Said, Thing, make_fact, without_adverbs
from recollect.ingest.fact_values import Value, value_of

_AT = frozenset({"on", "at"})
_FOR = frozenset({"for", "after", "within"})
_CUES = _AT | _FOR | {"every", "each"}
_SPAN = re.compile(
    r"(?:[\d.]+|[a-z]+(?=\s)) ?(?:ms|s|min|h|days?|nights?|weeks?|months?|quarters?|years?)"
)
_COUNT = re.compile(r"(\d[\d.,]*)([a-z%]{1,4})?")
_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}|\d{1,2}(?:am|pm)")
_SEVERAL_TIMES = frozenset({"hold", "meet", "sync"})
_MOST_COUNTED = 6  # words
_NO_COUNTED = frozenset({"and", "or", "&", "/"}) | words_of.PAST | words_of.GOES_ON


def routine(said: Said) -> Fact | None:
    """When, how often or for how long something is done: "are cut on Tuesdays", "run every
    night", "are kept for 30 days". ``said.verb`` is what is done."""
    thing = said.thing
    if thing is None or not said.after or thing.head in words_of.ABSTRACT:
        return None
    act = words_of.ACTS[said.verb]
    if said.after[0].low in _FOR:
        return lasting(said, f"{act} {said.after[0].low}")
    when = _when(said.after)
    if when is None:
        return None
    # Whoever does something on Tuesdays may do it on Fridays as well.
    several = act in _SEVERAL_TIMES or _is_somebody(said, thing)
    holds: Holds = "loose" if several else _repeated(when)
    return make_fact(said, thing.slot("time"), when, holds)._replace(by=act)


def lasting(said: Said, attribute: str) -> Fact | None:
    """As in "are kept for 30 days", "expire after 30 minutes"."""
    thing, span = said.thing, value_of(said.after[1:])
    if thing is None or span is None or span.kind != "number" or not _SPAN.fullmatch(span.key):
        return None  # "for 3 reasons", "for 30 days in staging"
    return make_fact(said, thing.slot(attribute), span)


def going_out(said: Said) -> Fact | None:
    """As in "Releases go out on Fridays"."""
    if len(said.after) < 2 or said.after[0].low != "out":
        return None
    return routine(said._replace(verb="ship", after=said.after[1:]))


def doing(said: Said) -> Fact | None:
    """As in "We cut releases on Tuesdays": about the releases; "we deploy on Fridays"."""
    after, how = without_adverbs(said.after, said.how)
    said = said._replace(after=after, how=how)
    at = next((at for at, word in enumerate(after[:5]) if word.low in _CUES), None)
    if at is None or not said.is_first_person:
        return None
    return routine(said._replace(subject=after[:at] or said.subject, after=after[at:]))


def counted(said: Said) -> Fact | None:
    """As in "returns 100 items per page", "has 5 members": a number of the same things."""
    after, how = without_adverbs(said.after, said.how)
    bound = "up to " if [word.low for word in after[:2]] == ["up", "to"] else ""
    after = after[2:] if bound else after
    thing = said.thing
    number = _COUNT.fullmatch(after[0].low) if after else None
    if thing is None or not after or (_is_somebody(said, thing) and thing.subject != "we"):
        return None
    if number is None and after[0].low not in words_of.NUMBERS:
        return None
    unit = (number[2],) if number and number[2] else ()
    counts = _things(after[1:])
    if counts is None or not (unit or counts[0]) or after[0].pause:
        return None
    named = (*unit, *counts[0])
    if named[0] in words_of.NO_COUNTS:
        return None
    # One member and two members are the same things.
    kind = " ".join((named[0].removesuffix("s"), *named[1:]))
    value = Value((number[1] if number else after[0].low).replace(",", ""), "number", now=counts[1])
    attribute = f"{words_of.COUNTING[said.verb]} {bound}{kind}"
    return make_fact(said._replace(how=how), thing.slot(attribute), value)


def _is_somebody(said: Said, thing: Thing) -> bool:
    """Whether it is a person who does it: "James", but not "Backups run"."""
    plural = thing.head.endswith("s") and not said.verb.endswith("s")
    return thing.is_name and not plural


def _things(words: tuple[Word, ...]) -> tuple[tuple[str, ...], bool] | None:
    """What is counted, under which conditions, and whether that is new."""
    kept: list[str] = []
    now = False
    for word in words:
        if word.low in words_of.REASONS and word.low != "per":
            break
        if word.low in _NO_COUNTED or word.pause or len(kept) == _MOST_COUNTED:
            return None
        if word.low in words_of.ADVERBS:
            now |= word.low in words_of.NEW_NOW
        else:
            kept.append(word.low)
    return tuple(kept), now


def _when(after: tuple[Word, ...]) -> Value | None:
    value = value_of(after[1:] if after[0].low in _AT else after)
    return value if value is not None and value.kind == "time" else None


def _repeated(when: Value) -> Holds:
    """A time that comes again holds until it is another; a date is one of many."""
    daily = _CLOCK.fullmatch(when.key.split()[0]) is not None and len(when.key.split()) == 1
    return "one" if when.recurring or daily else "event"
