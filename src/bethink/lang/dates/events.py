"""Moments given by a caller, and events that a question refers to ("since the release")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from bethink.lang.dates.finder import find_times
from bethink.lang.dates.languages import LANGUAGES, fold
from bethink.lang.dates.tokens import NUMBER, TOKEN, UNIT, VAGUE, WEEKDAY, Bound, TimeSpan
from bethink.lang.words import load_words, word_set_of


def _words(name: str, *languages: str, section: str = "events") -> frozenset[str]:
    return frozenset().union(*(word_set_of(code, section, name) for code in languages))


_SPACED = ("en", *(language.code for language in LANGUAGES))
_FILLER_AROUND = _words("around", *_SPACED, "zh")
_WORD = re.compile(r"\w+")


def parse_moment(value: object, now: datetime) -> datetime:
    """Parse a moment, in UTC. Without a zone it is UTC; a day means its start.

    Raises ValueError with a full sentence if it cannot be parsed.
    """
    if isinstance(value, datetime):
        return _to_utc(value)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    if isinstance(value, str):
        return _parse_text_moment(value.strip(), now)
    raise ValueError(f"{value!r} is not a valid time")


def _parse_text_moment(text: str, now: datetime) -> datetime:
    try:
        return _to_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        spans = find_times(text, now, lean="past", vague=True)
    if len(spans) == 1 and spans[0].bound in ("", "since") and _is_whole_text(text, spans[0]):
        return _to_utc(spans[0].start)
    raise ValueError(
        f"{text!r} is not a valid time; write 2026-03-01, 2026-03-01T14:30 or 'last Friday'"
    )


def _is_whole_text(text: str, span: TimeSpan) -> bool:
    """Whether the text consists of this time alone."""
    rest = f"{text[: span.at]} {text[span.at + len(span.text) :]}"
    return _FILLER_AROUND.issuperset(_WORD.findall(rest.lower()))


def _to_utc(moment: datetime) -> datetime:
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{moment} is outside the years 1 to 9999") from error


_MAX_PHRASE_WORDS = 12
_MAX_PHRASES = 2
_MAX_CHARS = 1 << 13  # characters: the maximum length of a question

_BOUND_OF: dict[str, Bound] = {"since": "since", "before": "before", "after": "after"}
_BOUND_OF |= {"until": "until", "at": "", "day-before": "before", "day-after": "after"}
# Words that place something before, at or after an event, in all languages.
_BOUNDS = {
    word: meaning
    for code in _SPACED
    for word, _, meaning in (
        entry.partition("=") for entry in load_words(code)["events"]["bounds"].split()
    )
}
_PRESENT = _words("present", "en")
_PAST = _words("past", "en")
_VERB_LAST = _words("verb_last", *_SPACED)  # "seit dem Umzug entschieden"
_EVENT_OPENINGS = _words("openings", *_SPACED)
_QUESTION_VERBS = _words("verbs", "en")
_PHRASE_STOPS = frozenset('.,;:?!()"')
# "v2.7.0", "utils.py", "feature/a-b": nothing inside a name ends a phrase.
_IN_NAME = re.compile(r"(?<=\w)[./:@#-]+\w+(?:[./:@#-]+\w+)*")
_CORE_STOPS = _words("ends", *_SPACED)
_FUTURE_WORDS = _words("future", *_SPACED)
_FUTURE_PAIRS = frozenset(
    {("have", "to"), ("has", "to"), ("do", "i"), ("do", "we"), ("do", "you"), ("hay", "que")}
)


class EventPhrase(NamedTuple):
    """Words that may name a stored event: the full phrase, and its shortest plausible core.

    ``offset`` is how far from it, in English: "three days" (before or after it), "week of".
    """

    bound: Bound
    said: str
    phrase: str
    core: str
    offset: str = ""

    def window(self, day: datetime) -> tuple[datetime, datetime] | None:
        """The time so far from an event of that day; None where there is no offset."""
        if not self.offset:
            return None
        spans = find_times(f"{self.offset} {self.bound} {day:%Y-%m-%d}", day)
        return (spans[0].start, spans[0].end) if len(spans) == 1 else None


def find_events(text: str, times: Sequence[TimeSpan] = ()) -> list[EventPhrase]:
    """Find the events that a question refers to as times (at most two), excluding dates."""
    text = text[:_MAX_CHARS]
    tokens = list(TOKEN.finditer(text))
    words = _phrase_tokens(text, tokens)
    if not (_FUTURE_WORDS.isdisjoint(words) and _FUTURE_PAIRS.isdisjoint(pairwise(words))):
        return []
    found: list[EventPhrase] = []
    end_index = 0
    for i, word in enumerate(words):
        is_bound = word in _BOUNDS or (word == "of" and words[i - 1] in _UNITS_WITH_OF and i > 0)
        if i < end_index or not is_bound or not _may_open_event(text, tokens, words, i):
            continue
        end = _phrase_end(words, i + 1)
        at, stop = tokens[i + 1].start(), tokens[end - 1].end()
        end_index = end
        if not any(at < time.at + len(time.text) and time.at < stop for time in times):
            found.append(_make_phrase(text, tokens, words, (i, end)))
        if len(found) == _MAX_PHRASES:
            break
    return found


def _phrase_tokens(text: str, tokens: Sequence[re.Match[str]]) -> list[str]:
    """The lower-case tokens that delimit phrases; tokens inside a name are blank."""
    name_positions = {at for name in _IN_NAME.finditer(text) for at in range(*name.span())}
    return ["" if token.start() in name_positions else token[0].lower() for token in tokens]


def _may_open_event(
    text: str, tokens: Sequence[re.Match[str]], words: Sequence[str], i: int
) -> bool:
    """Whether an event may follow: "since the release", "after Kyoto", not "when did"."""
    if i + 1 >= len(words) or words[i + 1] in _QUESTION_VERBS:
        return False
    if words[i] == "when" and i and words[i - 1] in ("since", "of", "about"):
        return False
    if words[i] == "when" and not _is_past(words[i + 1 : _phrase_end(words, i + 1)]):
        return False
    if words[i + 1] in _EVENT_OPENINGS or words[i + 1] in _GENITIVES:
        return True
    is_name = text[tokens[i + 1].start()].isupper() and words[i + 1] != "i"
    return is_name or _is_numbered(tokens, i + 1)


def _is_numbered(tokens: Sequence[re.Match[str]], i: int) -> bool:
    """Whether a thing is named by its number: release 2.4, sprint 14, v2."""
    if i + 1 >= len(tokens) or not tokens[i][0].isalpha() or not tokens[i + 1][0].isdecimal():
        return False
    word = fold(tokens[i][0])
    return word not in _EMPTY_WORDS and _english(word) not in _COUNTED


_UNITS_WITH_OF = {"day": "", "week": "week of"}
_GENITIVES = ("de", "del", "du", "do", "da", "di", "della", "van")
_EMPTY_WORDS = _words("search", "en", section="stop_words")
_COUNTED = UNIT.keys() | WEEKDAY.keys() | NUMBER.keys() | VAGUE.keys()
_DAYS_AND_LONGER = UNIT.keys() - {"minute", "minutes", "hour", "hours", "min", "mins", "hr", "hrs"}


@cache
def _amounts() -> dict[str, str]:
    """Words of other languages that count time, and what they mean in English."""
    return {
        word: english
        for language in LANGUAGES
        for word, english in language.words.items()
        if english in _COUNTED
    }


def _english(word: str) -> str:
    return word if word in _COUNTED else _amounts().get(fold(word), word)


def _offset_before(words: Sequence[str], i: int) -> tuple[str, int]:
    """The amount of time before a bound, in English, and where it begins."""
    unit = _english(words[i - 1]) if i else ""
    if words[i] == "of":
        return _UNITS_WITH_OF[unit], i - 1
    if _BOUNDS[words[i]].startswith("day-"):
        return "day", i
    is_counted = unit in _DAYS_AND_LONGER or unit in WEEKDAY
    if not is_counted or _BOUNDS[words[i]] not in ("before", "after"):
        return "", i
    number = _english(words[i - 2]) if i > 1 else ""
    if number.isdecimal() or (number in NUMBER or number in VAGUE):
        return f"{number} {unit}", i - 2
    return unit, i - 1


def _is_past(words: Sequence[str]) -> bool:
    past = any(word in _PAST or (word.endswith("ed") and len(word) > 4) for word in words)
    return past and _PRESENT.isdisjoint(words)


def _phrase_end(words: Sequence[str], start: int) -> int:
    """The latest end of the phrase."""
    last = min(len(words), start + _MAX_PHRASE_WORDS)
    return next((at for at in range(start + 1, last) if words[at] in _PHRASE_STOPS), last)


def _make_phrase(
    text: str, tokens: Sequence[re.Match[str]], words: Sequence[str], bounds: tuple[int, int]
) -> EventPhrase:
    i, end = bounds
    if end - 1 > i + 1 and words[end - 1] in _PHRASE_STOPS:
        end -= 1
    first = tokens[i + 1].start()
    core_end = next((at for at in range(i + 3, end) if words[at] in _CORE_STOPS), end)
    if words[i] in _VERB_LAST:
        core_end = min(core_end, i + 3)  # the verb comes last: "seit dem Umzug entschieden"
    phrase, core = (text[first : tokens[stop - 1].end()] for stop in (end, core_end))
    offset, opening = _offset_before(words, i)
    said = text[tokens[opening].start() : tokens[core_end - 1].end()]
    bound = _BOUND_OF[_BOUNDS.get(words[i], "at")]
    return EventPhrase(bound, said, phrase, core, offset)
