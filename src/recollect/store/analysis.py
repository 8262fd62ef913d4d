"""Turns text into index words, so that however a name is written, it is found.

The tokenizer of a word index splits at punctuation and folds case and most
accents; what it cannot do is done here, the same way for memories and queries:

- ``parseConfig``, ``parse_config`` and ``parse config`` share their parts,
  ``auth-middleware`` and ``authmiddleware`` their joined form, ``v2.3.1`` and
  ``2.3.1`` a form of their own;
- scripts without spaces, or whose vowel signs the tokenizer takes for
  punctuation, are indexed as overlapping pairs of letters;
- full-width, ligatures, ``ß``, ``ø``, ``ё`` and pointed letters meet their plain form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from recollect.dates.languages import spoken

MOST_UNITS = 512  # of a query; what follows is not read
LONGEST_CHUNK = 200  # longer runs are blobs, not names
LONGEST_JOINED = 40

_ENGLISH = """
    a about above after again all also am an and any are aren as at be because been before
    being below between both but by can cannot could couldn d did didn do does doesn doing
    don down during each else ever few for from further get got had hadn has hasn have haven
    having he her here hers herself him himself his how i if in into is isn it its itself
    just let ll m me might more most much must mustn my myself no nor not now of off on once
    one only or other our ours ourselves out over own please quite rather re s same shall
    shan she should shouldn so some such t than that the their theirs them themselves then
    there these they this those through to too under until up upon us ve very was wasn we were
    weren what when where whether which while who whom whose why will with won would wouldn
    yes yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_ENGLISH.split())
# So many words of a query must be common ones of another language to make it one of that
# language, and at least every third: a few are names of things elsewhere ("die", "des").
_FOREIGN_FROM = 2

