"""Languages whose words for times are known. A new one is one word list and one line here."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from recollect.dates.languages import chinese
from recollect.dates.languages.french import FRENCH
from recollect.dates.languages.german import GERMAN
from recollect.dates.languages.language import ENGLISH, Language, Put, fold
from recollect.dates.languages.spanish import SPANISH

LANGUAGES: tuple[Language, ...] = (GERMAN, SPANISH, FRENCH)

__all__ = ["LANGUAGES", "Language", "Put", "chinese", "fold", "has_chinese", "spoken"]


def has_chinese(text: str) -> bool:
    """Whether a text may name a time in Chinese."""
    return not text.isascii() and not chinese.TELLTALE.isdisjoint(text)


def spoken(words: AbstractSet[str], *, english: bool) -> Language | None:
    """The language most of a text's words are of; None is English, or not known.

    Words of both ("was", "August") speak for neither. Where as many are English, it
    depends on whether ``english`` times are among them.
    """
    votes = [len(words & language.vocabulary) for language in LANGUAGES]
    most = max(votes)
    others = len((words & ENGLISH) - LANGUAGES[votes.index(most)].shared)
    wins = most > others or (most == others > 0 and not english)
    return LANGUAGES[votes.index(most)] if wins else None
