"""Our own model of secrets: which words of a text are passwords, keys or codes.

It sees how each word is written and what stands around it, up to sixteen words away. So it finds
what no label names, too: "staging login: timo, then Fichtennadel_5".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from math import log2
from pathlib import Path

from bethink.core.arrays import Matrix
from bethink.core.lazy import Lazy, lazy_pattern
from bethink.core.words import UNSEGMENTED
from bethink.lang.words import is_ordinary
from bethink.models.embed.encoder import ENCODER_DATA
from bethink.models.word_tagger import Spans, WordTagger, join_shapes

SECRET_WEIGHTS = "secrets-3.npz"  # noqa: S105 - a file name
DISTANCES = (1, 2, 4, 8, 1)
# A secret with a digit has a word of the first share. One without, what may be a date or an id,
# and all in terse texts have one of the second. Both go on over words of the third.
SURE, SURER, SUREST, RATHER = 0.65, 0.9, 0.98, 0.3
# In longer texts more words look like one by chance: there the shares are higher, and very long
# ones are left to the rules, which take a fortieth of the time.
TERSE, SHORT, LONG = 5, 20, 400  # words and signs
_WORD = lazy_pattern(r"[^\W_]\w*|([^\w\s]|_)\1*")
_CHUNK = lazy_pattern(r"\S+")
_HEX = lazy_pattern(r"[0-9a-fA-F]+")
# What a machine made, hashes and ids with it: of these the rules know more, if it is not mixed.
_MIXED = lazy_pattern(r"(?s)(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])")
_MADE = lazy_pattern(r"[A-Za-z0-9]{16}|^(?=.*[a-f])(?=.*[0-9])[0-9a-f]{7,}$")
_FEW_DIGITS = lazy_pattern(r"(?s)(?!.*(?:[^\W\d]|\d{4}))")
# In an address the rules know what is secret.
_IN_URL = lazy_pattern(r"://\S*\Z")
_PHRASE = 3  # so many words are a list more often than a passphrase
_LEAST = 3  # letters and digits, and half of the words are other ones
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_RUN = lazy_pattern(r"[^\W\dA-Z_]+|[A-Z]+|\d+|_+")
_SIGNS = "=:;,.!?\"'`()[]{}<>|/\\@#$%&*+-_~^"
_LENGTHS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 64)
_CHUNK_LENGTHS = (4, 8, 12, 20, 32, 64)
_CHANGES, _BITS = (0.15, 0.3, 0.5), (2.0, 2.8, 3.3, 3.8, 4.4)


class SecretModel:
    """Finds secrets in texts; the weights are read with the first. Thread-safe."""

    def __init__(self, path: Path = ENCODER_DATA / SECRET_WEIGHTS) -> None:
        self._tagger = Lazy(lambda: WordTagger(path, DISTANCES))

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return where each secret of a text begins and ends, in order."""
        spans = split_words(text)
        if not 0 < len(spans) <= LONG:
            return []
        shares = self._tagger().tag_shares(text, spans, word_shapes(text, spans))[:, 1]
        return list(read_secrets(text, spans, shares.tolist()))


def read_secrets(text: str, spans: Spans, shares: list[float]) -> Iterator[tuple[int, int]]:
    """Yield runs of words that are rather secret than not, if one of them surely is."""
    for is_rather, run in groupby(range(len(spans)), lambda place: shares[place] >= RATHER):
        if is_rather:
            places = list(run)
            begin, end = spans[places[0]][0], spans[places[-1]][1]
            share = max(shares[place] for place in places)
            least = _LEAST + text[begin - 1 : begin].isalpha()  # 丸の内1-9-1 is a house
            is_sure = share >= _needed_share(text[begin:end], len(spans), least)
            if is_sure and not _IN_URL.search(text, 0, begin):
                yield begin, end


