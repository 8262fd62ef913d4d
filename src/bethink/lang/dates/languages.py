"""Languages whose words for times are known: word lists that translate them to English.

A new language is a file in ``lang/data`` with a ``[dates]`` section, and its code below.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cached_property

from bethink.lang.dates.tokens import (
    DAY_PART,
    MONTH,
    NUMBER,
    SEASON,
    TOKEN,
    UNIT,
    VAGUE,
    WEEKDAY,
    CharSpan,
)
from bethink.lang.words import MONTHS, WEEKDAYS, load_words, word_set_of

TranslatedToken = tuple[str, CharSpan]

# Letters are compared without their marks, one for one, so that positions stay.
_FOLD = str.maketrans("áàâäãéèêëíìîïóòôöõúùûüñç", "aaaaaeeeeiiiiooooouuuunc")
_TIME_NAMES = UNIT.keys() | WEEKDAY.keys() | MONTH.keys() | SEASON.keys() | DAY_PART.keys()
_TIME_NAMES |= {"christmas", "easter"}
_ANCHORS = _TIME_NAMES | {"today", "yesterday", "tomorrow", "tonight", "recently", "noon"}
_ANCHORS |= {"beginning", "middle", "end"}
_COUNT_WORDS = NUMBER.keys() | VAGUE.keys() | {"of", "half"}
# Words that count as English.
ENGLISH = _TIME_NAMES | word_set_of("en", "stop_words", "speaking")
_POINTERS = {"last~": "last", "next~": "next"}


def fold(word: str) -> str:
    """Normalize a word for the lists: lower case without diacritics."""
    lower = word.lower()
    return lower if lower.isascii() else lower.translate(_FOLD)


def parse_word_list(lists: str) -> dict[str, str]:
    """Parse lines like ``woche | wochen = week``."""
    words: dict[str, str] = {}
    for line in lists.strip().splitlines():
        keys, _, english = line.partition("=")
        words |= dict.fromkeys((fold(name.strip()) for name in keys.split("|")), english.strip())
    return words


def _time_words(code: str) -> dict[str, str]:
    """The words of a language for times, and what they mean in English."""
    data = load_words(code)
    months = dict(zip(data["calendar"]["months"].split(), MONTHS, strict=True))
    weekdays = dict(zip(data["calendar"]["weekdays"].split(), WEEKDAYS, strict=True))
    dates = data["dates"]
    words = {fold(word): english for word, english in (months | weekdays).items()}
    if "day_parts" in dates:  # a language of compounds: Montagabend, Maiwoche
        parts = parse_word_list(dates["day_parts"])
        words |= parts
        words |= {
            fold(f"{day}{part}"): f"{name} {english}"
            for day, name in weekdays.items()
            for part, english in parts.items()
        }
        week = dates["month_week"]
        words |= {fold(f"{month}{week}"): f"week of {name}" for month, name in months.items()}
    return words | parse_word_list(dates["words"])


class Language:
    """Word lists that translate a language's words for times to English.

    ``common`` words are stop words; ``speaking`` words also identify the language.
    ``unsure`` words mean something else in other languages.
    """

    def __init__(self, code: str) -> None:
        """Read the word lists; nothing is compiled yet, since most texts use one language."""
        self.code = code
        self.words = _time_words(code)
        self.common = frozenset(map(fold, word_set_of(code, "stop_words", "search")))
        self.speaking = frozenset(map(fold, word_set_of(code, "dates", "speaking")))
        self.unsure = frozenset(map(fold, word_set_of(code, "dates", "unsure")))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words that identify this language."""
        # A single letter is an ending or a name in any language.
        words = self.speaking | {word for word in self.common if len(word) > 1}
        words |= {key for key in self.words if key.isalpha() and len(key) > 1}
        return words - ENGLISH

    @cached_property
    def shared(self) -> frozenset[str]:
        """The words that are also English."""
        return (self.common | self.words.keys()) & ENGLISH

    @cached_property
    def telltales(self) -> frozenset[str]:
        """Words at least one of which any time in this language contains."""
        heads = [(TOKEN.findall(key)[0], english) for key, english in self.words.items()]
        anchored = {word for word, english in heads if not _ANCHORS.isdisjoint(english.split())}
        return frozenset(anchored) - _TIME_NAMES

    @cached_property
    def heads(self) -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
        """Phrases by their first word, the longest first."""
        heads: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for key, english in self.words.items():
            phrase = tuple(TOKEN.findall(key))
            heads.setdefault(phrase[0], []).append((phrase, tuple(english.split())))
        for phrases in heads.values():
            phrases.sort(key=lambda entry: -len(entry[0]))
        return heads

    def translate(self, text: str, *, sure: bool) -> list[TranslatedToken]:
        """Translate a text to English words for times; other words are marked by ``_``."""
        tokens = [(fold(match[0]), match.span()) for match in TOKEN.finditer(text)]
        out: list[TranslatedToken] = []
        i = 0
        while i < len(tokens):
            word, span = tokens[i]
            length, english = self._match_at(tokens, i, sure=sure)
            if length:
                whole = (span[0], tokens[i + length - 1][1][1])
                out += [(word_of_phrase, whole) for word_of_phrase in english]
            else:
                out.append((f"_{word}" if word[0].isalpha() else word, span))
            i += length or 1
        return _reorder(out)

    def _match_at(
        self, tokens: list[TranslatedToken], i: int, *, sure: bool
    ) -> tuple[int, tuple[str, ...]]:
        word = tokens[i][0]
        if sure and word in self.unsure:
            return 0, ()
        for phrase, english in self.heads.get(word, ()):
            found = tokens[i : i + len(phrase)]
            if len(found) == len(phrase) and all(
                expected == token[0] for expected, token in zip(phrase, found, strict=True)
            ):
                return len(phrase), english
        return 0, ()


