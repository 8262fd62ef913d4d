"""Words of a text for the network of names, and what it finds in them, by NumPy alone.

It sees of each word and its two neighbours the mean vector of the pieces and how they are
written, and gives the shares of thirteen tags: no name, or the first or a further word of a
person, company, tool, project, place or symbol. ``train_names.py`` trains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bethink.core.lazy import lazy_pattern
from bethink.core.words import UNSEGMENTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bethink.models.embed.tokenizers import TextPieces
    from bethink.ports import Matrix

KINDS = ("person", "company", "tool", "project", "place", "symbol")
TAGS = 1 + 2 * len(KINDS)  # none, then the first and further words of each kind
# A word with a lower share of names than this ends a name without further calculation.
_NO_NAME = 0.02
# Punctuation that is part of no name, between spaces and where no space is.
_CHUNK = lazy_pattern("[^\\s—–…、。，；：！？（）「」『』《》〈〉【】“”„«»‹›·‘]+")
_LEADING, _TRAILING = "\"'`([{<*=&+,;:!?)]}>^%€£|’", "\"'`.,;:!?)]}>*’|=&-([{<~^\\"
# "d'Hortense" and "Ngozi's" are two words each.
_APOSTROPHE = lazy_pattern(r"(?<=\b[^\W\d_])['’](?=\w)|(?<=\b[^\W\d_]{2})['’](?=\w\w)|['’](?=s\b)")
# After "Dr." and "St." a name goes on.
_BREAK = lazy_pattern(r"[,;:!?…\n、。，；：！？]|(?<!\b\w)(?<!\b\w\w)\.")
_CAMEL_CASE = lazy_pattern(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_GAP_SIGNS = (
    "\n",
    ",、，",
    ".!?…。！？",
    ":：",
    '"“”„«»「」《》‘',
    "'’",
    "(（[",
    ")）]",
    "`",
    "&+/|",
    "—–-",
)
_WORD_SIGNS = ("_", "/", ".", "-", "@", "#", "()<>=", ":", "'’", "+")


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


@lru_cache(maxsize=8_192)
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
    )


@lru_cache(maxsize=1_024)
def _gap_shape(gap: str) -> tuple[bool, ...]:
    """Return what stands between two words, or around them all."""
    return (not gap, gap == " ", *(any(sign in gap for sign in signs) for signs in _GAP_SIGNS))


def word_features(pieces: TextPieces, vectors: Matrix) -> tuple[list[tuple[int, int]], Matrix]:
    """Return the words that were read, and of each the vector and how it is written."""
    text = pieces.text
    begins = np.array([begin for begin, _ in pieces.spans[: len(vectors)]], dtype=np.int64)
    read = pieces.spans[len(vectors) - 1][1] if len(vectors) else 0
    spans = [span for span in split_words(text) if span[1] <= read]
    if not spans:
        return [], np.zeros((0, 0), np.float32)
    bounds = np.searchsorted(begins, np.array(spans))
    first, last = bounds[:, 0], np.maximum(bounds[:, 1], bounds[:, 0] + 1)
    counts = (last - first)[:, np.newaxis]
    sums = np.concatenate([np.zeros((1, vectors.shape[1]), np.float32), vectors.cumsum(axis=0)])
    means = (sums[np.minimum(last, len(vectors))] - sums[first]) / counts.astype(np.float32)
    gaps = [_gap_shape(text[end:begin]) for (_, end), (begin, _) in pairwise(spans)]
    around = ("\n" + text[: spans[0][0]], text[spans[-1][1] :] + "\n")
    gaps = [_gap_shape(around[0]), *gaps, _gap_shape(around[1])]
    capitals = (not text.islower(),)
    shapes = np.array(
        [
            (*_word_shape(text[begin:end]), *gaps[place], *gaps[place + 1], *capitals)
            for place, (begin, end) in enumerate(spans)
        ],
        dtype=np.float32,
    )
    sizes = counts == np.arange(1, 4)
    return spans, np.concatenate([means, shapes, sizes.astype(np.float32)], axis=1)


class NameHead:
    """The network: one hidden layer over a word and its two neighbours."""

    def __init__(self, path: Path) -> None:
        """Read a file of weights."""
        weights = {name: array.astype(np.float32) for name, array in np.load(path).items()}
        self._inner, self._inner_bias = weights["inner"], weights["inner_bias"]
        self._outer, self._outer_bias = weights["outer"], weights["outer_bias"]

    def tag_shares(self, features: Matrix) -> Matrix:
        """Return the shares of the tags (columns) of each word (rows) of a text."""
        own, before, after = np.split(features @ self._inner, 3, axis=1)
        own += self._inner_bias
        own[1:] += before[:-1]
        own[:-1] += after[1:]
        scores: NDArray[np.float32] = np.maximum(own, 0) @ self._outer + self._outer_bias
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return scores


def name_breaks(text: str, spans: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Return for each word but the first whether punctuation parts it from the one before."""
    return np.array(
        [_BREAK.search(text, end, begin) is not None for (_, end), (begin, _) in pairwise(spans)],
        dtype=np.bool_,
    )


def find_runs(shares: Matrix, breaks: NDArray[np.bool_]) -> list[tuple[int, int, int, float]]:
    """Return first word, end, kind and share of each name by the most probable tags."""
    found: list[tuple[int, int, int, float]] = []
    doubtful = np.flatnonzero(shares[:, 0] < 1 - _NO_NAME)
    apart = (np.diff(doubtful) > 1) | breaks[doubtful[1:] - 1]
    for group in np.split(doubtful, np.flatnonzero(apart) + 1):
        if not len(group):
            continue
        start = int(group[0])
        part = np.log(shares[start : start + len(group)] + np.float32(1e-9))
        tags = _best_tags(part)
        first = 0
        while first < len(tags):
            last = first + 1
            if tags[first]:
                while last < len(tags) and tags[last] == tags[first] + 1:
                    last += 1
                kind = (tags[first] - 1) // 2
                share = float(1 - shares[start + first : start + last, 0].mean())
                found.append((start + first, start + last, kind, share))
            first = last
    return found


# The tag of a further word comes only after one of the same kind.
_ALLOWED = np.zeros((TAGS, TAGS), np.float32)
_ALLOWED[:, 2::2] = -1e9
for _tag in range(2, TAGS, 2):
    _ALLOWED[_tag - 1 : _tag + 1, _tag] = 0


def _best_tags(scores: Matrix) -> list[int]:
    """Return the tags with the greatest sum of scores of which each may follow the one before."""
    best, steps = scores[0] + _ALLOWED[0], []
    for row in scores[1:]:
        sums = best[:, np.newaxis] + _ALLOWED
        steps.append(sums.argmax(axis=0))
        best = sums.max(axis=0) + row
    tags = [int(best.argmax())]
    for step in reversed(steps):
        tags.append(int(step[tags[-1]]))
    return tags[::-1]
