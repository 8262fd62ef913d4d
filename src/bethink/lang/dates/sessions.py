"""Sessions that a question counts: "our second session", "two sessions ago"."""

from __future__ import annotations

from functools import cache

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates.events import codes_for
from bethink.lang.dates.languages import CHINESE_NUMBER, fold, language_of, parse_number
from bethink.lang.dates.relative import COUNTABLE_UNITS
from bethink.lang.dates.tokens import NUMBER, ORDINAL, TOKEN
from bethink.lang.words import word_set_of

_LATER_ORDINALS = {"sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}
_ORDINALS = {word: n for word, n in (ORDINAL | _LATER_ORDINALS).items() if n > 0}
_LAST = frozenset({"last", "last~", "~last", "previous", "latest", "final"})
_N = r"([1-9]\d{0,4})"
# Over the words of `_simplified`, each with a space behind: the sign says from which end the
# number counts; 0 are so many last ones. "Session 30 minutes" and "chat 12:30" count nothing.
_PHRASES = tuple(
    (lazy_pattern(rf"(?<!\S)(?:{phrase})"), sign)
    for phrase, sign in (
        (rf"#{_N} (?:to |from )?(?:the )?last S ", -1),
        (r"penultimate S |S penultimate ", -2),
        (rf"#{_N} S |{_N} (?:st|nd|rd|th|e|eme) S |{_N} \. S ", 1),
        (rf"S (?:number |no |nr )?{_N} (?!U |% |[:./-] \d)", 1),
        (rf"{_N} S ago |(?:ago|il \w+ \w+) {_N} S ", -1),
        (r"S before (?:the )?last ", -2),
        (rf"last~? {_N} S |{_N} last~? S ", 0),
        (r"last~? S |S last~ ", -1),
    )
)
_OF_CHINESE = "[次个個场場](?:会话|对话|聊天|谈话|會話|對話|談話)"
_CHINESE_PHRASES = (
    (lazy_pattern(rf"第(?!0)({CHINESE_NUMBER}){_OF_CHINESE}"), 1),
    (lazy_pattern(rf"(?<!\d)(?!0)({CHINESE_NUMBER}){_OF_CHINESE}[之以]?前"), -1),
    (lazy_pattern(rf"上上{_OF_CHINESE}"), -2),
    (lazy_pattern(rf"(?:上|最[后後近]一?){_OF_CHINESE}"), -1),
)


class CountedSessions(NamedTuple):
    """Sessions by their order: a slice of all, oldest first, and the words that say so."""

    order: slice
    said: str


def find_sessions(text: str) -> CountedSessions | None:
    """Find the sessions that a question counts; None where it counts none."""
    if not text.isascii():
        for pattern, sign in _CHINESE_PHRASES:
            if match := pattern.search(text):
                number = parse_number(match[1]) if match.groups() else 1
                return CountedSessions(_slice_of(sign, number), match[0])
    tokens, codes = list(TOKEN.finditer(text)), codes_for(text)
    words = [fold(token[0]) for token in tokens]
    if _nouns(codes).isdisjoint(words):
        return None
    line = "".join(f"{_simplified(word, codes)} " for word in words)
    for pattern, sign in _PHRASES:
        if match := pattern.search(line):
            number = next((int(group) for group in match.groups() if group), 1)
            first = line[: match.start()].count(" ")
            last = first + match[0].count(" ") - 1
            said = text[tokens[first].start() : tokens[last].end()]
            return CountedSessions(_slice_of(sign, number), said)
    return None


def _slice_of(sign: int, number: int) -> slice:
    if sign == 0:
        return slice(-number, None)
    place = number - 1 if sign > 0 else sign * number
    return slice(place, place + 1 or None)


def _simplified(word: str, codes: tuple[str, ...]) -> str:
    """S for a session, U for a unit of time, figures, an ordinal as #2; last, ago in English."""
    meant = word if word in NUMBER else _meanings(codes).get(word, word)
    if word in _nouns(codes):
        return "S"
    if meant in _ORDINALS:
        return f"#{_ORDINALS[meant]}"
    if meant in NUMBER and word not in ("a", "an"):
        return str(NUMBER[meant])
    if meant in _LAST:
        return "last" if meant in (word, "last") else "last~"
    return "ago" if meant.startswith("ago<") else "U" if meant in COUNTABLE_UNITS else meant


@cache
def _nouns(codes: tuple[str, ...]) -> frozenset[str]:
    """The words for sessions."""
    return frozenset(
        fold(word) for code in codes for word in word_set_of(code, "events", "sessions")
    )


@cache
def _meanings(codes: tuple[str, ...]) -> dict[str, str]:
    """What words of other languages than English mean in English."""
    found: dict[str, str] = {}
    for code in codes[1:]:
        found = language_of(code).words | found
    return found