# Scripts written without spaces, and those whose vowel signs are no token characters.
_PAIRED = (
    "\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff"
    "\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_PAIRED_RUN = re.compile(f"([{_PAIRED}]+)")
# Latin, Greek, Cyrillic, Hebrew, Arabic and their punctuation, in which what is a letter
# is settled. All others make words of their own, so that ``API設計`` is also ``api``.
_FAMILIAR = re.compile(
    "[\x00-\xa9\xab-\xb1\xb4-\xb8\xbb\xbf-\u024f\u0300-\u0481\u048a-\u0527\u0591-\u05f4\u0620-\u06d3\u1e00-\u1fff\u2010-\u2027]*"
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
# Accents, Hebrew points, Arabic vowel signs; й is a letter of its own.
_MARKS = re.compile(
    "(?<![\u0438\u0418])\u0306|[\u0300-\u0305\u0307-\u036f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
_PLAIN_LETTERS = str.maketrans(
    dict(zip("øØłŁđĐðÐıħĦ", "oOlLdDdDihH", strict=True))
    | {"þ": "th", "Þ": "Th", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe"}
)
# Raised, lowered and broken numbers stand apart: 10⁵ is not 105, 4½ not 41.
_SET_APART = {
    code: f" {unicodedata.normalize('NFKC', chr(code))} "
    for code in (0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE, *range(0x2070, 0x209D), *range(0x2150, 0x218A))
}
_HYPHENS = "-_‐‑–−"
_APOSTROPHES = "'’ʼ"
_WORD = r"[^\W_]+"
_SEPARATORS = "./\\\\:@+#~" + _APOSTROPHES + _HYPHENS.replace("-", "\\-")
_CHUNK = re.compile(
    rf"(?:(?<![^\s(\[{{<\"'`])\.)?{_WORD}(?:[{_SEPARATORS}]+{_WORD})*(?:\+\+|(?<![^\W_]{{2}})#)?"
)
_PARTS = re.compile(_WORD)
_CONTRACTION = re.compile(rf"[{_APOSTROPHES}](?:s|t|d|m|ll|re|ve)$", re.IGNORECASE)
_VERSION = re.compile(r"(?<![^\W_])v?(\d+(?:\.\d+){1,4})(?![^\W_])", re.IGNORECASE)
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DIGIT_CHANGE = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_PLURAL_CAPITALS = re.compile(r"[A-Z]+s")
_NAME_ENDS = re.compile(r"[/\\:@+#~.]+")
_OPENING = "([{<\"'`“‘«„"
_CLOSING = ".,;:!?)]}>\"'`”’»…"


class Unit(NamedTuple):
    """One thing a text names: a word, or a name of several words.

    ``words`` stand next to each other wherever the name is written in full;
    ``joined`` is the name written as one word, "" when nobody would. ``common``
    words say nothing about the subject.
    """

    shown: str
    words: tuple[str, ...]
    joined: str = ""
    common: bool = False


class _Piece(NamedTuple):
    """A stretch of a word: a chunk to be looked into, or the letters of a paired script."""

    text: str
    paired: bool


def fold(text: str) -> str:
    """The form in which two spellings of a word are equal: no case, width or accent."""
    return text.lower() if text.isascii() else _plain(text).casefold()


def about_words(text: str) -> str:
    """What must be indexed beside a text for `query_words` to find all its words."""
    found: dict[str, None] = {}
    for word in dict.fromkeys(text.split()):
        if not _is_ordinary(_trim(word)):
            found.update(dict.fromkeys(_extra_forms(word)))
    return " ".join(found)


def query_words(text: str, most: int = MOST_UNITS) -> tuple[Unit, ...]:
    """What a query asks for, in its order, each thing once.

    A capital marks a name: "in May", "ask Will". When every word is a common one,
    none is called common: something must be searched.
    """
    units: dict[tuple[str, ...], Unit] = {}
    shouted = text.isupper()
    common = _common_in(text)
    for word in text.split():
        for unit in _units(word, common):
            capital = unit.common and unit.shown[0].isupper() and unit.words != ("i",)
            named = capital and units and not shouted
            found = unit._replace(common=False) if named else unit
            units.setdefault((*found.words, found.joined), found)
        if len(units) >= most:
            break
    if all(unit.common for unit in units.values()):
        return tuple(unit._replace(common=False) for unit in units.values())
    return tuple(units.values())


def _common_in(text: str) -> frozenset[str]:
    """The words that say nothing about a subject in the language of a query."""
    words = frozenset(_PARTS.findall(fold(text)))
    language = spoken(words, english=True)
    if language is None:
        return STOP_WORDS
    votes = len(words & language.common)
    is_foreign = votes >= _FOREIGN_FROM and 3 * votes >= len(words)
    return language.common if is_foreign else STOP_WORDS


def unspaced_runs(text: str) -> list[str]:
    """Stretches of scripts in which no space shows where a word ends."""
    return [] if text.isascii() else _PAIRED_RUN.findall(text)


def _trim(word: str) -> str:
    return word.lstrip(_OPENING).rstrip(_CLOSING)


def _is_ordinary(word: str) -> bool:
    """Whether the tokenizer alone does all that can be done with a word."""
    ascii_letters = word.isascii() and word.isalpha()
    return ascii_letters and (word.islower() or word.istitle() or word.isupper())


def _plain(text: str) -> str:
    """Compatibility forms resolved, accents taken off, case kept."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text.translate(_SET_APART)))
    marks_apart = unicodedata.normalize("NFD", text.translate(_PLAIN_LETTERS))
    return unicodedata.normalize("NFC", _MARKS.sub("", marks_apart))


def _pieces(word: str) -> list[_Piece]:
    if word.isascii():
        return [_Piece(match.group(), paired=False) for match in _CHUNK.finditer(word)]
    pieces: list[_Piece] = []
    for number, part in enumerate(_PAIRED_RUN.split(_plain(word))):
        if number % 2:
            pieces += (_Piece(letters, paired=True) for letters in _letter_runs(part))
        else:
            pieces += (_Piece(match.group(), paired=False) for match in _CHUNK.finditer(part))
    return pieces


def _letter_runs(run: str) -> list[str]:
    """Stretches of letters without their vowel signs; punctuation ends a stretch."""
    kept = (
        char if char.isalnum() else "" if unicodedata.category(char)[0] == "M" else " "
        for char in run
    )
    return "".join(kept).split()


def _pairs(letters: str) -> list[str]:
    return [letters[at : at + 2] for at in range(len(letters) - 1)]


def _split_word(word: str) -> list[str]:
    """``HTTPServer2`` as http, server, 2. Mixed codes like ``log4j`` stay whole."""
    parts = [word] if _PLURAL_CAPITALS.fullmatch(word) else _CASE_CHANGE.split(word)
    split: list[str] = []
    for part in parts:
        pieces = _DIGIT_CHANGE.split(part)
        split += pieces if len(pieces) == 2 else [part]
    return [piece.casefold() for piece in split]


def _name(chunk: str) -> str:
    """A chunk without the end of a contraction."""
    ending = _CONTRACTION.search(chunk)
    return chunk[: ending.start()] if ending else chunk


def _parts(name: str) -> tuple[str, ...]:
    """All words of a name. The v of a version is none: 2.3.1 is the same version."""
    if _VERSION.match(name):
        name = name.lstrip("vV")
    return tuple(part for word in _PARTS.findall(name) for part in _split_word(word))


def _joined(name: str) -> str:
    """The name written as one word, where people do that; else ""."""
    words = _PARTS.findall(name)
    version = _VERSION.fullmatch(name)
    if version:
        return version[1].replace(".", "dot")
    if len(words) == 1:
        word = words[0].casefold()
        for mark, spelled in (("++", f"{word}plusplus"), ("#", f"{word}sharp")):
            if name.endswith(mark):
                return spelled
        if name.startswith("."):
            return f"dot{word}"
        return word if len(_split_word(words[0])) > 1 else ""
    joined = "".join(words).casefold()
    return joined if _is_written_together(name, words) and len(joined) <= LONGEST_JOINED else ""


def _is_written_together(name: str, words: list[str]) -> bool:
    """Whether e-mail is also email, node.js nodejs, U.S.A usa; a path never is one word."""
    separators = set(_PARTS.sub("", name))
    if separators == {"."}:
        letters = all(len(word) == 1 for word in words)
        return letters or (len(words) == 2 and all(word.isalpha() for word in words))
    return separators <= {*_HYPHENS, *_APOSTROPHES} and len(words) <= 4


def _units(word: str, stop_words: frozenset[str]) -> list[Unit]:
    """What one word, as spaces part them, names."""
    trimmed = _trim(word)
    if _is_ordinary(trimmed):
        plain = trimmed.lower()
        return [Unit(trimmed, (plain,), common=plain in stop_words)]
    found = [_unit(piece, stop_words) for piece in _pieces(word)]
    if len(found) == 1 and not word.isascii():
        return [found[0]._replace(shown=trimmed)]
    return found


def _unit(piece: _Piece, stop_words: frozenset[str]) -> Unit:
    if piece.paired:
        return Unit(piece.text, tuple(_pairs(piece.text)) or (piece.text,))
    name = _name(piece.text)
    if len(name) > LONGEST_CHUNK:
        return Unit(name, tuple(word.casefold() for word in _PARTS.findall(name)))
    words, joined = _parts(name), _joined(name)
    common = all(word in stop_words for word in words)
    if common and joined and stop_words is STOP_WORDS:
        # "to-do": the parts say nothing, the name does; but "qu'est-ce" is none.
        return Unit(name, (joined,))
    return Unit(name, words, joined, common)


def _extra_forms(word: str) -> Iterator[str]:
    """The forms of a word that the tokenizer does not make of it."""
    pieces = _pieces(word)
    seen = _tokenized(word)
    for text, paired in pieces:
        if paired:
            yield " ".join((*_pairs(text), *dict.fromkeys(text)))
            continue
        plain = text.casefold()
        if not seen.issuperset(_PARTS.findall(plain)):
            yield plain
        if len(text) <= LONGEST_CHUNK:
            yield from _forms_of_name(_name(text))


def _tokenized(word: str) -> set[str]:
    """What the tokenizer sees: accents come off, but only those on Latin letters. Nothing
    where one cannot tell: it takes signs that are younger than its tables, new emoji
    among them, for letters."""
    lower = word.lower()
    if not word.isascii():
        if not _FAMILIAR.fullmatch(word) or _MARKS.search(lower):
            return set()
        bare = _MARKS.sub("", unicodedata.normalize("NFD", lower))
        lower = bare if bare.isascii() else lower
    return set(_PARTS.findall(lower))


def _forms_of_name(name: str) -> Iterator[str]:
    parts = _parts(name)
    if parts != tuple(word.casefold() for word in _PARTS.findall(name)):
        yield " ".join(parts)
    for version in _VERSION.finditer(name):
        yield version[1].replace(".", "dot")
    for piece in dict.fromkeys((name, *_NAME_ENDS.split(name))):
        joined = _joined(piece) if piece else ""
        if joined and joined != piece.casefold():
            yield joined
