"""A memory's tokens as a store keeps them: ids, where sentences end, how long those are.

A row of little-endian 16-bit numbers. Each sentence is its token ids, the last one
with the highest bit set, and then the length of the sum of their vectors as a float16,
whose highest bit, the sign, is clear. With the length at hand a sentence is compared
by adding up its tokens' dot products; its vector need not be made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.errors import ModelError
from recollect.models.bpe import SPACE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.ports import Vector

_LAST = 0x8000
# A shorter sentence ("Yes.", "e.g.") says too little and belongs to the one before.
_SHORTEST = 4

_ENDS, _SPACED, _BREAKS = 1, 2, 4
_CLOSING = "\"')]}”’»*_"


def sentence_marks(vocabulary: Mapping[str, int]) -> NDArray[np.uint8]:
    """For every piece whether it may end a sentence, begins with a space, or always ends one."""
    marks = np.zeros(len(vocabulary), dtype=np.uint8)
    marks[[number for piece, number in vocabulary.items() if piece[0] == SPACE]] |= _SPACED
    marks[[number for piece, number in vocabulary.items() if _may_end(piece)]] |= _ENDS
    breaks = [vocabulary[piece] for piece in ("<0x0A>", "。", "！", "？") if piece in vocabulary]
    marks[breaks] |= _BREAKS
    return marks


def _may_end(piece: str) -> bool:
    return not piece[-1].isalnum() and piece.rstrip(_CLOSING)[-1:] in (".", "!", "?", "…")


def sentence_ends(ids: Sequence[int], marks: NDArray[np.uint8]) -> list[int]:
    """The place of the last token of each sentence.

    A full stop ends one where a space or a line break follows: "v2.3.1" has none.
    """
    if not ids:
        return []
    seen = marks[np.asarray(ids, dtype=np.intp)]
    stops = (seen[:-1] & _ENDS != 0) & (seen[1:] & (_SPACED | _BREAKS) != 0)
    found = np.flatnonzero(stops | (seen[:-1] & _BREAKS != 0)).tolist()
    ends: list[int] = []
    start = 0
    for end in (*found, len(ids) - 1):
        if end - start + 1 < _SHORTEST and ends:
            ends[-1] = end
        else:
            ends.append(end)
        start = end + 1
    return ends


def pack(ids: Sequence[int], ends: Sequence[int], lengths: Vector) -> bytes:
    """The stored form; ``ends`` are the places of the sentences' last tokens."""
    if not ids:
        return b""
    row = np.empty(len(ids) + len(ends), dtype="<u2")
    is_length = np.zeros(len(row), dtype=np.bool_)
    is_length[[end + 1 + before for before, end in enumerate(ends)]] = True
    row[~is_length] = ids
    row[np.flatnonzero(is_length) - 1] |= _LAST
    row[is_length] = lengths.astype("<f2").view("<u2")
    return row.tobytes()


class Unpacked(NamedTuple):
    """Many memories' tokens in one row, with where memories and sentences begin in it.

    ``filled`` says which memories have tokens; the others begin nowhere.
    """

    ids: NDArray[np.uint16]
    filled: NDArray[np.bool_]
    memories: NDArray[np.intp]
    sentences: NDArray[np.intp]
    lengths: Vector
    first_sentences: NDArray[np.intp]


def unpack(memories: Sequence[bytes], vocabulary_size: int) -> Unpacked:
    """Reads stored tokens; ModelError where they cannot be ours."""
    sizes = np.array([len(memory) for memory in memories], dtype=np.intp)
    if (sizes % 2).any():
        raise _damaged()
    row = np.frombuffer(b"".join(memories), dtype="<u2")
    is_last = row >= _LAST
    is_length = np.zeros(len(row), dtype=np.bool_)
    is_length[1:] = is_last[:-1]
    filled = sizes > 0
    closes = np.cumsum(sizes[filled] // 2) - 1
    # A memory closes with a length, and no length looks like the last id of a sentence.
    if not is_length[closes].all() or (is_last & is_length).any():
        raise _damaged()
    ids = row[~is_length] & np.uint16(_LAST - 1)
    if ids.size and int(ids.max()) >= vocabulary_size:
        raise _damaged()
    ends = np.flatnonzero(is_last[~is_length])
    sentences_before = np.cumsum(is_length, dtype=np.intp)[closes]
    return Unpacked(
        ids=ids,
        filled=filled,
        memories=_shift(closes + 1 - sentences_before),
        sentences=_shift(ends + 1),
        lengths=row[is_length].view("<f2").astype(np.float32),
        first_sentences=_shift(sentences_before),
    )


def _shift(ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where each part begins, from where each ends: 0, then the end of the one before."""
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    return starts


def _damaged() -> ModelError:
    return ModelError("stored tokens are damaged", remedy="recollect reindex makes them anew")
