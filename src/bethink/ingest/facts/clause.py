"""Parse the first clause of a text, and the value it states.

A value is a number, a time, a name or a place, in a normalised form for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.ingest.facts.vocabulary import (
    ADJECTIVES,
    ADVERBS,
    APPROXIMATORS,
    CHANGE_VERBS,
    CONTINUATION_WORDS,
    CORRECTION_WORDS,
    DETERMINERS,
    MANNER_WORDS,
    NEGATIVE_CONTRACTIONS,
    NEWNESS_ADVERBS,
    NON_PLACES,
    NON_VALUES,
    NUMBER_WORDS,
    PAST_WORDS,
    PERIOD_WORDS,
    PLACE_NOUNS,
    POSSESSIVES,
    REASON_WORDS,
    RECURRING_TIME_WORDS,
    SEVERAL_VALUE_WORDS,
    SINCE_PREPOSITIONS,
    SINCE_TIMES,
    STATEMENT_LABELS,
    STATEMENT_OPENERS,
    SWITCH_VERBS,
    TIME_WORDS,
    UNCERTAIN_WORDS,
    UNITS,
)

MAX_CHARACTERS = 300  # characters; longer texts state more than one fact
MAX_CLAUSE_WORDS = 40
VERB_WINDOW = 16  # words: leaves room for an opening phrase
_QUOTE_CHARACTERS = "\"'`“”‘’«»*()[]"
_END_PUNCTUATION = ".,;:!?…"
_SENTENCE_END = lazy_pattern(r"[.!…]['\"”’)]?(?=\s+[^a-z\s])|\n|;(?=\s)|\s[—–-]{1,2}(?=\s)|\s\(")
_SENTENCE_MARKS = (". ", "! ", "; ", "\n", " (", " - ", " – ", " — ", '." ', ".\n", "… ", ".\t")
_NON_SENTENCE_STARTS = "-*>|#\"“'`{[<"
_ABBREVIATIONS = frozenset({"dr", "mr", "mrs", "ms", "prof", "st", "no", "vs", "approx", "ca"})
# With "=", a line of a program rather than a setting.
_CODE = lazy_pattern(r"[(){}\[\];$&|]|->|::")
_DIGIT = lazy_pattern(r"v?\d")
_IMPERATIVE_VERBS = frozenset({"set", "cut", "reset"})
_INTRANSITIVE_CHANGES = SWITCH_VERBS | {"upgraded", "downgraded"}
_YEAR = lazy_pattern(r"(?:19|20)\d\d")


class ClauseWord(NamedTuple):
    """A word as written and in lower case, and whether a pause follows."""

    raw: str
    low: str
    pause: bool = False


class Clause(NamedTuple):
    """The words of a statement.

    ``corrects`` says that it announces something new; ``whole`` that the text says nothing
    else.
    """

    words: tuple[ClauseWord, ...]
    corrects: bool
    whole: bool


def parse_clause(text: str, verbs: frozenset[str]) -> Clause | None:
    """Parse the first statement of a text; None if it states no fact.

    None for questions, guesses, plans, hearsay and lists, and where no verb is near the
    beginning.
    """
    if len(text) > MAX_CHARACTERS or "?" in text:
        return None
    # Cheap checks first: most texts state no fact.
    lower = text.lower().split()
    has_verb = not verbs.isdisjoint(lower[:VERB_WINDOW]) and not (
        "=" in lower and _CODE.search(text)
    )
    if len(lower) < 3 or not has_verb or lower[0][0] in _NON_SENTENCE_STARTS:
        return None
    first, rest = _first_sentence(text.strip())
    if rest:
        lower = first.lower().split()
    if not 3 <= len(lower) <= MAX_CLAUSE_WORDS or not UNCERTAIN_WORDS.isdisjoint(lower):
        return None
    pieces = first.split()
    words = _split_words(pieces)
    if any(
        word.low in UNCERTAIN_WORDS or word.low in SEVERAL_VALUE_WORDS for word in words
    ) or _is_planned(words):
        return None
    stripped = _strip_opening(words)
    if stripped is None:
        return None
    words, corrects = stripped
    if _has_implied_we(words):
        words = (ClauseWord("We", "we"), *words)
    return Clause(words, corrects, not rest) if len(words) >= 3 else None


def _is_planned(words: Sequence[ClauseWord]) -> bool:
    """Check for the modal "may" (not the month) or "plan to"."""
    return any(
        word.raw == "may" or (word.low in ("plan", "plans") and following.low == "to")
        for word, following in pairwise(words)
    )


def _has_implied_we(words: Sequence[ClauseWord]) -> bool:
    """Check for an implied "we", as in "Moved the key to vault B".

    Not "moved to vault B", which has no object, nor "set it to 5", which may be an order.
    """
    if len(words) < 3 or words[0].low not in CHANGE_VERBS - _IMPERATIVE_VERBS:
        return False
    return words[1].low not in ("to", "from", "into", "by") or words[0].low in _INTRANSITIVE_CHANGES


def _first_sentence(text: str) -> tuple[str, str]:
    if not any(mark in text for mark in _SENTENCE_MARKS):
        return text, ""
    for mark in _SENTENCE_END.finditer(text):
        before = text[: mark.start()].rpartition(" ")[2].lower()
        if mark.group()[0] == "." and (before in _ABBREVIATIONS or len(before) == 1):
            continue
        return text[: mark.start()], text[mark.end() :].strip(" .)")
    return text, ""


def _split_words(raw_words: Sequence[str]) -> tuple[ClauseWord, ...]:
    words: list[ClauseWord] = []
    for piece in raw_words:
        bare = piece.strip(_QUOTE_CHARACTERS)
        raw = bare.rstrip(_END_PUNCTUATION).rstrip(_QUOTE_CHARACTERS)
        if not raw:
            continue
        low = raw.lower().replace("’", "'")
        pause = len(raw) < len(bare) and bare[len(raw)] in ",:"
        parts = NEGATIVE_CONTRACTIONS.get(low, (low,))
        words.extend(ClauseWord(raw if part == low else part, part, pause) for part in parts)
    return tuple(words)


def _strip_opening(words: tuple[ClauseWord, ...]) -> tuple[tuple[ClauseWord, ...], bool] | None:
    """Strip leading labels and adverbs; None where they show that it is not a fact."""
    corrects = False
    while words and words[0].pause and words[0].low in STATEMENT_LABELS:
        corrects |= words[0].low in CORRECTION_WORDS
        words = words[1:]
    while words and words[0].low in STATEMENT_OPENERS:
        corrects |= words[0].low in CORRECTION_WORDS
        words = words[1:]
    if not words:
        return None
    if words[0].low in SINCE_PREPOSITIONS:
        start = _statement_start(words)
        if start is None:
            return None
        # "With caching" and "as a guest" are conditions; "after the holidays" is one, too,
        # unless the statement is a change.
        if words[0].low == "after":
            changed = any(word.low in CHANGE_VERBS for word in words[start:])
            return (words[start:], False) if changed else None
        return (words[start:], True) if _is_time(words[:start]) else None
    return words, corrects


def _is_time(opening: Sequence[ClauseWord]) -> bool:
    """Check whether a sentence opening says since when."""
    low = [word.low for word in opening]
    if low[0] == "as" and low[1:2] not in (["of"], ["from"]):
        return False
    # "From 5 users on" is a condition, "since 2.0" is not.
    date_pattern = _YEAR if low[0] in ("from", "with") else _DIGIT
    return any(word in SINCE_TIMES or date_pattern.match(word) for word in low[1:])


def _statement_start(words: Sequence[ClauseWord]) -> int | None:
    """Return where the statement begins after "since January", "as of May, ..."."""
    for at, word in enumerate(words[1:7], 1):
        if word.pause:
            return at + 1
    positions = [
        at for at, word in enumerate(words[2:8], 2) if word.low in DETERMINERS | {"we", "i"}
    ]
    return positions[-1] if positions and positions[-1] > 1 else None


MAX_VALUE_WORDS = 8
_CLOCK = lazy_pattern(r"\d{1,2}[:.]\d{2}|\d{1,2}(?:am|pm|st|nd|rd|th)|\d{4}-\d{2}-\d{2}")
_DOTTED = lazy_pattern(r"\d{1,2}\.\d{2}")
_NUMBER = lazy_pattern(r"[-+~<>≈€$£#]?\d")
_NAMELIKE = lazy_pattern(r"\d+[a-z]{4,}")
_SIGNS = frozenset("_/\\@:.0123456789")
_TIME_OPENERS = NUMBER_WORDS | {
    "every",
    "early",
    "late",
    "mid",
    "end",
    "a",
    "first",
    "last",
    "second",
}
_ARTICLES = frozenset({"the", "our", "an", "a"})
_FROM_WORDS = frozenset({"from", "starting", "effective", "as"})
_FROM_NOW_PHRASES = {
    *(("today",), ("now",), ("immediately",)),
    *((day, on) for day in ("today", "now") for on in ("on", "onward", "onwards")),
}
_LIMITING_WORDS = frozenset({"in", "on", "at", "for", "with", "by", "to", "of", "and", "or", "the"})
_UNIT_WORDS = frozenset(UNITS) | frozenset(UNITS.values())
_MAX_REPLACED_WORDS = 3  # words

ValueKind = Literal["time", "number", "name", "plain"]


class Value(NamedTuple):
    """A value in normalised form for comparison.

    ``recurring`` times repeat; ``now`` says that the words call it new; ``rest`` is what
    follows it, a reason or more; ``instead`` is the value it replaces.
    """

    key: str
    kind: ValueKind
    recurring: bool = False
    now: bool = False
    rest: tuple[ClauseWord, ...] = ()
    more: bool = False
    instead: str = ""


def parse_value(words: Sequence[ClauseWord]) -> Value | None:
    """Parse the value that the words begin with; None where there is none, or several."""
    kept: list[ClauseWord] = []
    now = more = False
    rest: tuple[ClauseWord, ...] = ()
    for at, word in enumerate(words):
        if kept and word.low in _FROM_WORDS and _is_from_now(words[at:]):
            now = True
            break
        if word.low in PAST_WORDS or (word.low == "as" and is_temporary_role(words[at + 1 :])):
            return None
        if word.low in ADVERBS:
            now |= word.low in NEWNESS_ADVERBS
        elif kept and word.low in ("and", "or", "&", "/"):
            return None
        elif kept and (word.low in REASON_WORDS or word.low in CONTINUATION_WORDS):
            rest, more = tuple(words[at:]), word.low in CONTINUATION_WORDS
            break
        else:
            kept.append(word)
        if word.pause and at + 1 < len(words):
            rest = tuple(words[at + 1 :])
            more = rest[0].low not in REASON_WORDS
            if more and any(
                following.low in ("and", "or") or following.pause for following in rest
            ):
                return None  # a list, most probably
            break
    kept = _strip_articles(kept)
    if not kept or len(kept) > MAX_VALUE_WORDS or kept[0].low in NON_VALUES:
        return None
    recurring = any(word.low in RECURRING_TIME_WORDS for word in kept)
    return Value(
        value_key(kept), _value_kind(kept), recurring, now, rest, more, _replaced_value(rest)
    )


def is_temporary_role(following: Sequence[ClauseWord]) -> bool:
    """Check for "as an experiment", "as a workaround": temporary or partial."""
    return bool(following) and following[0].low in ("a", "an")


def _is_from_now(words: Sequence[ClauseWord]) -> bool:
    """Check for "from today", "as of now", "starting today"."""
    low = tuple(word.low for word in words[:5])
    return (low[2:] if low[:2] == ("as", "of") else low[1:]) in _FROM_NOW_PHRASES


def strip_now(words: tuple[ClauseWord, ...]) -> tuple[tuple[ClauseWord, ...], bool]:
    """Strip "now" or "as of today" from the end; also return whether it was present."""
    now = False
    at = next((at for at, word in enumerate(words) if at and word.low in _FROM_WORDS), len(words))
    if at < len(words) and _is_from_now(words[at:]):
        words, now = words[:at], True
    while words and words[-1].low in ADVERBS:
        now |= words[-1].low in NEWNESS_ADVERBS
        words = words[:-1]
    return words, now


def _replaced_value(rest: Sequence[ClauseWord]) -> str:
    """Return the value named by "instead of", if it names only that.

    Not for "instead of spaces in Makefiles".
    """
    if [word.low for word in rest[:2]] not in (["instead", "of"], ["rather", "than"]):
        return ""
    end = next((at for at, word in enumerate(rest) if at > 1 and word.low in REASON_WORDS), None)
    replaced = [word for word in rest[2:end] if word.low not in ADVERBS]
    limited = any(word.low in _LIMITING_WORDS or word.pause for word in replaced[:-1])
    return "" if limited or not 1 <= len(replaced) <= _MAX_REPLACED_WORDS else value_key(replaced)


def _strip_articles(words: list[ClauseWord]) -> list[ClauseWord]:
    while words and words[0].low in APPROXIMATORS:
        words = words[1:]
    return words[1:] if len(words) > 1 and words[0].low in _ARTICLES - {"a", "an"} else words


def value_key(words: Sequence[ClauseWord]) -> str:
    """Normalise words for comparison: units in one spelling, numbers without commas."""
    kept: list[str] = []
    for at, word in enumerate(words, 1):
        low = UNITS.get(word.low, word.low)
        if word.raw in _ARTICLES and at < len(words):
            continue
        if kept and _NUMBER.match(kept[-1]) and low in UNITS.values():
            kept[-1] += low  # "30 s" and "30s" are one
        else:
            kept.append(low.replace(",", "") if _NUMBER.match(low) else low)
    return " ".join(kept)


def _value_kind(words: Sequence[ClauseWord]) -> ValueKind:
    first = words[0]
    if first.low in ("every", "each") and any(word.low in PERIOD_WORDS for word in words[1:4]):
        return "time"
    if _NUMBER.match(first.low) and len(words) > 1 and words[1].low in _UNIT_WORDS:
        return "number"  # raised to 45 s on Monday
    if _is_time_word(first) or (
        (_NUMBER.match(first.low) or first.low in _TIME_OPENERS)
        and any(map(_is_time_word, words[1:4]))
    ):
        return "time"
    if (_NUMBER.match(first.low) and not _NAMELIKE.fullmatch(first.low)) or (
        first.low in NUMBER_WORDS and len(words) > 1
    ):
        return "number"
    if first.raw[0].isupper() or _is_code(first.low):
        return "name"
    return "plain"


def _is_code(word: str) -> bool:
    """Check whether a word looks like an identifier, an address or a version."""
    return not _SIGNS.isdisjoint(word) or ("-" in word.strip("-") and word.isascii())


def _is_time_word(word: ClauseWord) -> bool:
    return word.low in TIME_WORDS or word.raw == "May" or _CLOCK.fullmatch(word.low) is not None


def as_version_or_price(value: Value) -> Value:
    """Return a dotted time as a number, where no "at" precedes: 3.12 is a version."""
    dotted = value.kind == "time" and _DOTTED.fullmatch(value.key) is not None
    return value._replace(kind="number") if dotted else value


def may_be_name(value: Value) -> bool:
    """Check whether a plain word may be a name rather than a description."""
    first = value.key.split()[0]
    is_inflected = first.endswith(("ed", "ing", "ly", "ous", "ful", "able", "ible", "less"))
    return first not in ADJECTIVES and not is_inflected and len(value.key.split()) <= 3


def is_place(value: Value) -> bool:
    """Check whether it may be a location: "in progress" and "in good shape" are not."""
    words = value.key.split()
    if value.kind != "time" and not TIME_WORDS.isdisjoint(words):
        return False  # in Lyon on Saturday: something that happens
    return (
        words[0] not in NON_PLACES and words[0] not in ADJECTIVES and POSSESSIVES.isdisjoint(words)
    )


def is_manner(value: Value) -> bool:
    """Check whether it is a language or format, not a location: "in German"."""
    return value.kind != "time" and value.key.split()[-1] in MANNER_WORDS


def is_known_place(value: Value) -> bool:
    """Check whether it names a place: "in vault A", not "in the works"."""
    words = value.key.split()
    is_named = value.kind != "plain" or any(_NUMBER.match(word) for word in words)
    return is_named or not PLACE_NOUNS.isdisjoint(words)


def values_agree(one: str, other: str) -> bool:
    """Check whether two values are compatible: equal, or one is more precise."""
    first, second = ({word.removesuffix("'s") for word in value.split()} for value in (one, other))
    if not (first <= second or second <= first):
        return False
    are_numbers = [bool(_NUMBER.match(word)) for word in first ^ second]
    return not any(are_numbers) or not any(_NUMBER.match(word) for word in first & second)
