"""A memory's contextual tokens as a store keeps them: a bit a dimension, and one number.

Of a token's unit vector x only the signs b are kept, and how far x reaches along them,
x·b. What a question's vector q has in common with it is then estimated as q·b / x·b
(after Gao & Long, SIGMOD 2024): nothing is lost in the rankings measured, in 52 bytes
instead of 1,536. Sentences are few, so theirs are vectors of int8.

The row: format, sentences (a byte each), tokens, dimensions (two bytes each, little-
endian), then the sentences' vectors, the tokens' reaches (float32), the tokens' signs.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.errors import ModelError
from recollect.models.table import unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.ports import Matrix, Vector

MAX_SENTENCES = 0xFF
MAX_TOKENS = 0xFFFF

_FORMAT = 1
_HEADER = struct.Struct("<BBHH")
_SENTENCE_LEVELS = 127
# A question's values as whole numbers: sums of 512 such are exact in float32, so the
# order in which a processor adds them does not matter.
_QUESTION_LEVELS = 16_383
_TOKENS_AT_ONCE = 8192


def pack(tokens: Matrix, sentences: Matrix) -> bytes:
    """The stored form of a memory's token and sentence vectors; nothing without tokens."""
    if not len(tokens):
        return b""
    vectors = unit(tokens.astype(np.float32))
    header = _HEADER.pack(_FORMAT, len(sentences), len(vectors), vectors.shape[1])
    peaks = np.abs(sentences).max(axis=1, keepdims=True)
    rounded = np.rint(sentences * (_SENTENCE_LEVELS / np.maximum(peaks, 1e-30))).astype(np.int8)
    reaches = np.abs(vectors).sum(axis=1).astype("<f4")
    return b"".join(
        (header, rounded.tobytes(), reaches.tobytes(), np.packbits(vectors > 0, axis=1).tobytes())
    )


class _Parts(NamedTuple):
    """One memory's row, taken apart but not copied."""

    sentences: NDArray[np.int8]
    reaches: Vector
    signs: NDArray[np.uint8]


def best_matches(question: Matrix, memories: Sequence[bytes]) -> Matrix:
    """For each memory (rows) the best cosine each vector (columns) finds among its tokens."""
    best = np.zeros((len(memories), len(question)), dtype=np.float32)
    filled = [place for place, memory in enumerate(memories) if memory]
    if not filled or not len(question):
        return best
    parts = [_taken_apart(memories[place], question.shape[1]) for place in filled]
    reaches = np.concatenate([part.reaches for part in parts])
    signs = np.concatenate([part.signs for part in parts])
    cosines = _along(question, signs)
    cosines /= reaches[:, np.newaxis]
    starts = np.cumsum([0, *(len(part.reaches) for part in parts[:-1])])
    best[filled] = np.maximum.reduceat(cosines, starts, axis=0)
    return best.clip(-1.0, 1.0)


def best_sentences(question: Vector, memories: Sequence[bytes]) -> Vector:
    """For each memory the best cosine one of its sentences has with the question."""
    best = np.zeros(len(memories), dtype=np.float32)
    filled = [place for place, memory in enumerate(memories) if memory]
    if not filled:
        return best
    parts = [_taken_apart(memories[place], len(question)).sentences for place in filled]
    vectors = unit(np.concatenate(parts).astype(np.float32))
    starts = np.cumsum([0, *map(len, parts[:-1])])
    best[filled] = np.maximum.reduceat(vectors @ question, starts)
    return best.clip(-1.0, 1.0)


def _along(question: Matrix, signs: NDArray[np.uint8]) -> Matrix:
    """The question's vectors along the tokens' signs, each of which is +1 or -1."""
    width = question.shape[1]
    scale = _QUESTION_LEVELS / max(float(np.abs(question).max()), 1e-30)
    whole = np.rint(question * np.float32(scale))
    along = np.empty((len(signs), len(question)), dtype=np.float32)
    for start in range(0, len(signs), _TOKENS_AT_ONCE):
        some = slice(start, start + _TOKENS_AT_ONCE)
        positive = np.unpackbits(signs[some], axis=1, count=width).astype(np.float32)
        np.matmul(positive, whole.T, out=along[some])
    # Those where the sign is + less those where it is -.
    along *= 2
    along -= whole.sum(axis=1)
    along /= np.float32(scale)
    return along


def _taken_apart(memory: bytes, width: int) -> _Parts:
    """ModelError where the row cannot be ours."""
    if len(memory) < _HEADER.size:
        raise _damaged()
    form, sentences, tokens, dimensions = _HEADER.unpack_from(memory)
    sizes = (sentences * width, 4 * tokens, tokens * -(-width // 8))
    if (form, dimensions, len(memory)) != (_FORMAT, width, _HEADER.size + sum(sizes)):
        raise _damaged()
    if not sentences or not tokens:
        raise _damaged()
    first = _HEADER.size + sizes[0]
    return _Parts(
        np.frombuffer(memory, np.int8, sizes[0], _HEADER.size).reshape(sentences, width),
        np.frombuffer(memory, "<f4", tokens, first),
        np.frombuffer(memory, np.uint8, sizes[2], first + sizes[1]).reshape(tokens, -1),
    )


def _damaged() -> ModelError:
    return ModelError("stored tokens are damaged", remedy="recollect reindex makes them anew")
