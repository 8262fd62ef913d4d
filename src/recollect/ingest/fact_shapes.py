"""Whether two statements are about the same thing in the same respect.

A newer fact hides an older one, so a second true fact must never be taken for a new
value of the first. Only two shapes count: the same sentence with another value in its
place, and a sentence that says itself that something changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from recollect.ingest.fact_tools import CODED
from recollect.ingest.fact_words import ADVERBS, NEWER, NUMBERS, PERIODS, REASONS, UNITS

_TOKEN = re.compile(r"[^\W_]+(?:[@./:_'-]+[^\W_]+)*|[€$£%]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_GLUED = re.compile(r"(\d+(?:[.,]\d+)?)([a-z]{1,4}|[%€$£])")
_LEFT_OUT = frozenset({"the", "a", "an"}) | NEWER | ADVERBS
_DENYING = frozenset(
    ("not", "no", "longer", "do", "does", "don't", "doesn't", "isn't", "aren't", "never",
     "stopped", "anymore")
)  # fmt: skip
_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}|\d{1,2}(?:am|pm)")
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")
_DIGIT = re.compile(r"\d")
_NAMELIKE = re.compile(r"\d+[a-z]{4,}")  # 1password
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SHAPES = (
    ("time", re.compile(r"\d{1,2}:\d{2}|\d{1,2}(?:am|pm)")),
    ("date", _DATE),
    ("number", _NUMBER),
    ("label", re.compile(r"[a-z]")),
    ("address", re.compile(r".*@.*")),
    ("path", re.compile(r".*[/\\\\].*")),
    ("code", re.compile(r".*[\d.].*")),
)
_DIMENSIONS = {
    **dict.fromkeys(("ms", "s", "min", "h", "days", "weeks", "months", "years"), "duration"),
    **dict.fromkeys(("week", "month", "year"), "duration"),
    **dict.fromkeys(("kb", "mb", "gb", "tb"), "size"),
    **dict.fromkeys(("mg", "g", "kg", "tons"), "mass"),
    "%": "share",
}
_CURRENCIES = frozenset("€$£")
_WEEKDAYS = frozenset(
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
)
_MONTHS = frozenset(
    ("january", "february", "march", "april", "may", "june", "july", "august", "september",
     "october", "november", "december")
)  # fmt: skip
_PLACED = frozenset(("in", "at", "on", "inside", "within", "to", "into", "by", "with", "for"))
_CADENCES = frozenset(
    ("hourly", "daily", "nightly", "weekly", "biweekly", "monthly", "quarterly", "yearly")
)
_EVERY_DAY = (["every", "days"], ["each", "days"], ["daily"])
_INSTEAD = (["over"], ["to"], ["instead", "of"], ["rather", "than"])
_LIMITING = _PLACED | {"during", "under", "within", "between", "per", "across"}
_DAYS = frozenset({"weekday", "month", "date"})
_MOST_VALUE = 3  # words of a value that may be exchanged


def tokens(text: str) -> list[str]:
    """A text's words without articles and words for "now", numbers apart from units.

    An "a" at the end, or in capitals within, is no article: vault A.
    """
    words = _TOKEN.findall(_THOUSANDS.sub("", text) if "," in text else text)
    kept = []
    for at, word in enumerate(words):
        low = word.casefold()
        label = low == "a" and at > 0 and (word == "A" or at == len(words) - 1)
        if label or low not in _LEFT_OUT:
            kept += [UNITS.get(part, part) for part in _parts(low)]
    return kept


def _parts(word: str) -> tuple[str, ...]:
    glued = None if _CLOCK.fullmatch(word) else _GLUED.fullmatch(word)
    return glued.groups() if glued else (word,)


def restates(newer: str, older: str, *, names: bool) -> bool:
    """Whether one text is the other with another value of the same shape in its place.

    With ``names`` one plain word may stand for another; else only numbers, times, codes
    and labels may: two names of places may both be right.
    """
    one, other = tokens(newer), tokens(older)
    if one[:1] != other[:1] and one[1:2] == other[1:2]:
        one, other = one[1:], other[1:]  # two names of what both are known to be about
    start = _shared(one, other)
    end = _shared(one[start:][::-1], other[start:][::-1])
    changed = (one[start : len(one) - end], other[start : len(other) - end])
    if not all(changed) or len(changed[0]) != len(changed[1]) or len(changed[0]) > _MOST_VALUE:
        return False
    shapes = list(map(shape, changed[0]))
    if shapes != list(map(shape, changed[1])):
        return False
    if "word" not in shapes:
        return True
    alike = is_name(newer, changed[0][0]) == is_name(older, changed[1][0])
    return names and len(shapes) == 1 and alike


def denies(newer: str, older: str) -> bool:
    """Whether one text is the other with a denial in it."""
    return _plain(newer) == _plain(older)


class Telling(NamedTuple):
    """A text, the value of the fact it states, and what that is about."""

    text: str
    value: str
    subject: str
    attribute: str
    before: str = ""

    @property
    def names_tool(self) -> bool:
        """Whether the value is something used, which may come with its version."""
        return self.attribute.startswith("uses")


def replaces(newer: Telling, older: Telling, *, whole: bool) -> bool:
    """Whether a text that says itself that something changed changes what another says:
    a value of the same form, in the same relation and, where that is the ``whole`` of
    what the other says, under the same conditions."""
    now, then = tokens(newer.value), tokens(older.value)
    if _form(now, tool=newer.names_tool) != _form(then, tool=older.names_tool):
        return False
    one, other = _around(tokens(newer.text), now), _around(tokens(older.text), then)
    if one is None or other is None or not same_limits(newer, older):
        return False
    plain = any(shape(word) == "word" and word not in _PLACED for word in now)
    plain = plain and now[:1] != then[:1]
    if plain and is_name(newer.text, now[0]) != is_name(older.text, then[0]):
        return False
    if not _same_relation(one[0], other[0], plain):
        return False
    return not whole or _same_conditions(_told(one[1], newer), _told(other[1], older))


def same_terms(newer: Telling, older: Telling) -> bool:
    """Whether both values are told under the same conditions, as far as that can be seen."""
    one = _around(tokens(newer.text), tokens(newer.value))
    other = _around(tokens(older.text), tokens(older.value))
    if one is None or other is None:
        return False
    return _same_conditions(_told(one[1], newer), _told(other[1], older))


def same_but_who(newer: Telling, older: Telling) -> bool:
    """Whether the texts say the same of two: "Ana owns billing", "Ben owns billing"."""
    now, then = tokens(newer.value), tokens(older.value)
    one, other = tokens(newer.text), tokens(older.text)
    begin = one[: len(now)] == now and other[: len(then)] == then
    return begin and one[len(now) :] == other[len(then) :]


def _told(behind: Sequence[str], telling: Telling) -> list[str]:
    """What follows a value, without what it is about, "for billing", and what it replaced."""
    about = ["for", *tokens(telling.subject)]
    if list(behind[: len(about)]) == about:
        return list(behind[len(about) :])
    left = tokens(telling.before)
    for opening in _INSTEAD if left else ():
        if list(behind) == [*opening, *left]:
            return []
    return list(behind)


def is_cadence(words: Sequence[str]) -> bool:
    """Whether it says how often, and nothing else: daily, every 6 hours."""
    if len(words) == 1:
        return words[0] in _CADENCES
    spans = all(shape(word) in ("number", "duration") or word in PERIODS for word in words[1:])
    return bool(words) and words[0] in ("every", "each") and spans


def same_frame(newer: Telling, older: Telling) -> bool:
    """Whether the texts are the same but for how often."""
    now, then = tokens(newer.value), tokens(older.value)
    one, other = tokens(newer.text), tokens(older.text)
    often = is_cadence(now) and is_cadence(then)
    ends = one[-len(now) :] == now and other[-len(then) :] == then
    return often and ends and one[: -len(now)] == other[: -len(then)]


def _spoken(word: str) -> str:
    """The shape of a word; fly.io and flake8 are names, though they look like codes."""
    kind = shape(word)
    named = word.rstrip("0123456789")
    spelt = word in CODED or (len(named) > 2 and not _DIGIT.search(named))
    spelt = spelt or _NAMELIKE.fullmatch(word) is not None
    return "word" if kind == "code" and spelt else kind


def same_limits(newer: Telling, older: Telling) -> bool:
    """Whether two values hold under the same conditions: "on staging" is one. What belongs to
    a time is part of it: "on Mondays at ten"."""
    timed = newer.attribute.endswith("time")
    return timed or _limits(newer.value) == _limits(older.value)


def _limits(value: str) -> list[str]:
    words = _without_path(tokens(value))
    at = next((at for at, word in enumerate(words) if at and word in _LIMITING), len(words))
    return [] if at + 1 < len(words) and shape(words[at + 1]) in _DAYS else words[at:]


def _without_path(words: Sequence[str]) -> list[str]:
    """Without where in it: "in Vault at secret/deploy" is in Vault."""
    inside = len(words) > 2 and words[-2] in ("at", "under") and shape(words[-1]) == "path"
    return list(words[:-2] if inside else words)


def _form(words: Sequence[str], *, tool: bool) -> tuple[str, ...]:
    """The shapes of a value's words; names of one word and of two are alike, and so are the
    ways of naming a day."""
    words = _without_path(words)
    shapes = [_spoken(word) for word in words]
    if is_cadence(words):
        return ("cadence",)
    if shapes[:1] == ["time"] and list(words[1:]) in _EVERY_DAY:
        return ("time",)
    if _DAYS.intersection(shapes) and _DAYS.issuperset(set(shapes) - {"number"}):
        return ("day",)
    kept = tuple(one for one, before in zip(shapes, ["", *shapes], strict=False)
                 if one != "word" or before != "word")  # fmt: skip
    versioned = (
        tool and len(kept) == 2 and kept[0] == "word" and kept[1] in ("number", "code", "time")
    )
    return kept[:1] if versioned else kept


def is_name(text: str, word: str) -> bool:
    """Whether a text writes a word as a name: in Madrid, but in a flat."""
    found = (one.lstrip("0123456789") for one in _TOKEN.findall(text) if one.casefold() == word)
    return any(one[:1].isupper() for one in found)


def differs_in_words(one: str, other: str) -> bool:
    """Whether plain words of two values of one shape differ, not only numbers or labels."""
    pairs = zip(tokens(one), tokens(other), strict=False)
    return any(first != second and shape(first) == "word" for first, second in pairs)


def shape(word: str) -> str:
    """What kind of word it is, as far as values are exchanged for their like."""
    if word in _DIMENSIONS or word in _CURRENCIES:
        return _DIMENSIONS.get(word, word)
    if word.removesuffix("s") in _WEEKDAYS:
        return "weekday"
    if word in _MONTHS:
        return "month"
    if word in NUMBERS:
        return "number"
    return next((name for name, pattern in _SHAPES if pattern.fullmatch(word)), "word")


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


def _plain(text: str) -> list[str]:
    return [word.removesuffix("s") for word in tokens(text) if word not in _DENYING | ADVERBS]


def _around(words: Sequence[str], value: Sequence[str]) -> tuple[str, list[str]] | None:
    """The word before a value, if it says how, and what follows it."""
    for at in range(len(words) - len(value), -1, -1):
        if list(words[at : at + len(value)]) == list(value):
            if at == 0:
                return "", []  # who does it, not what is done: "Ana owns the module"
            before = words[at - 1]
            return before if before in _PLACED else "", list(words[at + len(value) :])
    return None


def _same_relation(now: str, then: str, plain: bool) -> bool:
    """Where something moved to is where it was in; for plain words "on" is another thing."""
    where = _PLACED - {"on"} if plain else _PLACED
    moved = {now, then} & {"to", "into"}
    return now == then or (bool(moved) and {now, then} <= where | {""})


def _same_conditions(now: Sequence[str], then: Sequence[str]) -> bool:
    """What follows the values is the same; a change may say why and since when."""
    told = (
        (REASONS - {"per"})
        | {"since", "from", "as", "this", "last", "today", "yesterday"}
        | ADVERBS
    )
    since = len(now) > 1 and now[0] in ("in", "on") and shape(now[1]) in _DAYS
    kept = [] if now and (now[0] in told or since) else list(now)
    return kept == list(then)