def _reorder(words: list[TranslatedToken]) -> list[TranslatedToken]:
    """Reorder to English word order: three days ago, last week, the last three days."""
    out: list[TranslatedToken] = []
    pending: tuple[int, TranslatedToken] | None = None
    for i, (word, span) in enumerate(words):
        if word.startswith("ago<"):
            unit = _amount_unit_index(words, i + 1)
            pending = (unit, ("ago", span)) if unit else pending
            if not unit:
                out.append((word.removeprefix("ago<") or "_", span))
        elif word in _POINTERS:
            _insert_pointer(
                out, (_POINTERS[word], span), words[i + 1][0] if i + 1 < len(words) else ""
            )
        else:
            out.append((word, span))
        if pending and pending[0] == i:
            out.append(pending[1])
            pending = None
    return out


def _amount_unit_index(words: list[TranslatedToken], i: int) -> int:
    """Index of the unit of an amount that begins here; 0 where there is none."""
    for at in range(i, min(i + 4, len(words))):
        word = words[at][0]
        if word in UNIT:
            return at if at > i else 0
        if word not in _COUNT_WORDS and not word.isdecimal():
            return 0
    return 0


def _insert_pointer(out: list[TranslatedToken], pointer: TranslatedToken, following: str) -> None:
    """Insert last or next before the noun it belongs to."""
    before = out[-1][0] if out else ""
    counted = following in UNIT and (before in _COUNT_WORDS or before.isdecimal())
    out.insert(len(out) - (counted or before in _TIME_NAMES), pointer)


LANGUAGES = tuple(map(Language, ("de", "es", "fr")))


def detect_language(words: AbstractSet[str], *, english: bool) -> Language | None:
    """Detect the language of most of a text's words; None is English, or unknown.

    Words of two languages ("was", "August") count for neither. On a tie with English,
    ``english`` (whether English times are among them) decides.
    """
    votes = [len(words & language.vocabulary) for language in LANGUAGES]
    max_votes = max(votes)
    english_votes = len((words & ENGLISH) - LANGUAGES[votes.index(max_votes)].shared)
    wins = max_votes > english_votes or (max_votes == english_votes > 0 and not english)
    return LANGUAGES[votes.index(max_votes)] if wins else None
