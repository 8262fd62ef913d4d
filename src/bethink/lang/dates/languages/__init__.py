"""Languages whose words for times are known. A new one is a word list and a line here."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from bethink.lang.dates.languages import tables as chinese
from bethink.lang.dates.languages.language import ENGLISH, Language, TranslatedToken, fold
from bethink.lang.dates.languages.tables import FRENCH, GERMAN, SPANISH

__all__ = [
    "LANGUAGES",
    "Language",
    "TranslatedToken",
    "chinese",
    "detect_language",
    "fold",
    "has_chinese",
]


LANGUAGES: tuple[Language, ...] = (GERMAN, SPANISH, FRENCH)


def has_chinese(text: str) -> bool:
    """Whether a text may name a time in Chinese."""
    return not text.isascii() and not chinese.CHINESE_TIME_CHARS.isdisjoint(text)


def detect_language(words: AbstractSet[str], *, english: bool) -> Language | None:
    """Detect the language of most of a text's words; None is English, or unknown.

    Words of two languages ("was", "August") count for neither. On a tie with English,
    ``english`` (whether English times are among them) decides.
    """
    votes = [len(words & language.vocabulary) for language in LANGUAGES]
    most = max(votes)
    others = len((words & ENGLISH) - LANGUAGES[votes.index(most)].shared)
    wins = most > others or (most == others > 0 and not english)
    return LANGUAGES[votes.index(most)] if wins else None
