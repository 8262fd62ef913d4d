"""Stored vectors kept in memory as searches come across them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from recollect.store.sqlite.chunks import read_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.store.sqlite.bits import Halves, Ints

MOST_KEPT = 131_072  # vectors, 67 MB of 256 dimensions; the next one begins anew

Chunks = tuple[tuple[int, int, int], ...]  # of each its id, version and number of rows


class Shelf:
    """Vectors one after the other in the order they came; none is ever moved or changed,
    so that whoever knows where one stands may read it at any time."""

    def __init__(self, room: int, dim: int) -> None:
        # Not filled: memory that nobody touches is not taken.
        self.rows: Halves = np.empty((room, dim), np.float16)
        self.used = 0


class Kept(NamedTuple):
    """What is kept of one state of the chunks: for every place of a vector where on the
    shelf it stands, -1 where it has not been read."""

    chunks: Chunks
    stands: NDArray[np.int32]
    shelf: Shelf


class HalvesCache:
    """Vectors by their place among all of a model's; what changed is read again."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: Kept | None = None

    def read(
        self, db: apsw.Connection, chunks: Chunks, rids: Ints, places: Ints, dim: int
    ) -> Halves:
        """The vectors at these places, in their order."""
        # What a write has not committed may be undone, and its versions used again.
        if db.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return read_vectors(db, rids[places], dim)
        kept = self._of(chunks, dim)
        stands = kept.stands[places]
        missing = np.flatnonzero(stands < 0)
        found: Halves = np.take(kept.shelf.rows, stands, axis=0, mode="clip")
        if len(missing):
            found[missing] = read_vectors(db, rids[places[missing]], dim)
            self._keep(kept, places[missing], found[missing])
        return found

    def _of(self, chunks: Chunks, dim: int) -> Kept:
        """What is kept of this state, with all that earlier ones know of it."""
        with self._lock:
            kept = self._kept
            if kept is None or kept.chunks != chunks:
                stands = np.full(sum(rows for _, _, rows in chunks), -1, np.int32)
                if kept is None or kept.shelf.rows.shape[1] != dim:
                    shelf = Shelf(min(self._most, 2 * len(stands)), dim)
                else:
                    shelf = kept.shelf
                    _carry_over(kept, chunks, stands)
                kept = self._kept = Kept(chunks, stands, shelf)
            return kept

    def _keep(self, kept: Kept, places: Ints, vectors: Halves) -> None:
        with self._lock:
            shelf = kept.shelf
            end = shelf.used + len(places)
            if end > len(shelf.rows):
                if self._kept is not None and self._kept.shelf is shelf:
                    self._kept = None
                return
            shelf.rows[shelf.used : end] = vectors
            kept.stands[places] = np.arange(shelf.used, end)
            shelf.used = end


def _carry_over(before: Kept, chunks: Chunks, stands: NDArray[np.int32]) -> None:
    """Enters where the vectors of chunks stand that have not changed."""
    begins, at = {}, 0
    for chunk in before.chunks:
        begins[chunk] = at
        at += chunk[2]
    at = 0
    for chunk in chunks:
        if chunk in begins:
            there = slice(begins[chunk], begins[chunk] + chunk[2])
            stands[at : at + chunk[2]] = before.stands[there]
        at += chunk[2]
