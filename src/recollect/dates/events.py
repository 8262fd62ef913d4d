"""Finds what a question counts from where it names no date: "since the release"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from recollect.dates.names import word_set
from recollect.dates.reader import TOKEN
from recollect.dates.span import Bound, TimeSpan

_MOST_WORDS = 12
_MOST_PHRASES = 2
_LONGEST = 1 << 13  # characters: as long as a question may be

_BOUNDS: dict[str, Bound] = {
    "since": "since", "before": "before", "after": "after", "until": "until", "till": "until",
    "when": "", "during": "",
    "seit": "since", "vor": "before", "nach": "after", "bis": "until", "während": "",
    "desde": "since", "antes": "before", "después": "after", "hasta": "until", "durante": "",
    "depuis": "since", "avant": "before", "après": "after", "pendant": "",
}  # fmt: skip
# "When we moved" tells of something that happened, "when the table is missing" does not.
_PRESENT = word_set("is are am has have does do goes gets needs can will")
_PAST = word_set(
    """was were had went came broke left met began got made lost won fell took bought sold ran
    built found gave held kept said sent shut split stood told wrote"""
)
_GERMAN = frozenset({"seit", "vor", "nach", "bis", "während"})
# An event is named with an article, or told by somebody's deed.
_OPENINGS = word_set(
    """the our my your his her their its this that last first second we i they he she you
    dem der den die das unserem unserer unsere zum zur wir ich sie er
    el la los las del nuestro nuestra mi
    le les l du au notre nous on ils elle il"""
)
_ASKING = word_set("did do does is was were are will would can could should has have had")
# Here the phrase ends, or may end.
_STOPS = frozenset('.,;:?!()"')
# "v2.7.0", "utils.py", "feature/a-b": inside a name no sign and no word ends a phrase.
_IN_NAME = re.compile(r"(?<=\w)[./:@#-]+\w+(?:[./:@#-]+\w+)*")
_MAY_END = word_set(
    """about regarding with for in on at and or by from that which who what how why where did do
    does was were has have had then so but
    über mit für und oder was wie
    sobre con para y qué
    sur avec pour et que"""
)
# A question about what is to be done speaks of an event to come.
_TO_COME = word_set(
    """should must need needs can could will shall may muss müssen soll sollen darf kann debo
    debemos dois devons faut"""
)
_TO_COME_TWO = frozenset(
    {("have", "to"), ("has", "to"), ("do", "i"), ("do", "we"), ("do", "you"), ("hay", "que")}
)


class EventPhrase(NamedTuple):
    """Words that may name a stored event: all of them, and the shortest that still might."""

    bound: Bound
    said: str
    phrase: str
    core: str


def find_events(text: str, times: Sequence[TimeSpan] = ()) -> list[EventPhrase]:
    """The events a question counts from (at most two), dates left out."""
    text = text[:_LONGEST]
    tokens = list(TOKEN.finditer(text))
    words = _read(text, tokens)
    if not (_TO_COME.isdisjoint(words) and _TO_COME_TWO.isdisjoint(pairwise(words))):
        return []
    found: list[EventPhrase] = []
    done = 0
    for i, word in enumerate(words):
        if i < done or word not in _BOUNDS or not _opens(text, tokens, words, i):
            continue
        end = _end(words, i + 1)
        at, stop = tokens[i + 1].start(), tokens[end - 1].end()
        done = end
        if not any(at < time.at + len(time.text) and time.at < stop for time in times):
            found.append(_phrase(text, tokens, words, (i, end)))
        if len(found) == _MOST_PHRASES:
            break
    return found


def _read(text: str, tokens: Sequence[re.Match[str]]) -> list[str]:
    """The words by which a phrase is told; what stands inside a name is none of them."""
    inside = {at for name in _IN_NAME.finditer(text) for at in range(*name.span())}
    return ["" if token.start() in inside else token[0].lower() for token in tokens]


def _opens(text: str, tokens: Sequence[re.Match[str]], words: Sequence[str], i: int) -> bool:
    """Whether an event may follow: "since the release", "after Kyoto", not "when did"."""
    if i + 1 >= len(words) or words[i + 1] in _ASKING:
        return False
    if words[i] == "when" and i and words[i - 1] in ("since", "of", "about"):
        return False
    if words[i] == "when" and not _is_past(words[i + 1 : _end(words, i + 1)]):
        return False
    named = text[tokens[i + 1].start()].isupper() and words[i + 1] != "i"
    return words[i + 1] in _OPENINGS or named or words[i + 1] in ("de", "del")


def _is_past(words: Sequence[str]) -> bool:
    past = any(word in _PAST or (word.endswith("ed") and len(word) > 4) for word in words)
    return past and _PRESENT.isdisjoint(words)


def _end(words: Sequence[str], start: int) -> int:
    """Where the phrase ends at the latest."""
    last = min(len(words), start + _MOST_WORDS)
    return next((at for at in range(start + 1, last) if words[at] in _STOPS), last)


def _phrase(
    text: str, tokens: Sequence[re.Match[str]], words: Sequence[str], place: tuple[int, int]
) -> EventPhrase:
    i, end = place
    if end - 1 > i + 1 and words[end - 1] in _STOPS:
        end -= 1
    first = tokens[i + 1].start()
    cut = next((at for at in range(i + 3, end) if words[at] in _MAY_END), end)
    if words[i] in _GERMAN:
        cut = min(cut, i + 3)  # the verb stands last: "seit dem Umzug entschieden"
    phrase, core = (text[first : tokens[stop - 1].end()] for stop in (end, cut))
    said = text[tokens[i].start() : tokens[cut - 1].end()]
    return EventPhrase(_BOUNDS[words[i]], said, phrase, core)
