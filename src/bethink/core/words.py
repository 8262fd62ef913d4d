"""Words of a text: normalized, compared with those of another, hashed."""

from __future__ import annotations

import math
import unicodedata

from bethink.core.lazy import lazy_pattern

# NFKC would turn these into plain digits: 10⁵ must not become 105.
_SUPERSCRIPTS = str.maketrans({sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})
_OPENING = "\"'`(“‘«„‹「『（"
_CLOSING = "\"'`).,;:!…”’»›」』）。，、；：！"
# Scripts written without spaces between words, and Hangul, whose words carry endings.
UNSEGMENTED = lazy_pattern(
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
    pairs = (pair for run in UNSEGMENTED.findall(folded) for pair in _char_bigrams(run))
    return frozenset(word for word in words if not UNSEGMENTED.search(word)).union(pairs)


def _char_bigrams(run: str) -> list[str]:
    letters = _BREAKING_MARK.sub("", run)
    if len(letters) == 1:
        return [letters]
    return [letters[i : i + 2] for i in range(len(letters) - 1)]


def bm25_idf(documents: int, held: int) -> float:
    """BM25's inverse document frequency of a word held by so many of the documents."""
    return math.log(1.0 + (max(documents - held, 0) + 0.5) / (held + 0.5))


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


def fingerprint(folded: str, *qualifiers: str) -> str:
    """A hash that is equal for equal folded texts with equal qualifiers."""
    import hashlib  # start-up time: OpenSSL takes long to load, and a hook may end before

    return hashlib.sha256("\x1f".join((folded, *qualifiers)).encode()).hexdigest()


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard similarity of two sets; 0 for two empty ones."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
