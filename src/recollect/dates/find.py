"""Goes through a text word by word and asks the rule for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from recollect.dates import clock, counted, parts
from recollect.dates.join import Piece, joined, piece
from recollect.dates.languages import LANGUAGES, Language, Put, chinese, fold, has_chinese, spoken
from recollect.dates.names import NUMBER, ORDINAL, PART, THIRD, UNIT, VAGUE
from recollect.dates.reader import Found, Lean, Reader, Reading
from recollect.dates.rules import SIMPLE, simple_date
from recollect.dates.span import TimeSpan

_LONGEST = 1 << 16  # characters; the write walk and the read walk refuse longer texts
_MOST = 64  # times; a longer list is a table, not a text

_MEALTIME = frozenset({"before", "at", "over", "during", "around", "after"})
_STARTS = SIMPLE.keys() | THIRD.keys() | ORDINAL.keys() | PART.keys() | _MEALTIME
_STARTS |= {"noon", "midnight", "midday"}
# Without one of these words and without such figures there is no time in a text.
_EVERYWHERE = NUMBER.keys() | VAGUE.keys() | ORDINAL.keys() | THIRD.keys() | _MEALTIME
_TELLTALE = (_STARTS | UNIT.keys()) - _EVERYWHERE - {"this", "new", "good", "half", "other"}
_TELLTALE |= counted.COUNTED.keys() - {"second"}
_TELLTALE |= {"last", "clock", "lunch", "dinner", "breakfast"}
_FIGURES = re.compile(r"\d{4}|\d:\d\d|\d ?[apAP]\.?[mM]|[qQhH][1-4]|\d[hdw]\b|[1-9]0s\b|\d(?:st|nd|rd|th)\b")  # fmt: skip  # noqa: E501
_LETTERS = re.compile(r"[^\W\d_]+")
_PLAIN_LETTERS = re.compile(r"[a-z]+")  # the same for ASCII, in half the time
# English words that are other words in other languages.
_UNSURE = frozenset(
    {"mar", "fall", "sun", "sat", "mon", "an", "a", "sept", "dec", "past"}
    | {"second", "min", "h", "six", "am"}
)


def find_times(
    text: str, anchor: datetime, *, lean: Lean = "nearest", vague: bool = False
) -> list[TimeSpan]:
    """The times a text speaks of (at most 64), in the order of the text, without overlap.

    A month or weekday without a year is the ``nearest`` one to the anchor or,
    leaning to the ``past``, the last one that has begun. With ``vague`` what is only
    a guess counts as well: recently, in summer, at Christmas.
    """
    text = text[:_LONGEST]
    spans: list[TimeSpan] = []
    for reader in _readers(text, Reading(anchor, lean, vague)):
        pieces = joined(reader, _pieces(reader))
        spans += [_span(reader, one) for one in pieces]
    return _apart(spans)[:_MOST]


def _readers(text: str, how: Reading) -> Iterator[Reader]:
    """The text in each language it may name a time in, its own language first."""
    letters = _PLAIN_LETTERS if text.isascii() else _LETTERS
    words = frozenset(letters.findall(fold(text)))
    english = not words.isdisjoint(_TELLTALE)
    plain = english or bool(_FIGURES.search(text))
    foreign = [each for each in LANGUAGES if not words.isdisjoint(each.telltales)]
    main = spoken(words, english=english) if foreign or english or "/" in text else None
    if main is not None and (plain or main in foreign):
        yield _in(main, text, how, sure=False)
    if plain:
        reader = Reader.of(text, how)
        if main is not None:
            kept = tuple([f"_{word}" if word in _UNSURE else word for word in reader.words])
            reader = Reader(text, kept, how)
        yield reader
    for each in foreign:
        if each is not main and not words.isdisjoint(each.telltales - each.unsure):
            yield _in(each, text, how, sure=True)
    if has_chinese(text):
        yield _put(text, how._replace(spaced=False), chinese.put(text))


def _in(language: Language, text: str, how: Reading, *, sure: bool) -> Reader:
    return _put(text, how._replace(day_first=True), language.put(text, sure=sure))


def _put(text: str, how: Reading, words: list[Put]) -> Reader:
    english, places = zip(*words, strict=True) if words else ((), ())
    return Reader(text, english, how, places)


def _pieces(reader: Reader) -> list[Piece]:
    pieces: list[Piece] = []
    done = 0
    for i, word in enumerate(reader.words):
        if i >= done and (word in _STARTS or (word[0].isdecimal() and _stands_free(reader, i))):
            found = _read(reader, i)
            if found:
                pieces.append(piece(reader, i, found))
                done = found.next
                if len(pieces) == _MOST:
                    break
    return pieces


def _read(reader: Reader, i: int) -> Found | None:
    """The time that begins at this word, with the time of day around it."""
    try:
        time = clock.clock(reader, i)
        if time:
            return clock.before_date(reader, time, _behind(reader, time.next))
        word = reader.word(i)
        if word in _MEALTIME:
            hours = clock.meal_hours(reader, i)
            return clock.meal(reader, i, _behind(reader, i + 2)) if hours else None
        if word in PART and reader.word(i + 1) in ("of", "on"):
            return clock.part_of_date(reader, i, _behind(reader, i + 1))
        dated = _date(reader, i)
        return clock.after_date(reader, dated) if dated else None
    except (ValueError, OverflowError):
        return None  # a day no calendar has, a year no clock reaches


def _behind(reader: Reader, i: int) -> Found | None:
    """The date that follows a time of day."""
    i += reader.word(i) == ","
    i += reader.word(i) in ("on", "of")
    return simple_date(reader, i + (reader.word(i) == "the"))


def _stands_free(reader: Reader, i: int) -> bool:
    """Whether a number is not a piece of something larger: v2.3.1, 10-20, utf8."""
    if not reader.touches(i) or reader.word(i - 1) in "([{<\"'`|*=,;@—–":
        return True
    return not reader.how.spaced and reader.word(i - 1)[0] not in ".-/:"


def _date(reader: Reader, i: int) -> Found | None:
    word = reader.word(i)
    if word in THIRD:
        return parts.third_of(reader, i)
    if word in ORDINAL or (word[0].isdecimal() and len(word) == 1):
        found = parts.ordinal(reader, i)
        if found:
            return found
    return simple_date(reader, i)


def _span(reader: Reader, one: Piece) -> TimeSpan:
    found = one.found
    places = reader.spans[one.at : found.next]
    at, end = min(place[0] for place in places), max(place[1] for place in places)
    return TimeSpan(
        found.start,
        found.end,
        reader.text[at:end],
        found.granularity,
        at,
        found.relative,
        one.bound,
        found.confidence,
    )


def _apart(spans: list[TimeSpan]) -> list[TimeSpan]:
    """Without overlap: of two readings of the same words the longer one, else the first."""
    kept: list[TimeSpan] = []
    for span in sorted(spans, key=lambda span: (-len(span.text), not span.bound)):
        end = span.at + len(span.text)
        if all(end <= other.at or other.at + len(other.text) <= span.at for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda span: span.at)
