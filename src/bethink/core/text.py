"""Text utilities: hidden characters, normalization, sentences, passages, fingerprints."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple

# --- Files of our own -------------------------------------------------------------------


def parse_toml(text: str) -> dict[str, Any]:
    """Return what `tomllib.loads` returns, a file of plain lines without loading it.

    Plain are tables, lists of tables, and words with a text, number or truth value each. A
    file with anything else, or with a mistake, is left to `tomllib`.
    """
    try:
        return _parse_plain_toml(text)
    except _NotPlainError:
        import tomllib  # start-up time: with what it brings, as long as reading all our files

        return tomllib.loads(text)


class _NotPlainError(ValueError):
    """A line that only `tomllib` reads."""


_MAX_NUMBER_SIGNS = 18
_TRUTH = {"true": True, "false": False}


def _parse_plain_toml(text: str) -> dict[str, Any]:
    if not text.replace("\n", "").isprintable():
        raise _NotPlainError
    whole: dict[str, Any] = {}
    table = whole
    lines = iter(text.split("\n"))
    for line in lines:
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            table = _add_table(whole, line)
            continue
        name, _, value = line.partition(" = ")
        key = _unquoted(name) if name[:1] == '"' else _bare_key(name)
        if key in table:
            raise _NotPlainError
        table[key] = _join_until_quotes(lines) if value == "'''" else _parse_plain_value(value)
    return whole


def _bare_key(name: str) -> str:
    if name.isascii() and name.replace("-", "_").isidentifier():
        return name
    raise _NotPlainError


def _unquoted(value: str) -> str:
    quote, inner = value[:1], value[1:-1]
    if not value[1:].endswith(quote) or quote in inner or (quote == '"' and "\\" in inner):
        raise _NotPlainError
    return inner


def _add_table(whole: dict[str, Any], line: str) -> dict[str, Any]:
    """Return a new table; one that is there already may only be a list of them."""
    is_listed = line.startswith("[[") and line.endswith("]]")
    *outer, name = (line[2:-2] if is_listed else line[1:-1]).split(".")
    within, made = whole, dict[str, Any]()
    for part in outer:
        within = within.setdefault(_bare_key(part), {})
        if not isinstance(within, dict):
            raise _NotPlainError
    first: Any = [] if is_listed else made
    known = within.setdefault(_bare_key(name), first)
    if line[-1] != "]" or not (known is first or (is_listed and isinstance(known, list))):
        raise _NotPlainError
    if is_listed:
        known.append(made)
    return made


def _join_until_quotes(lines: Iterator[str]) -> str:
    """Return the lines of a text up to the line that ends it."""
    found: list[str] = []
    for line in lines:
        if "'''" in line:
            if line == "'''":
                return "".join(found)
            break
        found.append(f"{line}\n")
    raise _NotPlainError


def _parse_plain_value(value: str) -> str | float | bool:
    if value[:1] in ("'", '"'):
        return _unquoted(value)
    if value in _TRUTH:
        return _TRUTH[value]
    whole, dot, part = value.removeprefix("-").partition(".")
    is_whole = whole.isdecimal() and (whole[0] != "0" or whole == "0")
    if not (is_whole and value.isascii() and len(value) <= _MAX_NUMBER_SIGNS):
        raise _NotPlainError
    if not dot:
        return int(value)
    if part.isdecimal():
        return float(value)
    raise _NotPlainError


# --- Characters -------------------------------------------------------------------------

_UNSTORABLE = lazy_pattern("[\x00\ud800-\udfff]")
_CONTROLS = "\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ZERO_WIDTH = "\u180e\u200b\u2060-\u2065\ufeff\ufff9-\ufffb"
_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"

_ASCII_CONTROL = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CONTROL = lazy_pattern(f"[{_CONTROLS}{_NONCHARACTERS}]")
_BIDI_CONTROL = lazy_pattern(f"[{_BIDI}]")
_HIDDEN = lazy_pattern(f"[{_ZERO_WIDTH}{_TAGS}]|[{_SELECTORS}]{{2,}}")
# A joiner belongs between two letters or emoji of its own scripts, one at a time.
_STRAY_JOINER = lazy_pattern(
    "[\u200c\u200d]{2,}|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_ANSI = lazy_pattern(
    "\x1b\\[[0-?]*[ -/]*[@-~]"
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)"
    "|\x9b[0-?]*[ -/]*[@-~]"
    "|\x1b[@-Z\\\\-_]"
)
_LINE_END = lazy_pattern("\r\n?|\x85")
_INVISIBLE = lazy_pattern(f"[{_CONTROLS}{_NONCHARACTERS}{_BIDI}{_ZERO_WIDTH}{_TAGS}]")
_SELECTOR_RUN = lazy_pattern(f"[{_SELECTORS}]{{2,}}")


def find_unstorable(text: str) -> tuple[int, str] | None:
    """The first character that no store can keep: its position and its name."""
    if text.isascii() and "\x00" not in text:
        return None
    found = _UNSTORABLE.search(text)
    if found is None:
        return None
    code = ord(found.group())
    return found.start(), "NUL" if code == 0 else f"lone surrogate U+{code:04X}"


def hidden_text_flags(text: str) -> tuple[str, ...]:
    """Flags for hidden characters in a text; empty for ordinary text."""
    if text.isascii():
        return ("control_text",) if _ASCII_CONTROL.search(text) else ()
    flags = []
    if _BIDI_CONTROL.search(text):
        flags.append("bidi_control")
    if _CONTROL.search(text):
        flags.append("control_text")
    if _HIDDEN.search(text) or _STRAY_JOINER.search(text):
        flags.append("invisible_text")
    return tuple(flags)


def strip_hidden(text: str) -> str:
    """Remove hidden characters, so that the text is safe for a model or a terminal.

    Removes tag characters, direction controls, zero-width characters, escape sequences and
    controls other than line feed and tab. Joiners stay where a script or an emoji needs them.
    """
    if text.isascii() and "\r" not in text and not _ASCII_CONTROL.search(text):
        return text
    shown = _ANSI.sub("", text)
    shown = _INVISIBLE.sub("", _LINE_END.sub("\n", shown)).replace("\x00", "")
    if shown.isascii():
        return shown
    return _STRAY_JOINER.sub("", _SELECTOR_RUN.sub("", shown))


# --- Words and forms --------------------------------------------------------------------

# NFKC would turn these into plain digits: 10⁵ must not become 105.
_SUPERSCRIPTS = str.maketrans({sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})
_OPENING = "\"'`(“‘«„‹「『（"
_CLOSING = "\"'`).,;:!…”’»›」』）。，、；：！"
# Scripts written without spaces between words, and Hangul, whose words carry endings.
_UNSEGMENTED = lazy_pattern(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7a3"  # Hangul
    "]+"
)
# Marks that split words in the word index (it keeps only U+0300-0331 inside a word).
_BREAKING_MARK = lazy_pattern(
    "[\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0903"
    "\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a4d\u0a81-\u0acd"
    "\u0b01-\u0b4d\u0b82-\u0bcd\u0c00-\u0c4d\u0c81-\u0ccd\u0d00-\u0d4d\u0d81-\u0df3\u0e31"
    "\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u0f18-\u0f87\u102b-\u103e\u1056-\u1059"
    "\u17b4-\u17d3]"
)


def fold(text: str) -> str:
    """Normalize a text for comparison: width, case, spaces and closing punctuation.

    Signs that carry meaning stay: ``C++`` is not ``C#``, ``-5`` is not ``5``,
    ``10⁵`` is not ``105`` and a question is not a statement.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SUPERSCRIPTS))
    words = text.casefold().split()
    kept = [word if word.isalnum() else word.lstrip(_OPENING).rstrip(_CLOSING) for word in words]
    return " ".join(filter(None, kept)) or " ".join(words)


