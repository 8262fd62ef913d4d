"""Static token vectors in a memory-mapped file, and the stored form of token ids.

Stored tokens are a row of little-endian 16-bit numbers. Each sentence is its token ids, the
last one with the highest bit set, then the length of the sum of their vectors as a float16,
whose sign bit is clear. With that length a sentence is compared by adding up its tokens'
dot products; its vector need not be computed again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bethink.errors import ModelError
from bethink.models.embed.tokenizers import SPACE_PIECE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bethink.ports import Matrix, Vector

    Float16Bits = NDArray[np.int16]


_SENTENCE_END_BIT = 0x8000
# A shorter sentence ("Yes.", "e.g.") is joined to the one before.
_MIN_SENTENCE_TOKENS = 4

_MAY_END, _STARTS_WITH_SPACE, _ALWAYS_ENDS = 1, 2, 4
_CLOSING_CHARACTERS = "\"')]}”’»*_"


def sentence_flags(vocabulary: Mapping[str, int]) -> NDArray[np.uint8]:
    """Return flags per piece: may end a sentence, begins with a space, always ends one."""
    marks = np.zeros(len(vocabulary), dtype=np.uint8)
    marks[[number for piece, number in vocabulary.items() if piece[0] == SPACE_PIECE]] |= (
        _STARTS_WITH_SPACE
    )
    marks[[number for piece, number in vocabulary.items() if _may_end(piece)]] |= _MAY_END
    breaks = [vocabulary[piece] for piece in ("<0x0A>", "。", "！", "？") if piece in vocabulary]
    marks[breaks] |= _ALWAYS_ENDS
    return marks


def _may_end(piece: str) -> bool:
    return not piece[-1].isalnum() and piece.rstrip(_CLOSING_CHARACTERS)[-1:] in (
        ".",
        "!",
        "?",
        "…",
    )


def sentence_ends(ids: Sequence[int], flags: NDArray[np.uint8]) -> list[int]:
    """Return the position of the last token of each sentence.

    A full stop ends one where a space or a line break follows: "v2.3.1" has none.
    """
    if not ids:
        return []
    seen = flags[np.asarray(ids, dtype=np.intp)]
    stops = (seen[:-1] & _MAY_END != 0) & (seen[1:] & (_STARTS_WITH_SPACE | _ALWAYS_ENDS) != 0)
    found = np.flatnonzero(stops | (seen[:-1] & _ALWAYS_ENDS != 0)).tolist()
    ends: list[int] = []
    start = 0
    for end in (*found, len(ids) - 1):
        if end - start + 1 < _MIN_SENTENCE_TOKENS and ends:
            ends[-1] = end
        else:
            ends.append(end)
        start = end + 1
    return ends


def pack_tokens(ids: Sequence[int], ends: Sequence[int], lengths: Vector) -> bytes:
    """Return the stored form; ``ends`` are the positions of the sentences' last tokens."""
    if not ids:
        return b""
    row = np.empty(len(ids) + len(ends), dtype="<u2")
    is_length = np.zeros(len(row), dtype=np.bool_)
    is_length[[end + 1 + before for before, end in enumerate(ends)]] = True
    row[~is_length] = ids
    row[np.flatnonzero(is_length) - 1] |= _SENTENCE_END_BIT
    row[is_length] = lengths.astype("<f2").view("<u2")
    return row.tobytes()


class UnpackedTokens(NamedTuple):
    """Many memories' tokens in one row, with the starts of memories and sentences.

    ``filled`` marks the memories that have tokens; the others have no start.
    """

    ids: NDArray[np.uint16]
    filled: NDArray[np.bool_]
    memory_starts: NDArray[np.intp]
    sentence_starts: NDArray[np.intp]
    lengths: Vector
    first_sentences: NDArray[np.intp]