def _needed_share(part: str, words: int, least: int) -> float:
    """Return the share that a part of a text of so many words needs to be a secret."""
    has_digit = any(map(str.isdigit, part))
    is_made, is_number = _MADE.search(part), _FEW_DIGITS.match(part)
    said = [part[begin:end] for begin, end in split_words(part) if part[begin].isalnum()]
    is_plain = sum(map(len, said)) < least or 2 * len(set(said)) < len(said)
    if is_plain or (is_made and not _MIXED.match(part)):
        return 2  # none has it
    if sum(map(str.isalpha, part.split())) >= _PHRASE:
        return SUREST
    sure = SURER if is_made or is_number or not has_digit or words <= TERSE else SURE
    return 1 - (1 - sure) * min(1, SHORT / words)


def split_words(text: str) -> list[tuple[int, int]]:
    """Return where each word and each run of one sign starts and ends."""
    spans: list[tuple[int, int]] = []
    for found in _WORD.finditer(text):
        begin, end = found.span()
        if found[0].isascii():
            spans.append((begin, end))
            continue
        at = begin
        for run in UNSEGMENTED.finditer(text, begin, end):
            if at < run.start():
                spans.append((at, run.start()))
            spans += ((place, place + 1) for place in range(*run.span()))
            at = run.end()
        if at < end:
            spans.append((at, end))
    return spans


def word_shapes(text: str, spans: Spans) -> Matrix:
    """Return how each word is written, what stands next to it, and what it is a part of."""
    chunks = [found.span() for found in _CHUNK.finditer(text)]
    rows: list[bytes] = []
    at = 0
    for begin, end in spans:
        while chunks[at][1] <= begin:
            at += 1
        start, stop = chunks[at]
        before = text[begin - 1] if begin else "\n"
        ends = end == len(text) or text[end] == "\n"
        edges = (begin == start, end == stop, before == "\n", ends)
        place = bytes((*edges, before in "=:", before in "\"'`"))
        rows += (_word_shape(text[begin:end]), _chunk_shape(text[start:stop]), place)
    return join_shapes(rows, len(spans))


@lru_cache(maxsize=8_192)
def _word_shape(word: str) -> bytes:
    """Return how a word is written; words come again and again."""
    size, runs = len(word), _RUN.findall(word)
    changes = (len(runs) - 1) / max(1, size - 1)
    bits = sum(-count / size * log2(count / size) for count in Counter(word).values())
    stem = word.strip("0123456789_")
    hexadecimal = _HEX.fullmatch(word) is not None
    return bytes(
        (
            word.isdigit(),
            word.isalpha(),
            word.isalnum(),
            word.islower(),
            word.isupper(),
            word.istitle(),
            word.isascii(),
            any(map(str.isdigit, word)),
            "_" in word,
            hexadecimal,
            hexadecimal and size in {32, 40, 64},
            _YEAR.fullmatch(word) is not None,
            is_ordinary(word),
            stem != word and is_ordinary(stem),
            UNSEGMENTED.match(word) is not None,
            *(size >= length for length in _LENGTHS),
            *(changes >= limit for limit in _CHANGES),
            *(bits >= limit for limit in _BITS),
            *(word[0] == sign for sign in _SIGNS),
        )
    )


@lru_cache(maxsize=8_192)
def _chunk_shape(chunk: str) -> bytes:
    """Return how the text between two spaces is written that a word is a part of."""
    return bytes(
        (
            "://" in chunk,
            "@" in chunk,
            "=" in chunk,
            chunk[0] in "./~",
            chunk[0] == "-",
            chunk[0] in "$%{<",
            "${" in chunk or "{{" in chunk,
            "(" in chunk,
            "*" in chunk,
            any(map(str.isdigit, chunk)),
            any(map(str.isupper, chunk)),
            any(map(str.islower, chunk)),
            *(len(chunk) >= length for length in _CHUNK_LENGTHS),
        )
    )


# One for a process: its weights take a megabyte once read.
secret_model = SecretModel()