def word_set(text: str) -> frozenset[str]:
    """The normalized words of a text; character bigrams for scripts without spaces."""
    folded = fold(text)
    words = frozenset(folded.split())
    if folded.isascii():
        return words
    pairs = (pair for run in _UNSEGMENTED.findall(folded) for pair in _char_bigrams(run))
    return frozenset(word for word in words if not _UNSEGMENTED.search(word)).union(pairs)


def _char_bigrams(run: str) -> list[str]:
    letters = _BREAKING_MARK.sub("", run)
    if len(letters) == 1:
        return [letters]
    return [letters[i : i + 2] for i in range(len(letters) - 1)]


def bm25_idf(documents: int, held: int) -> float:
    """BM25's inverse document frequency of a word held by so many of the documents."""
    return math.log(1.0 + (max(documents - held, 0) + 0.5) / (held + 0.5))


class WordOverlap(NamedTuple):
    """What two texts have in common, by idf: of the shorter one's words, and of all.

    ``telling`` are the common words that are rare.
    """

    of_shorter: float
    of_all: float
    telling: frozenset[str]


def word_overlap(
    one: frozenset[str], other: frozenset[str], documents: int, held: Mapping[str, int]
) -> WordOverlap:
    """Compare the index terms of two stored texts.

    The two count as one document: else what only they share would never be rare.
    """
    common = one & other
    weights = {
        term: bm25_idf(documents, max(0, held.get(term, 0) - (term in common)))
        for term in one | other
    }
    shared, both = sum(weights[term] for term in common), sum(weights.values())
    shorter = min(sum(weights[term] for term in text) for text in (one, other))
    rare = bm25_idf(documents, 1) / 2
    return WordOverlap(
        shared / shorter if shorter else 0.0,
        shared / both if both else 0.0,
        frozenset(term for term in common if weights[term] >= rare),
    )