def unpack_tokens(memories: Sequence[bytes], vocabulary_size: int) -> UnpackedTokens:
    """Parse stored tokens; raise ModelError where they are damaged."""
    sizes = np.array([len(memory) for memory in memories], dtype=np.intp)
    if (sizes % 2).any():
        raise _damaged_error()
    row = np.frombuffer(b"".join(memories), dtype="<u2")
    is_last = row >= _SENTENCE_END_BIT
    is_length = np.zeros(len(row), dtype=np.bool_)
    is_length[1:] = is_last[:-1]
    filled = sizes > 0
    closes = np.cumsum(sizes[filled] // 2) - 1
    # A memory ends with a length, which cannot be mistaken for the last id of a sentence.
    if not is_length[closes].all() or (is_last & is_length).any():
        raise _damaged_error()
    ids = row[~is_length] & np.uint16(_SENTENCE_END_BIT - 1)
    if ids.size and int(ids.max()) >= vocabulary_size:
        raise _damaged_error()
    ends = np.flatnonzero(is_last[~is_length])
    sentences_before = np.cumsum(is_length, dtype=np.intp)[closes]
    return UnpackedTokens(
        ids=ids,
        filled=filled,
        memory_starts=_starts_from_ends(closes + 1 - sentences_before),
        sentence_starts=_starts_from_ends(ends + 1),
        lengths=row[is_length].view("<f2").astype(np.float32),
        first_sentences=_starts_from_ends(sentences_before),
    )


def _starts_from_ends(ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Convert end positions to start positions: 0, then each previous end."""
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    return starts


def _damaged_error() -> ModelError:
    return ModelError("stored tokens are damaged", remedy="rebuild them with: bethink reindex")


# Maximum size of a header; a valid one has under a hundred bytes.
_MAX_HEADER_BYTES = 1 << 20
_SIGN_AND_MANTISSA = np.int32(-0x7000_0001)
_EXPONENT_SHIFT = np.float32(2.0**112)


class GatheredTokens(NamedTuple):
    """Unpacked memories, the vectors of their distinct tokens, and their positions."""

    stored: UnpackedTokens
    rows: Matrix
    positions: NDArray[np.intp]


class TokenTable:
    """One vector per token id, stored as float16 and converted on access."""

    def __init__(self, float16_bits: Float16Bits) -> None:
        self._float16_bits = float16_bits
        self.tokens, self.dim = float16_bits.shape
        self._last_gathered: tuple[tuple[bytes, ...], GatheredTokens] | None = None

    def fingerprint(self) -> int:
        """Return a checksum over 1/32 of the rows, to distinguish tables."""
        return zlib.crc32(self._float16_bits[:: max(1, self.tokens // 32)].tobytes())

    def pool(self, ids: Sequence[int]) -> Vector:
        """Return the normalised mean of the tokens' vectors; zeros without tokens."""
        return normalise(self._rows(ids).sum(axis=0))

    def pool_sentences(self, ids: Sequence[int], ends: Sequence[int]) -> tuple[Vector, Vector]:
        """Return the pooled vector, and the length of each sentence's vector sum."""
        rows = self._rows(ids)
        starts = [0, *(end + 1 for end in ends[:-1])]
        sums = np.add.reduceat(rows[: ends[-1] + 1], starts, axis=0) if ends else rows[:0]
        return normalise(rows.sum(axis=0)), np.sqrt(np.vecdot(sums, sums))

    def weighted_pool(self, ids: Sequence[int], weights: Sequence[float]) -> Vector:
        """Return the normalised weighted sum of the tokens' vectors."""
        return normalise(np.asarray(weights, dtype=np.float32) @ self._rows(ids))

    def unit_rows(self, ids: Sequence[int]) -> Matrix:
        """Return the tokens' vectors, normalised."""
        return normalise(self._rows(ids))

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """Return for each memory (rows) the best cosine per query vector (columns)."""
        best = np.zeros((len(memories), len(query)), dtype=np.float32)
        stored, rows, place = self._gather(memories)
        if stored.ids.size and len(query):
            lengths = np.sqrt(np.vecdot(rows, rows))[:, np.newaxis]
            products = rows @ query.T
            cosines = np.divide(products, lengths, out=products, where=lengths > 0)
            best[stored.filled] = np.maximum.reduceat(cosines[place], stored.memory_starts, axis=0)
        return best

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """Return for each memory the best cosine of its sentences with the query."""
        best = np.zeros(len(memories), dtype=np.float32)
        stored, rows, place = self._gather(memories)
        if stored.ids.size:
            sums = np.add.reduceat((rows @ query)[place], stored.sentence_starts)
            cosines = np.divide(
                sums, stored.lengths, out=np.zeros_like(sums), where=stored.lengths > 0
            )
            best[stored.filled] = np.maximum.reduceat(cosines, stored.first_sentences)
        # Norms are stored with three digits, so a cosine may slightly exceed 1.
        return best.clip(-1.0, 1.0)

    def _gather(self, memories: Sequence[bytes]) -> GatheredTokens:
        """Gather the memories' distinct tokens, each converted once.

        The last result is cached, since words and sentences of the same memories are read
        one after the other. Replacing a tuple is thread-safe.
        """
        key = tuple(memories)
        if self._last_gathered is not None and self._last_gathered[0] == key:
            return self._last_gathered[1]
        stored = unpack_tokens(memories, self.tokens)
        distinct, place = np.unique(stored.ids, return_inverse=True)
        gathered = GatheredTokens(stored, self._rows(distinct), place)
        self._last_gathered = (key, gathered)
        return gathered

    def _rows(self, ids: Sequence[int] | NDArray[np.uint16]) -> Matrix:
        """Convert rows to float32, five times faster than ``astype``.

        A half's exponent and mantissa, moved to their float32 positions, make the number
        2**112 times too small: exact for every finite half.
        """
        wide = self._float16_bits[np.asarray(ids, dtype=np.intp)].astype(np.int32)
        wide <<= 13
        wide &= _SIGN_AND_MANTISSA
        rows = wide.view(np.float32)
        rows *= _EXPONENT_SHIFT
        return rows


def normalise(vectors: Matrix) -> Matrix:
    """Normalise vectors (the last axis) to length 1; zero vectors stay unchanged."""
    lengths = np.sqrt(np.vecdot(vectors, vectors))[..., np.newaxis]
    scaled: Matrix = np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return scaled


def open_table(path: Path) -> TokenTable:
    """Memory-map the one float16 tensor of a safetensors file; nothing is read yet."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_HEADER_BYTES:
                raise ModelError(f"{path} is not a safetensors file")
            tensor = json.loads(file.read(length))["embedding.weight"]
        if tensor["dtype"] != "F16":
            raise ModelError(f"{path} has {tensor['dtype']} numbers, not F16")
        offset = 8 + length + tensor["data_offsets"][0]
        shape = tuple(tensor["shape"])
        mapped = np.memmap(path, dtype="<i2", mode="r", offset=offset, shape=shape)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ModelError(f"{path} is not a table of token vectors: {error}") from error
    return TokenTable(np.asarray(mapped))
