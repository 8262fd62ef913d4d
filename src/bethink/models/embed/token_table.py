"""Static token vectors, and the stored form of token ids.

Stored tokens are a row of little-endian 16-bit numbers. Each sentence is its token ids, a mark
that is no id, and the length of the sum of their vectors as a float16. With that length a
sentence is compared by adding up its tokens' dot products; its vector need not be computed
again.
"""

from __future__ import annotations

from collections.abc import Sequence

from bethink.core.arrays import Matrix, NDArray, Vector, np
from bethink.core.named_tuple import NamedTuple
from bethink.errors import ModelError

# No token has this id, and no length these bits.
_SENTENCE_END = 0xFFFF


def pack_tokens(ids: Sequence[int], ends: Sequence[int], lengths: Vector) -> bytes:
    """Return the stored form; ``ends`` are the positions of the sentences' last tokens."""
    row: list[int] = []
    start = 0
    # Lists, not arrays: a memory has some thirty tokens.
    for end, length in zip(ends, lengths.astype("<f2").view("<u2").tolist(), strict=True):
        row += ids[start : end + 1]
        row += (_SENTENCE_END, length)
        start = end + 1
    return np.array(row, dtype="<u2").tobytes()


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
        raise damaged_error()
    row = np.frombuffer(b"".join(memories), dtype="<u2")
    is_mark = row == _SENTENCE_END
    is_length = np.zeros(len(row), dtype=np.bool_)
    is_length[1:] = is_mark[:-1]
    is_id = ~(is_mark | is_length)
    filled = sizes > 0
    closes = np.cumsum(sizes[filled] // 2) - 1
    # A memory ends with a length, and a mark follows an id.
    if not is_length[closes].all() or is_mark[:1].any() or not is_id[:-1][is_mark[1:]].all():
        raise damaged_error()
    ids = row[is_id]
    if ids.size and int(ids.max()) >= vocabulary_size:
        raise damaged_error()
    ends = np.cumsum(is_id, dtype=np.intp)[is_mark]
    sentences_before = np.cumsum(is_length, dtype=np.intp)[closes]
    return UnpackedTokens(
        ids=ids,
        filled=filled,
        memory_starts=_starts_from_ends(closes + 1 - 2 * sentences_before),
        sentence_starts=_starts_from_ends(ends),
        lengths=row[is_length].view("<f2").astype(np.float32),
        first_sentences=_starts_from_ends(sentences_before),
    )


def _starts_from_ends(ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Convert end positions to start positions: 0, then each previous end."""
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    return starts


def damaged_error() -> ModelError:
    """Return the error for tokens that cannot be what was stored."""
    return ModelError("stored tokens are damaged", remedy="rebuild them with: bethink reindex")


class GatheredTokens(NamedTuple):
    """Unpacked memories, the vectors of their distinct tokens, and their positions."""

    stored: UnpackedTokens
    rows: Matrix
    positions: NDArray[np.intp]


class TokenTable:
    """One vector per token id, stored as int8 with a scale per row and converted on access."""

    def __init__(self, table: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
        self._table, self._scales = table, scales
        self.tokens, self.dim = table.shape
        self._last_gathered: tuple[tuple[bytes, ...], GatheredTokens] | None = None

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
        places = np.asarray(ids, dtype=np.intp)
        rows: Matrix = self._table[places] * self._scales[places][:, np.newaxis]
        return rows


def normalise(vectors: Matrix) -> Matrix:
    """Normalise vectors (the last axis) to length 1; zero vectors stay unchanged."""
    lengths = np.sqrt(np.vecdot(vectors, vectors))[..., np.newaxis]
    scaled: Matrix = np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return scaled