_VALUE = lazy_pattern(r"[^\W_]+(?:[-./:'_][^\W_]+)*")
_MAX_VALUE_WORDS = 2
_SMALL_WORD = 3  # letters


def differs_only_in_values(one: str, other: str) -> bool:
    """Whether two texts have the same words but for one value: a number, or a name of two words.

    The first word, which a sentence writes with a capital anyway, is no value; words of up to
    three letters ("a minute", "per minute") change no statement.
    """
    words = [_VALUE.findall(text) for text in (one, other)]
    known = [{word.casefold() for word in text} for text in words]
    for number, text in enumerate(words):
        others = known[1 - number]
        differing = [
            (at, word)
            for at, word in enumerate(text)
            if word.casefold() not in others
            and not (word.isalpha() and word.islower() and len(word) <= _SMALL_WORD)
        ]
        values = [
            at and (word[0].isupper() or any(map(str.isdigit, word))) for at, word in differing
        ]
        if not 0 < len(differing) <= _MAX_VALUE_WORDS or not all(values):
            return False
    return True


# --- Sentences and captions -------------------------------------------------------------

# Each alternative begins with few characters: the search skips all others.
_BREAK = lazy_pattern(r"[.!?…][\"')\]’”]*\s+|(?<!\s)\s*\n\s*|[。！？]\s*")
_ABBREVIATION_LIST = (
    "dr mr mrs ms prof st vs e.g i.e etc no fig approx inc ltd jr sr cf al dept est"
)
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_COURTESY_WORDS = """
hi hey hello thanks thank you ok okay sure yes no yeah yep great cool wow good nice oh ah well
morning evening bye so much very there everyone all dear lol haha right exactly please
"""
_NOT_INFORMATIVE = frozenset(_COURTESY_WORDS.split())


def has_substance(text: str) -> bool:
    """Whether the text contains a letter, a digit or a symbol."""
    if any(char.isalnum() for char in text[:64]):
        return True
    return any(char.isalnum() or unicodedata.category(char)[0] == "S" for char in text)


