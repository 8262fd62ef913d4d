"""A small network that tags the words of a text, run by NumPy.

It sees of each word the rows of its pieces in the encoder's table and how it is written, then
layer by layer more of its neighbours. ``training/`` has the recipes and the model cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bethink.core.arrays import Matrix
from bethink.core.blas import ONE_BLAS_THREAD
from bethink.errors import ModelError
from bethink.models.embed.contextual import read_arrays
from bethink.models.embed.encoder import ENCODER_DATA, ENCODER_WEIGHTS, shared_tokenizer

# Of a word the first pieces are read, and the last one.
MAX_PIECES = 6

Spans = Sequence[tuple[int, int]]


class WordTagger:
    """A layer over each word, one for each distance over it and two neighbours, one for tags."""

    def __init__(self, path: Path, distances: tuple[int, ...]) -> None:
        table = read_arrays(ENCODER_DATA / ENCODER_WEIGHTS, ("table", "table_scale"))
        self._table, self._scale, self._distances = table["table"], table["table_scale"], distances
        try:
            weights = {key: array.astype(np.float32) for key, array in read_arrays(path).items()}
            self._layers = [
                (weights[f"layer{at}"], weights[f"layer{at}_bias"])
                for at in range(len(distances) + 2)
            ]
        except (KeyError, ValueError) as error:
            raise ModelError(f"{path} is damaged: {error}") from error

    def tag_shares(self, text: str, spans: Spans, shapes: Matrix) -> Matrix:
        """Return the shares of the tags (columns) of each word (rows)."""
        (first, first_bias), *between, (last, last_bias) = self._layers
        with ONE_BLAS_THREAD:
            states = np.concatenate([self._piece_rows(text, spans), shapes], axis=1)
            states = np.maximum(states @ first + first_bias, 0)
            for (weights, bias), distance in zip(between, self._distances, strict=True):
                padded = np.pad(states, ((distance, distance), (0, 0)))
                near = (states, padded[: -2 * distance], padded[2 * distance :])
                states = np.maximum(np.concatenate(near, axis=1) @ weights + bias, 0)
            scores: Matrix = states @ last + last_bias
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        return scores

    def _piece_rows(self, text: str, spans: Spans) -> Matrix:
        """Return of each word the mean row of its pieces, and the row of its last piece."""
        pieces = word_pieces(text, spans)
        counts = np.array([len(ids) for ids in pieces])
        ids = np.array([piece for ids in pieces for piece in ids])
        rows = self._table[ids].astype(np.float32) * self._scale[ids, np.newaxis]
        ends = counts.cumsum()
        means = np.add.reduceat(rows, ends - counts) / counts[:, np.newaxis]
        return np.concatenate([means, rows[ends - 1]], axis=1, dtype=np.float32)


def word_pieces(text: str, spans: Spans) -> list[list[int]]:
    """Return the ids of the pieces of each word, six at most."""
    pieces = shared_tokenizer()(text)
    begins = [begin for begin, _ in pieces.spans]
    made: list[list[int]] = []
    for first, last in np.searchsorted(begins, spans).tolist():
        ids = pieces.ids[first : max(last, first + 1)] or [0]
        made.append(ids if len(ids) <= MAX_PIECES else [*ids[: MAX_PIECES - 1], ids[-1]])
    return made


def join_shapes(parts: Sequence[bytes], words: int) -> Matrix:
    """Return the shapes of words, whose signs are the bytes of some parts each, as a matrix."""
    return np.frombuffer(b"".join(parts), np.uint8).reshape(words, -1).astype(np.float32)
