"""Our own model of names: where a text has one, and of which kind, run by NumPy.

It sees of each word the rows of its pieces in the encoder's table and how it is written, and
of its neighbours the same, up to three words away. ``training/`` has the recipe and the model
card; the weights are data of this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from bethink.core.arrays import Matrix
from bethink.core.blas import ONE_BLAS_THREAD
from bethink.core.lazy import Lazy, lazy_pattern
from bethink.core.words import UNSEGMENTED
from bethink.errors import ModelError
from bethink.lang.words import is_ordinary
from bethink.models.embed.contextual import read_arrays
from bethink.models.embed.encoder import ENCODER_DATA, ENCODER_WEIGHTS, shared_tokenizer
from bethink.ports import FoundName

NAME_WEIGHTS = "names-2.npz"
# The first word of a name of each kind has an odd tag, further ones the even tag after it.
KINDS = ("person", "company", "tool", "project", "place", "symbol")
# Of a word the first pieces are read, and the last one.
MAX_PIECES = 6
_LAYERS = 3
# Punctuation that is part of no name, between spaces and where no space is.
_CHUNK = lazy_pattern("[^\\s—–…、。，；：！？（）「」『』《》〈〉【】“”„«»‹›·‘]+")
_LEADING, _TRAILING = "\"'`([{<*=&+,;:!?)]}>^%€£|’", "\"'`.,;:!?)]}>*’|=&-([{<~^\\"
# "d'Hortense" and "Ngozi's" are two words each.
_APOSTROPHE = lazy_pattern(r"(?<=\b[^\W\d_])['’](?=\w)|(?<=\b[^\W\d_]{2})['’](?=\w\w)|['’](?=s\b)")
# After "Dr." and "St." a name goes on.
_BREAK = lazy_pattern(r"[,;:!?…\n、。，；：！？]|(?<!\b\w)(?<!\b\w\w)\.")
_CAMEL_CASE = lazy_pattern(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_GAP_SIGNS = (
    "\n", ",、，", ".!?…。！？", ":：", '"“”„«»「」《》‘', "'’", "(（[", ")）]", "`", "&+/|", "—–-",
)  # fmt: skip
_WORD_SIGNS = ("_", "/", ".", "-", "@", "#", "()<>=", ":", "'’", "+")


class NameModel:
    """Finds names in texts; the weights are read with the first. Thread-safe."""

    def __init__(self, path: Path = ENCODER_DATA / NAME_WEIGHTS) -> None:
        self._network = Lazy(lambda: _NameNetwork(path))

    def find(self, text: str) -> list[FoundName]:
        """Return the names of a text in order, with kind and probability."""
        spans = split_words(text)
        if not spans:
            return []
        shares = self._network().tag_shares(text, spans)
        return list(_read_names(text, spans, shares))


class _NameNetwork:
    """A layer over each word, and two over a word and its neighbours."""

    def __init__(self, path: Path) -> None:
        table = read_arrays(ENCODER_DATA / ENCODER_WEIGHTS, ("table", "table_scale"))
        self._table, self._scale = table["table"], table["table_scale"]
        try:
            weights = {key: array.astype(np.float32) for key, array in read_arrays(path).items()}
            self._layers = [
                (weights[f"layer{at}"], weights[f"layer{at}_bias"]) for at in range(_LAYERS + 2)
            ]
        except (KeyError, ValueError) as error:
            raise ModelError(f"{path} is damaged: {error}") from error

    def tag_shares(self, text: str, spans: list[tuple[int, int]]) -> Matrix:
        """Return the shares of the tags (columns) of each word (rows)."""
        with ONE_BLAS_THREAD:
            return self._tag_shares(text, spans)

    def _tag_shares(self, text: str, spans: list[tuple[int, int]]) -> Matrix:
        (first, first_bias), *between, (last, last_bias) = self._layers
        states = np.concatenate([self._piece_rows(text, spans), word_shapes(text, spans)], axis=1)
        states = np.maximum(states @ first + first_bias, 0)
        for weights, bias in between:
            none = np.zeros_like(states[:1])
            before, after = np.concatenate([none, states[:-1]]), np.concatenate([states[1:], none])
            states = np.maximum(np.concatenate([states, before, after], axis=1) @ weights + bias, 0)
        scores: Matrix = states @ last + last_bias
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        return scores

    def _piece_rows(self, text: str, spans: list[tuple[int, int]]) -> Matrix:
        """Return of each word the mean row of its pieces, and the row of its last piece."""
        pieces = word_pieces(text, spans)
        counts = np.array([len(ids) for ids in pieces])
        ids = np.array([piece for ids in pieces for piece in ids])
        rows = self._table[ids].astype(np.float32) * self._scale[ids, np.newaxis]
        ends = counts.cumsum()
        means = np.add.reduceat(rows, ends - counts) / counts[:, np.newaxis]
        return np.concatenate([means, rows[ends - 1]], axis=1, dtype=np.float32)


def word_pieces(text: str, spans: list[tuple[int, int]]) -> list[list[int]]:
    """Return the ids of the pieces of each word, six at most."""
    pieces = shared_tokenizer()(text)
    begins = [begin for begin, _ in pieces.spans]
    made: list[list[int]] = []
    for first, last in np.searchsorted(begins, spans).tolist():
        ids = pieces.ids[first : max(last, first + 1)] or [0]
        made.append(ids if len(ids) <= MAX_PIECES else [*ids[: MAX_PIECES - 1], ids[-1]])
    return made


def split_words(text: str) -> list[tuple[int, int]]:
    """Return where each word starts and ends; without spaces a character is a word."""
    return [
        span for chunk in _CHUNK.finditer(text) for span in _split_chunk(chunk[0], chunk.start())
    ]


def _split_chunk(chunk: str, start: int) -> Iterator[tuple[int, int]]:
    if chunk.isalnum() and chunk.isascii():
        yield start, start + len(chunk)
        return
    at = 0
    for run in () if chunk.isascii() else UNSEGMENTED.finditer(chunk):
        yield from _split_parts(chunk[at : run.start()], start + at)
        yield from ((start + place, start + place + 1) for place in range(*run.span()))
        at = run.end()
    yield from _split_parts(chunk[at:], start + at)


def _split_parts(chunk: str, start: int) -> Iterator[tuple[int, int]]:
    at = 0
    for end, after in (*(found.span() for found in _APOSTROPHE.finditer(chunk)), (len(chunk), 0)):
        bare = chunk[at:end].lstrip(_LEADING)
        begin = start + end - len(bare)
        word = bare.rstrip(_TRAILING)
        ending = bare[len(word) :]
        closed = 2 if ending.startswith("()") else int("(" in word and ending.startswith(")"))
        if word:
            yield begin, begin + len(word) + closed
        at = after


def word_shapes(text: str, spans: list[tuple[int, int]]) -> Matrix:
    """Return how each word is written, and what stands before and after it."""
    gaps = [_gap_shape(text[end:begin]) for (_, end), (begin, _) in pairwise(spans)]
    gaps = [_gap_shape("\n" + text[: spans[0][0]]), *gaps, _gap_shape(text[spans[-1][1] :] + "\n")]
    has_capitals = (not text.islower(),)
    rows = [
        _word_shape(text[begin:end]) + gaps[at] + gaps[at + 1] + has_capitals
        for at, (begin, end) in enumerate(spans)
    ]
    return np.array(rows, dtype=np.float32)


@lru_cache(maxsize=4_096)
def _word_shape(word: str) -> tuple[bool, ...]:
    """Return how a word is written; words come again and again."""
    letters = any(map(str.isalpha, word))
    return (
        word[0].isupper(),
        letters and len(word) > 1 and word.isupper(),
        word.islower(),
        word.isalpha(),
        letters,
        word.isascii(),
        any(map(str.isdigit, word)),
        _CAMEL_CASE.search(word) is not None,
        UNSEGMENTED.match(word) is not None,
        word[0] in "@#-~/.",
        len(word) == 1,
        len(word) == 2,
        len(word) > 9,
        *(any(sign in word for sign in signs) for signs in _WORD_SIGNS),
        is_ordinary(word),
    )


@lru_cache(maxsize=1_024)
def _gap_shape(gap: str) -> tuple[bool, ...]:
    """Return what stands between two words, or around them all."""
    return (not gap, gap == " ", *(any(sign in gap for sign in signs) for signs in _GAP_SIGNS))


def _read_names(text: str, spans: list[tuple[int, int]], shares: Matrix) -> Iterator[FoundName]:
    """Yield runs of words that are rather part of a name than not, up to a pause."""
    tags, named = shares.argmax(axis=1).tolist(), 1 - shares[:, 0]
    first = 0
    while first < len(tags):
        last = first + 1
        if tags[first]:
            while last < len(tags) and tags[last] and tags[last] % 2 == 0:
                if _BREAK.search(text, spans[last - 1][1], spans[last][0]):
                    break
                last += 1
            share, kind = float(named[first:last].mean()), KINDS[(tags[first] - 1) // 2]
            yield FoundName(spans[first][0], spans[last - 1][1], kind, share)
        first = last


# One for a process: its weights take a megabyte once read.
name_model = NameModel()