def sentences(text: str) -> list[str]:
    """Split a text into trimmed sentences; every line break ends one."""
    parts = (text[start:end].strip() for start, end in _sentence_spans(text))
    return [part for part in parts if part]


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence starts and ends, with the spaces after it."""
    start = 0
    for mark in _BREAK.finditer(text):
        if "\n" not in mark.group() and _is_abbreviation(text, start, mark):
            continue
        yield start, mark.end()
        start = mark.end()
    yield start, len(text)


def _is_abbreviation(text: str, start: int, mark: re.Match[str]) -> bool:
    """Whether this full stop belongs to an abbreviation: "e.g.", "Dr. Wu", "at 3 p.m. today"."""
    end = mark.start() + 1
    if text[mark.start()] != ".":
        return False
    if text[mark.end() : mark.end() + 1].islower():
        return True
    word = text[max(start, end - 12) : end - 1].rpartition(" ")[2].lstrip("(\"'").lower()
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha())


def caption(text: str, speaker: str | None = None, *, limit: int = 160) -> str:
    """The speaker and the first informative sentence, shortened to the limit."""
    parts = sentences(strip_hidden(text[: limit * 50]))
    chosen = next((part for part in parts if _is_informative(part)), parts[0] if parts else "")
    line = " ".join(chosen.split())
    if speaker and not line.casefold().startswith(f"{speaker}:".casefold()):
        line = f"{' '.join(strip_hidden(speaker).split())}: {line}"
    return shorten(line, limit)


def _is_informative(sentence: str) -> bool:
    content_words = [word for word in fold(sentence).split() if word not in _NOT_INFORMATIVE]
    return len(content_words) >= 3 or _UNSEGMENTED.search(sentence) is not None


def shorten(line: str, limit: int) -> str:
    """Truncate to ``limit`` characters, between words where that keeps most of the text."""
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;:-") + "…"


# --- Passages ---------------------------------------------------------------------------

LONG_TEXT_WORDS = 120  # a longer text is searched and shown by passage
_PASSAGE_WORDS = 100  # words of a passage, about
_MIN_PASSAGE_WORDS = 40
_MAX_OVERLAP_WORDS = 20  # a last sentence up to this long also begins the next passage
_PARAGRAPH_SHARE = 0.7  # of the aim, from which the end of a paragraph ends a passage
_CHARS_PER_WORD = 12  # characters that count as a word where there are no spaces
_SHORT_CHARS = 2 * LONG_TEXT_WORDS  # a text this short cannot have more words
_WORD_END = lazy_pattern(r"\s+")
_PARAGRAPH_END = lazy_pattern(r"\n\s*\n")
_PART_WORDS = _PASSAGE_WORDS // 2  # of a sentence that is cut
_PART_CHARS = _PART_WORDS * _CHARS_PER_WORD
# Characters that belong to the one before, and to the one after, besides marks.
_CONTINUING = lazy_pattern(
    "[\u0e33\u0eb3\u1160-\u11ff\u200c\u200d\ud7b0-\ud7fb\uff9e\uff9f"
    "\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
_CONTINUED = lazy_pattern(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\u1100-\u115f\u200d\ua960-\ua97c"
    "\U000110bd\U000110cd\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011a84-\U00011a89"
    "\U00011d46\U00011f02]"
)
_VIRAMA_CLASS = 9  # joins two consonants


class _Piece(NamedTuple):
    """A stretch of text that no passage divides: a sentence, or part of a very long one."""

    start: int
    end: int
    words: int
    ends_paragraph: bool


def count_words(text: str) -> int:
    """How long a text is in words; without spaces, in what would be as many characters."""
    unsegmented = 0 if text.isascii() else sum(map(len, _UNSEGMENTED.findall(text)))
    return max(len(text.split()), -(-len(text) // _CHARS_PER_WORD), -(-unsegmented // 2))


def split_passages(text: str) -> tuple[tuple[int, int], ...]:
    """Where the passages of a long text start and end; empty for a text that is not long.

    Passages of some 100 words follow each other without a gap, end with a sentence where
    they can, and begin with the last sentence of the one before if that is short.
    """
    if len(text) <= _SHORT_CHARS or (total := count_words(text)) <= LONG_TEXT_WORDS:
        return ()
    aim = total / -(-total // _PASSAGE_WORDS)
    groups: list[list[_Piece]] = [[]]
    words = 0
    for piece in _pieces(text):
        if words and _ends_passage(groups[-1][-1], words, piece.words, aim):
            groups.append([])
            words = 0
        groups[-1].append(piece)
        words += piece.words
    if len(groups) > 2 and words < _MIN_PASSAGE_WORDS // 2:
        rest = groups.pop()
        groups[-1] += rest
    return tuple(
        (_overlap_start(before) if before else group[0].start, group[-1].end)
        for before, group in zip([None, *groups], groups, strict=False)
    )


def _ends_passage(last: _Piece, words: int, more: int, aim: float) -> bool:
    if words >= aim:
        return True
    if last.ends_paragraph and words >= _PARAGRAPH_SHARE * aim:
        return True
    return words >= _MIN_PASSAGE_WORDS and words + more > LONG_TEXT_WORDS


def _overlap_start(group: list[_Piece]) -> int:
    """Where the next passage starts: with the last sentence of this one, if it is short."""
    last = group[-1]
    repeats = len(group) > 1 and last.words <= _MAX_OVERLAP_WORDS and not last.ends_paragraph
    return last.start if repeats else last.end


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the sentences of a text, very long ones in parts; together they are the text."""
    start = 0
    for _, end in _sentence_spans(text):
        if end == start or not _is_character_border(text, end):
            continue
        yield from _parts_of(text, start, end)
        start = end


