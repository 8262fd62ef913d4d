"""A text's tokens in context, as a network left them: pooled, by sentences, by words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.models.contextual import pack
from recollect.models.table import unit
from recollect.models.wordpieces import Pieces

if TYPE_CHECKING:
    from recollect.ports import Matrix, Vector

# Late interaction reads so many tokens and sentences of a text, the first ones.
MAX_TOKENS = 256
MAX_SENTENCES = 64


class States(NamedTuple):
    """Each window of a text: its pieces from ``start`` to ``stop``, and their vectors
    between those of the two marks that the network reads around them."""

    pieces: Pieces
    ends: Sequence[int]
    windows: Sequence[tuple[int, int]]
    vectors: Sequence[Matrix]
    width: int

    def whole(self) -> Vector:
        """The direction of the mean of all, marks included, as the model was trained."""
        total = np.zeros(self.width, dtype=np.float32)
        for vectors in self.vectors:
            total += vectors.sum(axis=0)
        return unit(total)

    def tokens(self) -> Matrix:
        """The vectors of the pieces alone."""
        none = np.zeros((0, self.width), dtype=np.float32)
        return np.concatenate([none, *(vectors[1:-1] for vectors in self.vectors)])

    def sentences(self) -> Matrix:
        """The direction of the mean of each sentence; marks belong to the one they touch."""
        found = []
        for (start, stop), vectors in zip(self.windows, self.vectors, strict=True):
            inner = [end - start for end in self.ends if start <= end < stop - 1]
            found.append(np.add.reduceat(vectors, [0, *(end + 2 for end in inner)], axis=0))
        return unit(np.concatenate(found))

    def stored(self) -> bytes:
        """What a store keeps for late interaction: the first tokens and sentences."""
        if not self.vectors:
            return b""
        last = self.windows[-1][1]
        spoken = [place for place in self.pieces.spoken()[:MAX_TOKENS] if place < last]
        return pack(self.tokens()[spoken], self.sentences()[:MAX_SENTENCES])
