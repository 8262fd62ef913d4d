"""Tokenise text for the word index, and compare spellings.

The tokenizer of a word index splits at punctuation and folds case and most accents.
What it cannot do is done here, the same way for memories and queries:

- ``parseConfig``, ``parse_config`` and ``parse config`` share their parts,
  ``auth-middleware`` and ``authmiddleware`` their joined form, ``v2.3.1`` and ``2.3.1``
  a form of their own;
- scripts without spaces, or whose vowel signs the tokenizer takes for punctuation, are
  indexed as overlapping pairs of letters (bigrams);
- full-width forms, ligatures, ``ß``, ``ø``, ``ё`` and pointed letters are folded to
  their plain form;
- edit distance (optimal string alignment), substrings and trigrams measure how alike
  two words are spelled.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from string import ascii_lowercase

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates.languages import detect_language
from bethink.lang.words import word_set_of

MAX_UNITS = 512  # per query; the rest is ignored
MAX_CHUNK_LENGTH = 200  # longer runs are blobs, not names
MAX_JOINED_LENGTH = 40

STOP_WORDS = word_set_of("en", "stop_words", "search")
# Stop words of another language that make a query one of that language, and at least a
# third of its words: a few are ordinary words elsewhere ("die", "des").
_MIN_FOREIGN_WORDS = 2

# Scripts written without spaces, and those whose vowel signs are no token characters.
_BIGRAM_SCRIPTS = (
    "\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff"
    "\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_BIGRAM_RUN = lazy_pattern(f"([{_BIGRAM_SCRIPTS}]+)")
# Latin, Greek, Cyrillic, Hebrew, Arabic and their punctuation, where the tokenizer knows
# the letters. Other scripts are separate words, so that ``API設計`` is also ``api``.
_TOKENIZER_SAFE = lazy_pattern(
    "[\x00-\xa9\xab-\xb1\xb4-\xb8\xbb\xbf-\u024f\u0300-\u0481\u048a-\u0527\u0591-\u05f4\u0620-\u06d3\u1e00-\u1fff\u2010-\u2027]*"
)
_INVISIBLE = lazy_pattern("[\u00ad\u200b-\u200f\u2060\ufeff]")
# Accents, Hebrew points, Arabic vowel signs; й is a letter of its own.
_COMBINING_MARKS = lazy_pattern(
    "(?<![\u0438\u0418])\u0306|[\u0300-\u0305\u0307-\u036f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
_PLAIN_LETTERS = str.maketrans(
    dict(zip("øØłŁđĐðÐıħĦ", "oOlLdDdDihH", strict=True))
    | {"þ": "th", "Þ": "Th", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe"}
)
# Superscripts, subscripts and fractions are separate: 10⁵ is not 105, 4½ not 41.
_SPACED_NUMERALS = {
    code: f" {unicodedata.normalize('NFKC', chr(code))} "
    for code in (0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE, *range(0x2070, 0x209D), *range(0x2150, 0x218A))
}
_HYPHENS = "-_‐‑–−"
_APOSTROPHES = "'’ʼ"
_WORD = r"[^\W_]+"
_SEPARATORS = "./\\\\:@+#~" + _APOSTROPHES + _HYPHENS.replace("-", "\\-")
_CHUNK = lazy_pattern(
    rf"(?:(?<![^\s(\[{{<\"'`])\.)?{_WORD}(?:[{_SEPARATORS}]+{_WORD})*(?:\+\+|(?<![^\W_]{{2}})#)?"
)
_PARTS = lazy_pattern(_WORD)
_CONTRACTION = lazy_pattern(rf"[{_APOSTROPHES}](?:s|t|d|m|ll|re|ve)$", re.IGNORECASE)
_VERSION = lazy_pattern(r"(?<![^\W_])v?(\d+(?:\.\d+){1,4})(?![^\W_])", re.IGNORECASE)
_CASE_CHANGE = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DIGIT_CHANGE = lazy_pattern(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_PLURAL_CAPITALS = lazy_pattern(r"[A-Z]+s")
_NAME_ENDS = lazy_pattern(r"[/\\:@+#~.]+")
_OPENING_PUNCTUATION = "([{<\"'`“‘«„"
_CLOSING_PUNCTUATION = ".,;:!?)]}>\"'`”’»…"


class QueryUnit(NamedTuple):
    """A word, or a name of several words, as a query or text writes it.

    ``words`` are adjacent wherever the name is written in full; ``joined`` is the name
    written as one word, "" where that is not usual. ``common`` marks stop words.
    """

    shown: str
    words: tuple[str, ...]
    joined: str = ""
    common: bool = False


class _Piece(NamedTuple):
    """A part of a word: a chunk to analyse further, or letters of a bigram script."""

    text: str
    paired: bool


def fold(text: str) -> str:
    """Fold a text to the form in which spellings are equal: no case, width or accent."""
    return text.lower() if text.isascii() else _strip_accents(text).casefold()


def extra_index_words(text: str) -> str:
    """Return what must be indexed besides a text for `query_units` to find all its words."""
    found: dict[str, None] = {}
    for word in dict.fromkeys(text.split()):
        forms = _forms_of_word(word) if len(word) <= _MAX_KNOWN_LENGTH else _extra_forms(word)
        if forms:
            found.update(dict.fromkeys(forms))
    return " ".join(found)


_MAX_KNOWN_LENGTH = 40  # longer words are rarely the same again


@lru_cache(maxsize=4_096)
def _forms_of_word(word: str) -> tuple[str, ...]:
    return () if _is_plain_word(_trim(word)) else tuple(_extra_forms(word))


def query_units(text: str, max_units: int = MAX_UNITS) -> tuple[QueryUnit, ...]:
    """Split a query into its units, in order, each once.

    A capital marks a name: "in May", "ask Will". When every word is a stop word, none is
    marked common: something must be searched.
    """
    units: dict[tuple[str, ...], QueryUnit] = {}
    all_capitals = text.isupper()
    common = _stop_words_for(text)
    for word in text.split():
        for unit in _units_of(word, common):
            capital = unit.common and unit.shown[0].isupper() and unit.words != ("i",)
            is_name = capital and units and not all_capitals
            content_unit = unit._replace(common=False) if is_name else unit
            units.setdefault((*content_unit.words, content_unit.joined), content_unit)
        if len(units) >= max_units:
            break
    if all(unit.common for unit in units.values()):
        return tuple(unit._replace(common=False) for unit in units.values())
    return tuple(units.values())


def _stop_words_for(text: str) -> frozenset[str]:
    """Return the stop words of the language a query is written in."""
    words = frozenset(_PARTS.findall(fold(text)))
    language = detect_language(words, english=True)
    language_words = (language.common,) if language is not None else ()
    # English first: on a tie it wins, and then a language whose times are known.
    lists = (*(() if language_words else (STOP_WORDS,)), *language_words, *_stop_words_alone())
    best = max(lists, key=lambda common: len(words & common))
    votes = len(words & best)
    is_foreign = votes >= _MIN_FOREIGN_WORDS and 3 * votes >= len(words)
    return best if is_foreign else STOP_WORDS


@cache
def _stop_words_alone() -> tuple[frozenset[str], ...]:
    """The stop words of languages whose words for times are not known."""
    lists = (word_set_of(code, "stop_words", "search") for code in ("it", "nl", "pt"))
    return tuple(frozenset(map(fold, words)) for words in lists)


def unspaced_runs(text: str) -> list[str]:
    """Return runs of scripts in which no space marks the end of a word."""
    return [] if text.isascii() else _BIGRAM_RUN.findall(text)


def _trim(word: str) -> str:
    return word.lstrip(_OPENING_PUNCTUATION).rstrip(_CLOSING_PUNCTUATION)


def _is_plain_word(word: str) -> bool:
    """Whether the tokenizer alone handles a word completely."""
    ascii_letters = word.isascii() and word.isalpha()
    return ascii_letters and (word.islower() or word.istitle() or word.isupper())


def _strip_accents(text: str) -> str:
    """Resolve compatibility forms and strip accents; keep case."""
    text = unicodedata.normalize("NFKC", text.translate(_SPACED_NUMERALS))
    if not text.isprintable():  # as no invisible character is
        text = _INVISIBLE.sub("", text)
    decomposed = unicodedata.normalize("NFD", text.translate(_PLAIN_LETTERS))
    return unicodedata.normalize("NFC", _COMBINING_MARKS.sub("", decomposed))


def _pieces(word: str) -> list[_Piece]:
    if word.isascii():
        return [_Piece(match.group(), paired=False) for match in _CHUNK.finditer(word)]
    pieces: list[_Piece] = []
    for number, part in enumerate(_BIGRAM_RUN.split(_strip_accents(word))):
        if number % 2:
            pieces += (_Piece(letters, paired=True) for letters in _letter_runs(part))
        else:
            pieces += (_Piece(match.group(), paired=False) for match in _CHUNK.finditer(part))
    return pieces


def _letter_runs(run: str) -> list[str]:
    """Split a run into letters without vowel signs; punctuation ends a stretch."""
    letters = (
        char if char.isalnum() else "" if unicodedata.category(char)[0] == "M" else " "
        for char in run
    )
    return "".join(letters).split()


def _bigrams(letters: str) -> list[str]:
    return [letters[at : at + 2] for at in range(len(letters) - 1)]


def _split_word(word: str) -> list[str]:
    """Split ``HTTPServer2`` into http, server, 2. Mixed codes like ``log4j`` stay whole."""
    parts = [word] if _PLURAL_CAPITALS.fullmatch(word) else _CASE_CHANGE.split(word)
    parts_of_word: list[str] = []
    for part in parts:
        pieces = _DIGIT_CHANGE.split(part)
        parts_of_word += pieces if len(pieces) == 2 else [part]
    return [piece.casefold() for piece in parts_of_word]


def _strip_contraction(chunk: str) -> str:
    """Strip the end of a contraction from a chunk."""
    ending = _CONTRACTION.search(chunk)
    return chunk[: ending.start()] if ending else chunk


def _name_parts(name: str) -> tuple[str, ...]:
    """Return all words of a name, without the v of a version: 2.3.1 is the same version."""
    if _VERSION.match(name):
        name = name.lstrip("vV")
    return tuple(part for word in _PARTS.findall(name) for part in _split_word(word))


def _joined_form(name: str) -> str:
    """Return the name written as one word, where that is usual; else ""."""
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
    return joined if _is_joinable(name, words) and len(joined) <= MAX_JOINED_LENGTH else ""


def _is_joinable(name: str, words: list[str]) -> bool:
    """Whether a name is also written as one word: e-mail as email, node.js as nodejs.

    A path never is.
    """
    separators = set(_PARTS.sub("", name))
    if separators == {"."}:
        letters = all(len(word) == 1 for word in words)
        return letters or (len(words) == 2 and all(word.isalpha() for word in words))
    return separators <= {*_HYPHENS, *_APOSTROPHES} and len(words) <= 4


def _units_of(word: str, stop_words: frozenset[str]) -> list[QueryUnit]:
    """Return the units of one space-separated word."""
    trimmed = _trim(word)
    if _is_plain_word(trimmed):
        plain = trimmed.lower()
        return [QueryUnit(trimmed, (plain,), common=plain in stop_words)]
    found = [_to_unit(piece, stop_words) for piece in _pieces(word)]
    if len(found) == 1 and not word.isascii():
        return [found[0]._replace(shown=trimmed)]
    return found


def _to_unit(piece: _Piece, stop_words: frozenset[str]) -> QueryUnit:
    if piece.paired:
        return QueryUnit(piece.text, tuple(_bigrams(piece.text)) or (piece.text,))
    name = _strip_contraction(piece.text)
    if len(name) > MAX_CHUNK_LENGTH:
        return QueryUnit(name, tuple(word.casefold() for word in _PARTS.findall(name)))
    words, joined = _name_parts(name), _joined_form(name)
    common = all(word in stop_words for word in words)
    if common and joined and stop_words is STOP_WORDS:
        # "to-do" is a name of stop words; "qu'est-ce" is none.
        return QueryUnit(name, (joined,))
    return QueryUnit(name, words, joined, common)


def _extra_forms(word: str) -> Iterator[str]:
    """Yield the forms of a word that the tokenizer does not produce."""
    pieces = _pieces(word)
    seen = _tokenizer_output(word)
    for text, paired in pieces:
        if paired:
            yield " ".join((*_bigrams(text), *dict.fromkeys(text)))
            continue
        plain = text.casefold()
        if not seen.issuperset(_PARTS.findall(plain)):
            yield plain
        if len(text) <= MAX_CHUNK_LENGTH:
            yield from _forms_of_name(_strip_contraction(text))


def _tokenizer_output(word: str) -> set[str]:
    """Return the words the tokenizer produces; empty where that is not certain.

    It strips accents from Latin letters only, and takes characters newer than its Unicode
    tables, such as new emoji, for letters.
    """
    lower = word.lower()
    if not word.isascii():
        if not _TOKENIZER_SAFE.fullmatch(word) or _COMBINING_MARKS.search(lower):
            return set()
        bare = _COMBINING_MARKS.sub("", unicodedata.normalize("NFD", lower))
        lower = bare if bare.isascii() else lower
    return set(_PARTS.findall(lower))


def _forms_of_name(name: str) -> Iterator[str]:
    parts = _name_parts(name)
    if parts != tuple(word.casefold() for word in _PARTS.findall(name)):
        yield " ".join(parts)
    for version in _VERSION.finditer(name):
        yield version[1].replace(".", "dot")
    for piece in dict.fromkeys((name, *_NAME_ENDS.split(name))):
        joined = _joined_form(piece) if piece else ""
        if joined and joined != piece.casefold():
            yield joined


MIN_PART_LENGTH = 4  # letters; shorter parts ("are" in "middleware") are chance
SHORT_PART_SHARE = 0.75  # of a word that a shorter part must be: "eus" of "zeus"
PART_SIMILARITY = 0.6  # less than the worst misspelling of a whole word


def max_edits(word: str) -> int:
    """Return how many edits a word may have and still match another.

    Numbers allow none: 2023 is not 2024.
    """
    if len(word) < 3 or not word.isalpha():
        return 0
    return 1 if len(word) <= 5 else 2


def edit_distance(one: str, other: str, max_distance: int) -> int | None:
    """Return the Damerau edit distance of two words; None above ``max_distance``.

    Optimal string alignment, a column of the table at a time: its rows are bits (Hyyrö, "A
    bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003).
    """
    if abs(len(one) - len(other)) > max_distance:
        return None
    positions = _letter_positions(one)
    column, last = (1 << len(one)) - 1, (1 << len(one)) >> 1
    distance = len(one)
    # Bit vectors of the rows where the table increases, decreases, or equals the diagonal.
    increasing, decreasing, equal, before = column, 0, 0, 0
    for letter in other:
        matching = positions.get(letter, 0)
        swapped = ((~equal & matching) << 1) & before
        equal = (
            (((matching & increasing) + increasing) ^ increasing) | matching | decreasing | swapped
        )
        # The same from the column to the left.
        row_increase, row_decrease = (
            decreasing | (column & ~(equal | increasing)),
            equal & increasing,
        )
        distance += bool(row_increase & last) - bool(row_decrease & last)
        row_increase = (row_increase << 1) | 1
        increasing = ((row_decrease << 1) | ~(equal | row_increase)) & column
        decreasing = row_increase & equal & column
        before = matching
    if not one:
        distance = len(other)
    return distance if distance <= max_distance else None


@lru_cache(maxsize=64)
def _letter_positions(word: str) -> dict[str, int]:
    """Return for each letter the positions where it occurs, as bits."""
    positions: dict[str, int] = {}
    for at, letter in enumerate(word):
        positions[letter] = positions.get(letter, 0) | 1 << at
    return positions


def spelling_similarity(word: str, other: str) -> float:
    """Return 1 for the same word, less for each edit, 0 for unrelated words.

    A part of a word gives at most `PART_SIMILARITY`.
    """
    if word == other:
        return 1.0
    edits = max_edits(word)
    distance = edit_distance(word, other, edits) if edits else None
    if distance is not None and (len(word) > 3 or sorted(word) == sorted(other)):
        return 1.0 - distance / max(len(word), len(other))
    short, long = sorted((word, other), key=len)
    if len(short) >= MIN_PART_LENGTH and short in long:
        return PART_SIMILARITY * len(short) / len(long)
    return 0.0


def one_edit_variants(word: str) -> Iterator[str]:
    """Yield every spelling with one edit.

    Short words with swapped letters share no trigram with the intended word, so these are
    looked up one by one.
    """
    letters = sorted({*ascii_lowercase, *word})
    for at in range(len(word)):
        head, tail = word[:at], word[at + 1 :]
        yield head + tail
        if tail:
            yield head + tail[0] + word[at] + tail[1:]
        for letter in letters:
            yield head + letter + tail
            yield head + letter + word[at:]
    for letter in letters:
        yield word + letter


def trigrams(word: str) -> tuple[str, ...]:
    """Return all runs of three letters, each once."""
    return tuple(dict.fromkeys(word[at : at + 3] for at in range(len(word) - 2)))


def best_substring_match(
    piece: str, text: str, min_length: int = MIN_PART_LENGTH
) -> tuple[float, str] | None:
    """Return the score and enclosing word of a piece's best occurrence in a text.

    Both are folded. A shorter piece counts as a whole word, or as most of one.
    """
    best: tuple[float, str] | None = None
    at = text.find(piece)
    while at >= 0:
        start, end = at, at + len(piece)
        while start > 0 and text[start - 1].isalnum():
            start -= 1
        while end < len(text) and text[end].isalnum():
            end += 1
        if end - start == len(piece):
            return 1.0, piece
        if len(piece) >= min_length or len(piece) >= SHORT_PART_SHARE * (end - start):
            similarity = PART_SIMILARITY * len(piece) / (end - start)
            if best is None or similarity > best[0]:
                best = similarity, text[start:end]
        at = text.find(piece, end)
    return best
