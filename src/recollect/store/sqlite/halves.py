"""Stored vectors kept in memory as searches come across them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from recollect.store.sqlite.chunks import read_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.store.sqlite.bits import Halves, Ints

# Vectors; 67 MB of 256 dimensions, once all have been read. A larger store reads them
# each time.
MOST_KEPT = 131_072

Chunks = tuple[tuple[int, int, int], ...]  # of each its id, version and number of rows


class Kept(NamedTuple):
    """The vectors of one state of the chunks, as far as they have been read."""

    chunks: Chunks
    rows: Halves
    known: NDArray[np.bool_]


class HalvesCache:
    """Vectors by their place among all of a model's; what changed is read again.

    Threads may fill it at the same time: they write the same values, and a row is
    marked as known after it is there.
    """

    def __init__(self) -> None:
        self._kept: Kept | None = None

    def read(
        self, db: apsw.Connection, chunks: Chunks, rids: Ints, places: Ints, dim: int
    ) -> Halves:
        """The vectors at these places, in their order."""
        # What a write has not committed may be undone, and its versions used again.
        if len(rids) > MOST_KEPT or db.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return read_vectors(db, rids[places], dim)
        kept = self._kept
        if kept is None or kept.chunks != chunks:
            kept = self._kept = _carried_over(kept, chunks, dim)
        missing = places[~kept.known[places]]
        if len(missing):
            kept.rows[missing] = read_vectors(db, rids[missing], dim)
            kept.known[missing] = True
        return np.take(kept.rows, places, axis=0)


def _carried_over(before: Kept | None, chunks: Chunks, dim: int) -> Kept:
    """Room for all vectors, with those of chunks that have not changed."""
    count = sum(rows for _, _, rows in chunks)
    # Not filled: memory that nobody touches is not taken.
    now = Kept(chunks, np.empty((count, dim), np.float16), np.zeros(count, np.bool_))
    if before is None or before.rows.shape[1] != dim:
        return now
    begins, at = {}, 0
    for chunk in before.chunks:
        begins[chunk] = at
        at += chunk[2]
    at = 0
    for chunk in chunks:
        if chunk in begins:
            there = np.flatnonzero(before.known[begins[chunk] : begins[chunk] + chunk[2]])
            now.rows[at + there] = before.rows[begins[chunk] + there]
            now.known[at + there] = True
        at += chunk[2]
    return now
