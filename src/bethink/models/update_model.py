"""Our own model of two memories: whether the newer one updates the older, run by NumPy.

A small cross-encoder reads both texts together. ``training/`` has the recipe and the model
card; the weights are data of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from bethink.core.lazy import Lazy
from bethink.errors import ModelError
from bethink.models.embed.contextual import EncoderNetwork, read_arrays
from bethink.models.embed.encoder import ENCODER_DATA, ENCODER_VOCABULARY
from bethink.models.embed.tokenizers import BertTokenizer, require_encodable
from bethink.ports import PairVerdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bethink.models.embed.contextual import AnyArray

UPDATE_WEIGHTS = "updates-1.npz"
# Of a text this many pieces are read.
_MAX_PIECES = 80
# It has learnt the first pieces of the encoder's vocabulary, the English ones.
# Pieces that it lacks (most Chinese characters) share the rows after them.
_UNKNOWN, _VOCABULARY, _SHARED_ROWS = 100, 30_522, 2_048


class UpdateModel:
    """Reads pairs of an older and a newer memory. Thread-safe.

    Creating it costs nothing; the weights are read with the first pair.
    """

    def __init__(self, path: Path = ENCODER_DATA / UPDATE_WEIGHTS) -> None:
        self._network = Lazy(lambda: _load(path))

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        """Return a verdict for each pair of an older and a newer text."""
        pieces = {text: _piece_ids(text) for pair in pairs for text in pair}
        split = tokenizer()
        network = self._network()
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
        ends = ids == tokenizer().end_id
        second = ends.cumsum(axis=1) - ends > 0
        states = super().embed_pieces(ids)
        states += self._types[second.astype(np.int64)]
        return states

    def classify(self, states: NDArray[np.float32]) -> PairVerdict:
        scores = self._head @ states.mean(axis=0) + self._bias
        shares = np.exp(scores - scores.max())
        return PairVerdict(*(shares / shares.sum()).tolist())


def _load(path: Path) -> _PairNetwork:
    try:
        return _PairNetwork(read_arrays(path), path)
    except (KeyError, ValueError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error


def _load_tokenizer() -> BertTokenizer:
    path = ENCODER_DATA / ENCODER_VOCABULARY
    try:
        return BertTokenizer(b"\n".join(path.read_bytes().split(b"\n")[:_VOCABULARY]))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error


tokenizer = Lazy(_load_tokenizer)


def _piece_ids(text: str) -> list[int]:
    pieces = tokenizer()(require_encodable(text))
    return [
        _VOCABULARY + crc32(pieces.text[begin:end].encode()) % _SHARED_ROWS
        if piece == _UNKNOWN
        else piece
        for piece, (begin, end) in zip(
            pieces.ids[:_MAX_PIECES], pieces.spans[:_MAX_PIECES], strict=True
        )
    ]


# One for a process: its weights take 20 MB once read.
update_model = UpdateModel()
