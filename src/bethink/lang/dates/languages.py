"""Languages whose words for times are known: word lists that translate them to English.

A new language is a file in ``lang/data`` with a ``[dates]`` section, and its code below. The
files of ``FURTHER`` languages are read when a text has words of theirs (``markers.toml``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property, partial

from bethink.core.lazy import lazy_pattern
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
from bethink.lang.words import (
    MONTHS,
    WEEKDAYS,
    load_section,
    load_words,
    parse_mapping,
    parse_rules,
    word_set_of,
)

TranslatedToken = tuple[str, CharSpan]

# Letters are compared without their marks, one for one, so that positions stay.
_FOLD = str.maketrans("áàâäãéèêëíìîïóòôöõúùûüñç", "aaaaaeeeeiiiiooooouuuunc")
_TIME_NAMES = UNIT.keys() | WEEKDAY.keys() | MONTH.keys() | SEASON.keys() | DAY_PART.keys()
_ANCHORS = _TIME_NAMES | {"today", "yesterday", "tomorrow", "tonight", "recently", "noon"}
_ANCHORS |= {"beginning", "middle", "end"}
_COUNT_WORDS = NUMBER.keys() | VAGUE.keys() | {"of", "half"}
# Words that count as English.
ENGLISH = _TIME_NAMES | word_set_of("en", "stop_words", "speaking")
_POINTERS = {"last~": "last", "next~": "next", "~last": "last"}


def fold(word: str) -> str:
    """Normalize a word for the lists: lower case without diacritics."""
    lower = word.lower()
    return lower if lower.isascii() else lower.translate(_FOLD)


def parse_word_list(lists: str) -> dict[str, str]:
    """Parse lines like ``woche | wochen = week``."""
    return {fold(name): english for name, english in parse_mapping(lists, "|").items()}


def _time_words(code: str) -> dict[str, str]:
    """The words of a language for times, and what they mean in English."""
    calendar, dates = load_section(code, "calendar"), load_section(code, "dates")
    months = dict(zip(calendar["months"].split(), MONTHS, strict=True))
    weekdays = dict(zip(calendar["weekdays"].split(), WEEKDAYS, strict=True))
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
    holidays = parse_rules(load_section(code, "holidays")["days"])
    words |= {fold(name): f"@{rule}" for name, rule in holidays.items()}
    return words | parse_word_list(dates["words"])


def _names_time(word: str) -> bool:
    """Whether an English word names a unit, a part of the calendar or a holiday (@)."""
    return word in _TIME_NAMES or word.startswith("@")


def _has_anchor(english: Sequence[str]) -> bool:
    """Whether a translated phrase names a time, and does not only count or point."""
    return any(word in _ANCHORS or word.startswith("@") for word in english)


class Language:
    """Word lists that translate a language's words for times to English.

    Each list is made when it is first needed: most texts use one language.
    """

    def __init__(self, code: str) -> None:
        self.code = code

    def may_be_of(self, words: AbstractSet[str]) -> bool:
        """Whether one of the words is in the vocabulary or the telltales, at less cost."""
        known = _near_words().get(self.code)
        return known is None or not known.isdisjoint(words)

    @cached_property
    def words(self) -> dict[str, str]:
        """The words for times, and what they mean in English."""
        return _time_words(self.code)

    @cached_property
    def common(self) -> frozenset[str]:
        """The stop words."""
        return frozenset(map(fold, word_set_of(self.code, "stop_words", "search")))

    @cached_property
    def unsure(self) -> frozenset[str]:
        """Words that mean something else in other languages, unless a phrase makes them sure."""
        return frozenset(map(fold, word_set_of(self.code, "dates", "unsure")))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words that identify this language."""
        speaking = frozenset(map(fold, word_set_of(self.code, "dates", "speaking")))
        # A single letter is an ending or a name in any language.
        words = speaking | {word for word in self.common if len(word) > 1}
        words |= {key for key in self.words if key.isalpha() and len(key) > 1}
        return words - ENGLISH

    @cached_property
    def shared(self) -> frozenset[str]:
        """The words that are also English."""
        return (self.common | self.words.keys()) & ENGLISH

    @cached_property
    def telltales(self) -> frozenset[str]:
        """Words at least one of which any time in this language contains."""
        anchored = (
            TOKEN.findall(key)
            for key, english in self.words.items()
            if _has_anchor(english.split())
        )
        # "Segunda-feira" is known by its end, since "segunda" may be Spanish.
        found = {
            tokens[-1] if tokens[0] in self.unsure and len(tokens[-1]) > 2 else tokens[0]
            for tokens in anchored
        }
        return frozenset(found) - _TIME_NAMES

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
        for phrase, english in self.heads.get(word, ()):
            if sure and word in self.unsure and (len(phrase) == 1 or not _has_anchor(english)):
                continue
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
        elif word == "ago/since":
            out.append(("ago" if _ends_amount(out) else "since", span))
        elif word == "penultimate" and i + 1 < len(words) and _names_time(words[i + 1][0]):
            pending = (i + 1, ("before last", span))
        elif word in _POINTERS:
            _insert_pointer(out, (word, span), words[i + 1][0] if i + 1 < len(words) else "")
        else:
            out.append((word, span))
        if pending and pending[0] == i:
            after, place = pending[1]
            out += [(word, place) for word in after.split()]
            pending = None
    return out


