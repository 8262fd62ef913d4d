"""Stored vectors kept in memory, chunk by chunk, as searches come across them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from recollect.store.sqlite.chunks import read_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.store.sqlite.bits import Halves, Ints

# Some 130,000 vectors, 67 MB of 256 dimensions; a larger store reads them each time.
MOST_CHUNKS = 32

ChunkKey = tuple[int, int, int]  # id, version, rows


class Page(NamedTuple):
    """The vectors of one version of a chunk, as far as they have been read."""

    rows: Halves
    known: NDArray[np.bool_]


class HalvesCache:
    """Vectors by their place among all of a model's. A chunk that changed begins anew.

    Threads may fill a page at the same time: they write the same values, and a row is
    marked as known after it is there.
    """

    def __init__(self) -> None:
        self._pages: dict[ChunkKey, Page] = {}

    def read(
        self, db: apsw.Connection, chunks: tuple[ChunkKey, ...], rids: Ints, places: Ints, dim: int
    ) -> Halves:
        """The vectors at these places, in their order."""
        # What a write has not committed may be undone, and its versions used again.
        if len(chunks) > MOST_CHUNKS or db.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return read_vectors(db, rids[places], dim)
        pages = self._pages_of(chunks, dim)
        starts = np.concatenate([[0], np.cumsum([count for _, _, count in chunks])])
        owners = np.searchsorted(starts, places, side="right") - 1
        found = np.empty((len(places), dim), dtype=np.float16)
        # Not np.unique, which imports masked arrays at its first call.
        for owner in np.flatnonzero(np.bincount(owners)):
            at = np.flatnonzero(owners == owner)
            local = places[at] - starts[owner]
            page = pages[owner]
            missing = local[~page.known[local]]
            if len(missing):
                page.rows[missing] = read_vectors(db, rids[missing + starts[owner]], dim)
                page.known[missing] = True
            found[at] = np.take(page.rows, local, axis=0)
        return found

    def _pages_of(self, chunks: tuple[ChunkKey, ...], dim: int) -> list[Page]:
        kept = self._pages
        pages = {
            chunk: kept.get(chunk)
            or Page(np.empty((chunk[2], dim), np.float16), np.zeros(chunk[2], np.bool_))
            for chunk in chunks
        }
        self._pages = pages
        return [pages[chunk] for chunk in chunks]
