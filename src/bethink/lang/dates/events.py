"""Moments given by a caller, and events that a question refers to ("since the release")."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from functools import cache, cached_property
from itertools import pairwise

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates.finder import find_times
from bethink.lang.dates.languages import fold, language_of, possible_languages
from bethink.lang.dates.tokens import NUMBER, TOKEN, UNIT, VAGUE, WEEKDAY, Bound, TimeSpan
from bethink.lang.words import load_section, word_set_of

_WORD = lazy_pattern(r"\w+")


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
    filler = (word_set_of(code, "events", "around") for code in (*codes_for(text), "zh"))
    return frozenset().union(*filler).issuperset(_WORD.findall(rest.lower()))


def codes_for(text: str) -> tuple[str, ...]:
    """English, and the languages that a text may be in."""
    words = frozenset(_WORD.findall(fold(text)))
    return ("en", *(language.code for language in possible_languages(words)))


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
_PRESENT = word_set_of("en", "events", "present")
_PAST = word_set_of("en", "events", "past")
_QUESTION_VERBS = word_set_of("en", "events", "verbs")
_PHRASE_STOPS = frozenset('.,;:?!()"')
# "v2.7.0", "utils.py", "feature/a-b": nothing inside a name ends a phrase.
_IN_NAME = lazy_pattern(r"(?<=\w)[./:@#-]+\w+(?:[./:@#-]+\w+)*")
_FUTURE_PAIRS = frozenset(
    {("have", "to"), ("has", "to"), ("do", "i"), ("do", "we"), ("do", "you"), ("hay", "que")}
)
_UNITS_WITH_OF = {"day": "", "week": "week of"}
_GENITIVES = ("de", "del", "du", "do", "da", "di", "della", "van")
_EMPTY_WORDS = word_set_of("en", "stop_words", "search")
_COUNTS = NUMBER.keys() | VAGUE.keys()
_COUNTED = UNIT.keys() | WEEKDAY.keys() | _COUNTS
_SHORT_UNITS = frozenset({"minute", "minutes", "hour", "hours", "min", "mins", "hr", "hrs"})


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
        spans = find_times(f"{self.offset} {self.bound} {day.date().isoformat()}", day)
        return (spans[0].start, spans[0].end) if len(spans) == 1 else None


class _Lexicon:
    """What places something before, at or after an event, in some languages at once."""

    def __init__(self, codes: tuple[str, ...]) -> None:
        self._codes = codes
        pairs = (
            entry.partition("=")
            for code in codes
            for entry in load_section(code, "events").get("bounds", "").split()
        )
        self.bounds = {word: meaning for word, _, meaning in pairs}
        self.openings = self._words("openings")
        self.ends = self._words("ends")
        self.future = self._words("future")
        self.verb_last = self._words("verb_last")  # "seit dem Umzug entschieden"

    @cached_property
    def amounts(self) -> dict[str, str]:
        """Words that count time, and what they mean in English."""
        return {
            word: english
            for code in self._codes[1:]
            for word, english in language_of(code).words.items()
            if english in _COUNTED
        }

    def _words(self, name: str) -> frozenset[str]:
        return frozenset().union(*(word_set_of(code, "events", name) for code in self._codes))


_lexicon_of = cache(_Lexicon)


def find_events(text: str, times: Sequence[TimeSpan] = ()) -> list[EventPhrase]:
    """Find the events that a question refers to as times (at most two), excluding dates."""
    reader = _EventReader(text[:_MAX_CHARS])
    return [] if reader.is_about_future() else reader.find(times)


class _EventReader:
    """The words of a question: lower-case tokens, blank inside a name."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(TOKEN.finditer(text))
        in_name = {at for name in _IN_NAME.finditer(text) for at in range(*name.span())}
        self._words = [
            "" if token.start() in in_name else token[0].lower() for token in self._tokens
        ]
        self._lexicon = _lexicon_of(codes_for(text))

    def is_about_future(self) -> bool:
        words, future = self._words, self._lexicon.future
        return not (future.isdisjoint(words) and _FUTURE_PAIRS.isdisjoint(pairwise(words)))

    def find(self, times: Sequence[TimeSpan]) -> list[EventPhrase]:
        found: list[EventPhrase] = []
        end = 0
        for i in range(len(self._words)):
            if i < end or not self._is_bound(i) or not self._may_open_event(i):
                continue
            end = self._phrase_end(i + 1)
            at, stop = self._tokens[i + 1].start(), self._tokens[end - 1].end()
            if not any(at < time.at + len(time.text) and time.at < stop for time in times):
                found.append(self._make_phrase(i, end))
            if len(found) == _MAX_PHRASES:
                break
        return found

    def _is_bound(self, i: int) -> bool:
        if self._words[i] in self._lexicon.bounds:
            return True
        return i > 0 and self._words[i] == "of" and self._words[i - 1] in _UNITS_WITH_OF

    def _may_open_event(self, i: int) -> bool:
        """Whether an event may follow: "since the release", "after Kyoto", not "when did"."""
        words = self._words
        if i + 1 >= len(words) or words[i + 1] in _QUESTION_VERBS:
            return False
        if words[i] == "when" and not _is_past(words[i + 1 : self._phrase_end(i + 1)]):
            return False
        if words[i + 1] in self._lexicon.openings or words[i + 1] in _GENITIVES:
            return True
        is_name = self._text[self._tokens[i + 1].start()].isupper() and words[i + 1] != "i"
        return is_name or self._is_numbered(i + 1)

    def _is_numbered(self, i: int) -> bool:
        """Whether a thing is named by its number: release 2.4, sprint 14, v2."""
        texts = [token[0] for token in self._tokens[i : i + 2]]
        if len(texts) < 2 or not texts[0].isalpha() or not texts[1].isdecimal():
            return False
        return fold(texts[0]) not in _EMPTY_WORDS and self._english(i) not in _COUNTED

    def _english(self, i: int) -> str:
        """What a word means if it counts time, else the word; empty outside the text."""
        word = self._words[i] if 0 <= i < len(self._words) else ""
        return word if word in _COUNTED else self._lexicon.amounts.get(fold(word), word)

    def _phrase_end(self, start: int) -> int:
        """The latest end of the phrase."""
        last = min(len(self._words), start + _MAX_PHRASE_WORDS)
        places = range(start + 1, last)
        return next((at for at in places if self._words[at] in _PHRASE_STOPS), last)

    def _make_phrase(self, i: int, end: int) -> EventPhrase:
        words, tokens, lexicon = self._words, self._tokens, self._lexicon
        core_end = next((at for at in range(i + 3, end) if words[at] in lexicon.ends), end)
        if words[i] in lexicon.verb_last:
            core_end = min(core_end, i + 3)
        first = tokens[i + 1].start()
        phrase, core = (self._text[first : tokens[stop - 1].end()] for stop in (end, core_end))
        offset, opening = self._offset_before(i)
        said = self._text[tokens[opening].start() : tokens[core_end - 1].end()]
        bound = _BOUND_OF[lexicon.bounds.get(words[i], "at")]
        return EventPhrase(bound, said, phrase, core, offset)

    def _offset_before(self, i: int) -> tuple[str, int]:
        """The amount of time before a bound, in English, and where it begins."""
        unit, number = self._english(i - 1), self._english(i - 2)
        meaning = self._lexicon.bounds.get(self._words[i])
        if meaning is None:
            return _UNITS_WITH_OF[unit], i - 1
        if meaning.startswith("day-"):
            return "day", i
        is_counted = unit in WEEKDAY or (unit in UNIT and unit not in _SHORT_UNITS)
        if not is_counted or meaning not in ("before", "after"):
            return "", i
        if number.isdecimal() or number in _COUNTS:
            return f"{number} {unit}", i - 2
        return unit, i - 1


def _is_past(words: Sequence[str]) -> bool:
    past = any(word in _PAST or (word.endswith("ed") and len(word) > 4) for word in words)
    return past and _PRESENT.isdisjoint(words)