def _ends_amount(words: list[TranslatedToken]) -> bool:
    """Whether the words so far end with an amount of time: "för tre dagar sedan"."""
    if len(words) < 2 or words[-1][0] not in UNIT:
        return False
    return words[-2][0] in _COUNT_WORDS or words[-2][0].isdecimal()


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
    """Insert last or next before the noun it belongs to.

    ``~last`` is a participle, too: it needs its noun right before it, or an article before
    it and its noun after ("el pasado viernes", but not "qué ha pasado hoy").
    """
    word, span = pointer
    before = out[-1][0] if out else ""
    if word == "~last" and not _names_time(before):
        leads = _names_time(following) or following in _COUNT_WORDS or following.isdecimal()
        if before != "the" or not leads:
            out.append(("_", span))
            return
    counted = following in UNIT and (before in _COUNT_WORDS or before.isdecimal())
    out.insert(len(out) - (counted or _names_time(before)), (_POINTERS[word], span))


language_of = cache(Language)
LANGUAGES = tuple(map(language_of, ("de", "es", "fr")))
FURTHER = ("it", "pt", "nl", "sv", "da", "nb", "pl", "cs", "ru", "uk")


@cache
def _near_words() -> dict[str, frozenset[str]]:
    """The vocabulary and the telltales of each of `LANGUAGES`, together."""
    return {code: frozenset(words.split()) for code, words in load_words("near").items()}


@cache
def _markers() -> dict[str, frozenset[str]]:
    """The words that only the further languages use; of all of them together as ``""``."""
    found = {code: frozenset(words.split()) for code, words in load_words("markers").items()}
    return found | {"": frozenset().union(*found.values())}


def possible_languages(words: AbstractSet[str]) -> tuple[Language, ...]:
    """The languages other than English that a text of these words may be in.

    A further language is among them if it has a word for every two English ones.
    """
    markers = _markers()
    if markers[""].isdisjoint(words):
        return LANGUAGES
    enough = max(1, len(words & ENGLISH) / 2)
    further = (code for code in FURTHER if len(words & markers[code]) >= enough)
    return (*LANGUAGES, *map(language_of, further))


