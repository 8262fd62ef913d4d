"""Reads the one clause of a text that may state a fact: its words, without what opens it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from recollect.ingest.fact_words import (
    CHANGES,
    CORRECTING,
    DETERMINERS,
    LABELS,
    OPENERS,
    SEVERAL,
    SINCE,
    SINCE_WHEN,
    SWITCHES,
    UNSURE,
)

LONGEST = 300  # characters; what takes longer to say is more than one fact
MOST_WORDS = 40
NEAR = 16  # words: room for what opens a sentence
_STRIPPED = "\"'`“”‘’«»*()[]"
_ENDS = ".,;:!?…"
_SENTENCE_END = re.compile(r"[.!…]['\"”’)]?(?=\s+[^a-z\s])|\n|;(?=\s)|\s[—–-]{1,2}(?=\s)|\s\(")
_MARKS = (". ", "! ", "; ", "\n", " (", " - ", " – ", " — ", '." ', ".\n", "… ", ".\t")
_NO_SENTENCE = "-*>|#\"“'`{[<"
_SHORTENED = frozenset({"dr", "mr", "mrs", "ms", "prof", "st", "no", "vs", "approx", "ca"})
# With "=", a line of a program rather than a setting.
_CODE = re.compile(r"[(){}\[\];$&|]|->|::")
_DIGIT = re.compile(r"v?\d")
_ORDERS = frozenset({"set", "cut", "reset"})
_ALONE = SWITCHES | {"upgraded", "downgraded"}
_YEAR = re.compile(r"(?:19|20)\d\d")
_NEGATIVES = {
    "isn't": ("is", "not"),
    "aren't": ("are", "not"),
    "don't": ("do", "not"),
    "doesn't": ("does", "not"),
    "wasn't": ("was", "not"),
    "weren't": ("were", "not"),
}


class Word(NamedTuple):
    """A word as written without punctuation, in small letters, and whether a pause follows."""

    raw: str
    low: str
    pause: bool = False


class Clause(NamedTuple):
    """The words of a statement. ``corrects`` says that it speaks of something new;
    ``whole`` that the text says nothing else."""

    words: tuple[Word, ...]
    corrects: bool
    whole: bool


def read_clause(text: str, verbs: frozenset[str]) -> Clause | None:
    """The first statement of a text; None for questions, guesses, plans, hearsay, lists, and
    where none of the verbs is near its beginning."""
    if len(text) > LONGEST or "?" in text:
        return None
    # The quick ways out come first: most texts state no fact.
    lower = text.lower().split()
    known = not verbs.isdisjoint(lower[:NEAR]) and not ("=" in lower and _CODE.search(text))
    if len(lower) < 3 or not known or lower[0][0] in _NO_SENTENCE:
        return None
    first, rest = _first_sentence(text.strip())
    if rest:
        lower = first.lower().split()
    if not 3 <= len(lower) <= MOST_WORDS or not UNSURE.isdisjoint(lower):
        return None
    pieces = first.split()
    words = _words(pieces)
    if any(word.low in UNSURE or word.low in SEVERAL for word in words) or _is_planned(words):
        return None
    opened = _opened(words)
    if opened is None:
        return None
    words, corrects = opened
    if _is_done_by_us(words):
        words = (Word("We", "we"), *words)
    return Clause(words, corrects, not rest) if len(words) >= 3 else None


def _is_planned(words: Sequence[Word]) -> bool:
    """Whether "may" is no month, or something is planned "to" be."""
    return any(
        word.raw == "may" or (word.low in ("plan", "plans") and behind.low == "to")
        for word, behind in pairwise(words)
    )


def _is_done_by_us(words: Sequence[Word]) -> bool:
    """As in "Moved the key to vault B": as one writes down what one did. Not "moved to
    vault B", which does not say what, nor "set it to 5", which may be an order."""
    if len(words) < 3 or words[0].low not in CHANGES - _ORDERS:
        return False
    return words[1].low not in ("to", "from", "into", "by") or words[0].low in _ALONE


def _first_sentence(text: str) -> tuple[str, str]:
    if not any(mark in text for mark in _MARKS):
        return text, ""
    for mark in _SENTENCE_END.finditer(text):
        before = text[: mark.start()].rpartition(" ")[2].lower()
        if mark.group()[0] == "." and (before in _SHORTENED or len(before) == 1):
            continue
        return text[: mark.start()], text[mark.end() :].strip(" .)")
    return text, ""


def _words(pieces: Sequence[str]) -> tuple[Word, ...]:
    words: list[Word] = []
    for piece in pieces:
        bare = piece.strip(_STRIPPED)
        raw = bare.rstrip(_ENDS).rstrip(_STRIPPED)
        if not raw:
            continue
        low = raw.lower().replace("’", "'")
        pause = len(raw) < len(bare) and bare[len(raw)] in ",:"
        parts = _NEGATIVES.get(low, (low,))
        words.extend(Word(raw if part == low else part, part, pause) for part in parts)
    return tuple(words)


def _opened(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], bool] | None:
    """Without labels and adverbs in front; None where a label says that it is no fact."""
    corrects = False
    while words and words[0].pause and words[0].low in LABELS:
        corrects |= words[0].low in CORRECTING
        words = words[1:]
    while words and words[0].low in OPENERS:
        corrects |= words[0].low in CORRECTING
        words = words[1:]
    if not words:
        return None
    if words[0].low in SINCE:
        start = _behind_time(words)
        if start is None:
            return None
        # "With caching" and "as a guest" are conditions; "after the holidays" is one, too,
        # unless something is said to have changed.
        if words[0].low == "after":
            changed = any(word.low in CHANGES for word in words[start:])
            return (words[start:], False) if changed else None
        return (words[start:], True) if _is_time(words[:start]) else None
    return words, corrects


def _is_time(opening: Sequence[Word]) -> bool:
    """Whether what opens a sentence says since when."""
    low = [word.low for word in opening]
    if low[0] == "as" and low[1:2] not in (["of"], ["from"]):
        return False
    # "From 5 users on" is a condition, "since 2.0" is not.
    dated = _YEAR if low[0] in ("from", "with") else _DIGIT
    return any(word in SINCE_WHEN or dated.match(word) for word in low[1:])


def _behind_time(words: Sequence[Word]) -> int | None:
    """Where the statement begins behind "since January", "as of May, ..."."""
    for at, word in enumerate(words[1:7], 1):
        if word.pause:
            return at + 1
    places = [at for at, word in enumerate(words[2:8], 2) if word.low in DETERMINERS | {"we", "i"}]
    return places[-1] if places and places[-1] > 1 else None
