"""Our own model of two memories: whether the newer one updates the older, run by NumPy.

A small cross-encoder reads both texts together. ``training/`` has the recipe and the model
card; the weights are data of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bethink.core.arrays import NDArray
from bethink.core.lazy import Lazy
from bethink.errors import ModelError
from bethink.models.embed.contextual import EncoderNetwork, read_arrays
from bethink.models.embed.encoder import ENCODER_DATA, ENCODER_WEIGHTS, shared_tokenizer
from bethink.models.embed.tokenizers import require_encodable
from bethink.ports import PairVerdict

if TYPE_CHECKING:
    from bethink.models.embed.contextual import AnyArray

UPDATE_WEIGHTS = "updates-4.npz"
# Of a text this many pieces are read.
_MAX_PIECES = 80


class UpdateModel:
    """Reads pairs of an older and a newer memory; the weights with the first. Thread-safe."""

    def __init__(self, path: Path = ENCODER_DATA / UPDATE_WEIGHTS) -> None:
        self._network = Lazy(lambda: _load(path))

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        """Return a verdict for each pair of an older and a newer text."""
        split, network = shared_tokenizer(), self._network()
        pieces = {
            text: split(require_encodable(text)).ids[:_MAX_PIECES]
            for pair in pairs
            for text in pair
        }
        rows = [
            [split.start_id, *pieces[older], split.end_id, *pieces[newer], split.end_id]
            for older, newer in pairs
        ]
        return [network.classify(states) for states in network.encode(rows)]


class _PairNetwork(EncoderNetwork):
    """The encoder's network for two texts, with a vector for each side and four classes."""

    def __init__(self, weights: dict[str, AnyArray], path: Path) -> None:
        super().__init__(weights, path)
        self._types = weights["types"].astype(np.float32)
        self._head = weights["head.weight"].astype(np.float32)
        self._bias = weights["head.bias"].astype(np.float32)

    def embed_pieces(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        ends = ids == shared_tokenizer().end_id
        second = ends.cumsum(axis=1) - ends > 0
        states = super().embed_pieces(ids)
        states += self._types[second.astype(np.int64)]
        return states

    def classify(self, states: NDArray[np.float32]) -> PairVerdict:
        scores = self._head @ states.mean(axis=0) + self._bias
        shares = np.exp(scores - scores.max())
        return PairVerdict(*(shares / shares.sum()).tolist())


def _load(path: Path) -> _PairNetwork:
    # The table of pieces is the encoder's; the file system keeps it in memory once.
    table = read_arrays(ENCODER_DATA / ENCODER_WEIGHTS, ("table", "table_scale"))
    try:
        return _PairNetwork(table | read_arrays(path), path)
    except (KeyError, ValueError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error


# One for a process: its weights take 20 MB once read.
update_model = UpdateModel()