def _parts_of(text: str, start: int, end: int) -> Iterator[_Piece]:
    """Yield a sentence, cut between words or characters where it exceeds half a passage."""
    while end - start > _PART_CHARS or count_words(text[start:end]) > _PART_WORDS:
        cut = _cut_place(text, start, min(start + _PART_CHARS, end))
        if cut >= end:
            break
        yield _Piece(start, cut, count_words(text[start:cut]), ends_paragraph=False)
        start = cut
    ends_paragraph = _PARAGRAPH_END.search(text, max(start, end - 80), end) is not None
    yield _Piece(start, end, count_words(text[start:end]), ends_paragraph)


def _cut_place(text: str, start: int, most: int) -> int:
    """The last place between two words up to which a part is not too long; else any."""
    places = [mark.end() for mark in islice(_WORD_END.finditer(text, start + 1, most), _PART_WORDS)]
    for place in reversed(places):
        if count_words(text[start:place]) <= _PART_WORDS and _is_character_border(text, place):
            return place
    place = min(start + _PASSAGE_WORDS, most)
    while place < len(text) and not _is_character_border(text, place):
        place += 1
    return place


def _is_character_border(text: str, at: int) -> bool:
    """Whether no reader's character is divided there; in doubt it says no.

    See Unicode's annex 29 on grapheme clusters.
    """
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before.isascii() and after.isascii():
        return before != "\r" or after != "\n"
    return not (
        unicodedata.category(after)[0] == "M"
        or _CONTINUING.match(after)
        or _CONTINUED.match(before)
        or unicodedata.combining(before) == _VIRAMA_CLASS
    )


# --- Fingerprints -----------------------------------------------------------------------


def fingerprint(folded: str, *qualifiers: str) -> str:
    """A hash that is equal for equal folded texts with equal qualifiers."""
    import hashlib  # start-up time: OpenSSL takes long to load, and a hook may end before

    return hashlib.sha256("\x1f".join((folded, *qualifiers)).encode()).hexdigest()


# --- Speakers ---------------------------------------------------------------------------

# Names of the roles in a chat; no names of persons.
ROLES = frozenset(
    ("user", "assistant", "system", "human", "ai", "bot", "tool", "agent", "model", "function")
)


class Utterance(Protocol):
    """A text with its speaker, if known."""

    @property
    def text(self) -> str: ...

    @property
    def speaker(self) -> str | None: ...


def with_speaker(turn: Utterance) -> str:
    """The text prefixed with its speaker's name, as in a script."""
    if not turn.speaker or turn.speaker.casefold() in ROLES:
        return turn.text
    return f"{turn.speaker}: {turn.text}"


class Captioned(Utterance, Protocol):
    """An utterance that may have a caption."""

    @property
    def caption(self) -> str | None: ...


def own_caption(memory: Captioned) -> str:
    """The caption where it says more than the text does, else nothing."""
    if not memory.caption:
        return ""
    # A shortened caption may end within a word.
    line = memory.caption[:-1].rpartition(" ")[0] if memory.caption[-1] == "…" else memory.caption
    spoken = f"{memory.speaker}: {memory.text}" if memory.speaker else memory.text
    if line in spoken or word_set(line) <= word_set(spoken):
        return ""
    return memory.caption


def searched_text(memory: Captioned) -> str:
    """The text that is compared by meaning: a caption of its own, the speaker, the text."""
    own = own_caption(memory)
    return f"{own}\n{with_speaker(memory)}" if own else with_speaker(memory)
