"""Token vectors in a memory-mapped file: gathered, pooled, compared."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.errors import ModelError
from recollect.models.tokens import Unpacked, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.ports import Matrix, Vector

    Halves = NDArray[np.int16]

# A header beyond this is no header of ours; the real one has under a hundred bytes.
_LONGEST_HEADER = 1 << 20
_SIGN_AND_DIGITS = np.int32(-0x7000_0001)
_EXPONENT_SHIFT = np.float32(2.0**112)


class Gathered(NamedTuple):
    """Unpacked memories, the vectors of their distinct tokens, and where each is used."""

    stored: Unpacked
    rows: Matrix
    place: NDArray[np.intp]


class TokenTable:
    """One vector a token id, kept as float16 in the file and widened when asked for."""

    def __init__(self, halves: Halves) -> None:
        self._halves = halves
        self.tokens, self.dim = halves.shape
        self._last: tuple[tuple[bytes, ...], Gathered] | None = None

    def fingerprint(self) -> int:
        """A checksum over a thirty-second of the rows: tells one table from another."""
        return zlib.crc32(self._halves[:: max(1, self.tokens // 32)].tobytes())

    def pool(self, ids: Sequence[int]) -> Vector:
        """The direction of the mean of the tokens' vectors; zeros without tokens."""
        return unit(self._rows(ids).sum(axis=0))

    def pool_sentences(self, ids: Sequence[int], ends: Sequence[int]) -> tuple[Vector, Vector]:
        """The same, and how long the sum of each sentence's vectors is."""
        rows = self._rows(ids)
        starts = [0, *(end + 1 for end in ends[:-1])]
        sums = np.add.reduceat(rows[: ends[-1] + 1], starts, axis=0) if ends else rows[:0]
        return unit(rows.sum(axis=0)), np.sqrt(np.vecdot(sums, sums))

    def weigh(self, ids: Sequence[int], weights: Sequence[float]) -> Vector:
        """The direction of the weighted sum of the tokens' vectors."""
        return unit(np.asarray(weights, dtype=np.float32) @ self._rows(ids))

    def unit_rows(self, ids: Sequence[int]) -> Matrix:
        """The tokens' vectors, each of length 1."""
        return unit(self._rows(ids))

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """For each memory (rows) the best cosine each query vector (columns) finds."""
        best = np.zeros((len(memories), len(query)), dtype=np.float32)
        stored, rows, place = self._gather(memories)
        if stored.ids.size and len(query):
            lengths = np.sqrt(np.vecdot(rows, rows))[:, np.newaxis]
            products = rows @ query.T
            cosines = np.divide(products, lengths, out=products, where=lengths > 0)
            best[stored.filled] = np.maximum.reduceat(cosines[place], stored.memories, axis=0)
        return best

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """For each memory the best cosine one of its sentences has with the query."""
        best = np.zeros(len(memories), dtype=np.float32)
        stored, rows, place = self._gather(memories)
        if stored.ids.size:
            sums = np.add.reduceat((rows @ query)[place], stored.sentences)
            cosines = np.divide(
                sums, stored.lengths, out=np.zeros_like(sums), where=stored.lengths > 0
            )
            best[stored.filled] = np.maximum.reduceat(cosines, stored.first_sentences)
        # Lengths are kept with three digits, so a cosine may come out a little over 1.
        return best.clip(-1.0, 1.0)

    def _gather(self, memories: Sequence[bytes]) -> Gathered:
        """The memories' distinct tokens, each widened once: they share most of them.

        The last are kept, since words and sentences of the same memories are read one
        after the other. Replacing a tuple is safe among threads.
        """
        key = tuple(memories)
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        stored = unpack(memories, self.tokens)
        distinct, place = np.unique(stored.ids, return_inverse=True)
        gathered = Gathered(stored, self._rows(distinct), place)
        self._last = (key, gathered)
        return gathered

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


def unit(vectors: Matrix) -> Matrix:
    """Vectors (the last axis) at length 1; those of length 0 stay as they are."""
    lengths = np.sqrt(np.vecdot(vectors, vectors))[..., np.newaxis]
    scaled: Matrix = np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return scaled


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