def detect_language(
    words: AbstractSet[str], *, english: bool, among: Sequence[Language] = ()
) -> Language | None:
    """Detect the language of most of a text's words; None is English, or unknown.

    Words of two languages ("was", "August") count for neither. On a tie with English,
    ``english`` (whether English times are among them) decides. A further language needs two
    words of its own and more than English has: "we met" is not Dutch.
    """
    languages = among or possible_languages(words)
    votes = [
        len(words & language.vocabulary) if language.may_be_of(words) else 0
        for language in languages
    ]
    max_votes = max(votes)
    if not max_votes:
        return None
    best = languages[votes.index(max_votes)]
    english_votes = len((words & ENGLISH) - best.shared)
    if best.code in FURTHER:
        return best if max_votes > max(1, english_votes) else None
    wins = max_votes > english_votes or (max_votes == english_votes > 0 and not english)
    return best if wins else None


# Languages without spaces between words are read by the patterns of their files: Japanese where
# there is kana, Korean where there is Hangul, else Chinese where a sign may name a time.
_SCRIPTS = {
    "ja": lazy_pattern("[\u3040-\u30ff曜]|[0-9] ?(?:分|時間|日|週間|年)前"),
    "ko": lazy_pattern("[\uac00-\ud7af]"),
    "zh": lazy_pattern("[年月周天昨星礼晚近元圣点时钟季春夏秋冬刚节庆夜]"),
}
_DIGITS = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2}
CHINESE_NUMBER = (
    r"(?:\d{1,4}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
)
_SLOT = lazy_pattern(r"\{(\d)([nmpwt]?)\}")


class PatternLanguage:
    """A language whose times are found by patterns, each with its meaning in English."""

    def __init__(self, code: str) -> None:
        """Read the patterns of the language's file, holidays first."""
        dates = load_section(code, "dates")
        self._weekdays: list[str] = dates["weekdays"].split()
        self._words = parse_word_list(dates.get("words", ""))
        holidays = parse_rules(load_section(code, "holidays")["days"])
        self._words |= {name: f"@{rule}" for name, rule in holidays.items()}
        names = "|".join(map(re.escape, holidays))
        rules = {re.escape(name): f"@{rule}" for name, rule in holidays.items()}
        lines = (line.partition(" = ") for line in dates["patterns"].strip().splitlines())
        rules |= {
            pattern.replace("N", CHINESE_NUMBER).replace("H", names): meaning
            for pattern, _, meaning in lines
        }
        rules |= {r"\d+|[^\w\s]": "{0}", r"[^\W\d_]": "_"}
        self._meanings = [*rules.values()]
        self._any = re.compile("|".join(f"(?P<r{n}>{pattern})" for n, pattern in enumerate(rules)))

    def translate(self, text: str) -> list[TranslatedToken]:
        """Translate a text to English words for times; other characters are marked by ``_``."""
        out: list[TranslatedToken] = []
        for match in self._any.finditer(text):
            rule = match.lastgroup or "r0"
            fill = partial(self._fill, match, self._any.groupindex[rule])
            english = _SLOT.sub(fill, self._meanings[int(rule[1:])])
            out += [(word, match.span()) for word in english.split()]
        return out

    def _fill(self, found: re.Match[str], first: int, slot: re.Match[str]) -> str:
        """A group of a rule: as it is, translated, or as a number, a month or a weekday."""
        value: str = found[first + int(slot[1])]
        form = slot[2]
        if form == "w":
            return WEEKDAYS[self._weekdays.index(value)]
        if not form or form == "t" or value in self._words:
            return self._words.get(value, value)
        number = parse_number(value)
        if form == "m":
            return MONTHS[number - 1] if 1 <= number <= 12 else "_"
        return f"{number:02}" if form == "p" else str(number)


_pattern_language = cache(PatternLanguage)


def translate_unspaced(text: str) -> list[TranslatedToken] | None:
    """Translate a text in Japanese, Korean or Chinese; None for one without a time."""
    if text.isascii():
        return None
    code = next((code for code, script in _SCRIPTS.items() if script.search(text)), None)
    return _pattern_language(code).translate(text) if code else None


def parse_number(sign: str) -> int:
    """Parse a number up to 99, in figures or in words."""
    if sign.isdecimal():
        return int(sign)
    tens, ten, ones = sign.rpartition("十")
    if not ten:
        return _DIGITS[sign]
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)
