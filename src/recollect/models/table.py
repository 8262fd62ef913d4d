"""Token vectors in a memory-mapped file: gathered, pooled, compared."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.ports import Matrix, Vector

    Halves = NDArray[np.int16]

# A header beyond this is no header of ours; the real one has under a hundred bytes.
_LONGEST_HEADER = 1 << 20
_SIGN_AND_DIGITS = np.int32(-0x7000_0001)
_EXPONENT_SHIFT = np.float32(2.0**112)


class TokenTable:
    """One vector a token id, kept as float16 in the file and widened when asked for."""

    def __init__(self, halves: Halves) -> None:
        self._halves = halves
        self.tokens, self.dim = halves.shape

    def fingerprint(self) -> int:
        """A checksum over a thirty-second of the rows: tells one table from another."""
        return zlib.crc32(self._halves[:: max(1, self.tokens // 32)].tobytes())

    def pool(self, ids: Sequence[int]) -> Vector:
        """The direction of the mean of the tokens' vectors; zeros without tokens."""
        return unit(self._rows(ids).sum(axis=0))

    def unit_rows(self, ids: Sequence[int]) -> Matrix:
        """The tokens' vectors, each of length 1."""
        return unit(self._rows(ids))

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """For each memory (rows) the best cosine each query vector (columns) finds."""
        best = np.zeros((len(memories), len(query)), dtype=np.float32)
        ids = self._unpack(memories)
        lengths = np.array([len(memory) // 2 for memory in memories], dtype=np.intp)
        if not ids.size or not len(query):
            return best
        # Memories share most of their tokens: each is compared once, then looked up.
        distinct, place = np.unique(ids, return_inverse=True)
        cosines = unit(self._rows(distinct)) @ query.T
        filled = lengths > 0
        starts = (np.cumsum(lengths) - lengths)[filled]
        best[filled] = np.maximum.reduceat(cosines[place], starts, axis=0)
        return best

    def _rows(self, ids: Sequence[int] | NDArray[np.uint16]) -> Matrix:
        """Rows as float32, five times faster than ``astype`` converts them.

        A half's exponent and digits, moved to where a float32 has them, make the
        number 2**112 times too small: exact for every finite half.
        """
        wide = self._halves[np.asarray(ids, dtype=np.intp)].astype(np.int32)
        wide <<= 13
        wide &= _SIGN_AND_DIGITS
        rows = wide.view(np.float32)
        rows *= _EXPONENT_SHIFT
        return rows

    def _unpack(self, memories: Sequence[bytes]) -> NDArray[np.uint16]:
        if any(len(memory) % 2 for memory in memories):
            raise ModelError("stored tokens are damaged: half an id", remedy="recollect reindex")
        ids = np.frombuffer(b"".join(memories), dtype="<u2")
        if ids.size and int(ids.max()) >= self.tokens:
            raise ModelError(
                "stored tokens are damaged: an id beyond the vocabulary", remedy="recollect reindex"
            )
        return ids


def unit(vectors: Matrix) -> Matrix:
    """Vectors (the last axis) at length 1; those of length 0 stay as they are."""
    lengths = np.sqrt(np.vecdot(vectors, vectors))[..., np.newaxis]
    scaled: Matrix = np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return scaled


def pack_tokens(ids: Sequence[int]) -> bytes:
    """Token ids as a store keeps them: little-endian, two bytes each."""
    return np.asarray(ids, dtype="<u2").tobytes()


def open_table(path: Path) -> TokenTable:
    """Maps the one float16 tensor of a safetensors file; nothing is read yet."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _LONGEST_HEADER:
                raise ModelError(f"{path} is not a safetensors file")
            tensor = json.loads(file.read(length))["embedding.weight"]
        if tensor["dtype"] != "F16":
            raise ModelError(f"{path} holds {tensor['dtype']} numbers, not F16")
        offset = 8 + length + tensor["data_offsets"][0]
        shape = tuple(tensor["shape"])
        mapped = np.memmap(path, dtype="<i2", mode="r", offset=offset, shape=shape)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ModelError(f"{path} is not a table of token vectors: {error}") from error
    return TokenTable(np.asarray(mapped))
