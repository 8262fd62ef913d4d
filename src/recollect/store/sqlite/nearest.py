"""Finding the nearest vectors: a scan of sign bits, then the true cosines of the best."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from recollect.ports import Found, Match
from recollect.store.sqlite import bits
from recollect.store.sqlite.chunks import Chunk, Model, read_chunk, read_vectors
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.scope import Predicate
from recollect.store.sqlite.terms import as_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.ports import Vector
    from recollect.store.sqlite.bits import Distances, Ints

LEAST_RESCORED = 400  # recall@10 above 0.99 up to 100,000 vectors
RESCORED_SHARE = 250  # beyond, one in so many: 4,000 of a million


class ChunkCache:
    """Chunks kept between searches, read again when their version changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunks: dict[int, Chunk] = {}

    def read(self, db: apsw.Connection, model: Model) -> list[Chunk]:
        """All chunks of a model as this transaction sees them."""
        with self._lock:
            kept = self._chunks
        chunks = {}
        for cid, version in select(
            db, "SELECT cid, version FROM chunk WHERE mid = ? ORDER BY number", (model.mid,)
        ):
            chunk = kept.get(cid)
            if chunk is None or chunk.version != version:
                chunk = read_chunk(db, cid, model)
            chunks[cid] = chunk
        # What a write has not committed may be undone, and its versions used again.
        if db.txn_state("main") != apsw.SQLITE_TXN_WRITE:
            with self._lock:
                self._chunks = chunks
        return list(chunks.values())


class Ranking(NamedTuple):
    """Rows with their cosines, best first."""

    rids: Ints
    cosines: NDArray[np.float64]


class Best(NamedTuple):
    """The rows of the answer with their cosines, best first, and how they were found."""

    rows: list[tuple[int, float]]
    note: str


class Scan:
    """One search: all vectors of a model, and how far their signs are from the query's."""

    def __init__(self, model: Model, chunks: Sequence[Chunk], query: Vector) -> None:
        self._dim = model.dim
        self._query = query
        packed = np.packbits(query > 0)
        filled = [chunk for chunk in chunks if len(chunk.rids)]
        self.rids: Ints = np.concatenate([np.empty(0, np.int64), *(one.rids for one in filled)])
        self.distances: Distances = np.concatenate(
            [np.empty(0, np.uint16), *(bits.hamming(packed, one.bits) for one in filled)]
        )

    def nearest(self, db: apsw.Connection, places: Ints, count: int) -> Ranking:
        """The true cosines of the ``count`` nearest by bits among these places."""
        best = places[bits.nearest(self.distances[places], count)]
        rids, halves = read_vectors(db, self.rids[best], self._dim)
        cosines = bits.cosines(self._query, halves)
        order = np.argsort(-cosines, kind="stable")
        return Ranking(rids[order], cosines[order])


def search(
    db: apsw.Connection, scan: Scan, depth: int, predicate: Predicate, hydrate: Hydrate
) -> Found:
    """The ``depth`` nearest in scope by cosine, ties by id."""
    best = _find(db, scan, max(depth, 0), predicate)
    items = hydrate(db, [rid for rid, _ in best.rows])
    matches = (
        Match(items[rid], cosine, f"cosine {cosine:.2f}")
        for rid, cosine in best.rows
        if rid in items
    )
    return Found(tuple(matches), best.note, 1.0)


def _find(db: apsw.Connection, scan: Scan, depth: int, predicate: Predicate) -> Best:
    total = len(scan.rids)
    wanted = max(LEAST_RESCORED, 4 * depth, total // RESCORED_SHARE)
    ranking = scan.nearest(db, np.arange(total), wanted)
    note = f"bits scan ({bits.KERNEL}), {len(ranking.rids):,} of {total:,} rescored"
    if predicate.plain:
        # Nearly all rows are in scope, so the head of the ranking is enough to look at,
        # unless its end ties with what follows.
        head = Ranking(ranking.rids[: 2 * depth], ranking.cosines[: 2 * depth])
        rows = _best_in_scope(db, head, depth, predicate)
        if rows and len(rows) == depth and rows[-1][1] > head.cosines[-1]:
            return Best(rows, note)
    visible = in_scope(db, ranking.rids, predicate)
    if len(visible) < max(depth, wanted // 2) and len(ranking.rids) < total:
        inside = _in_scope_places(db, scan, wanted, len(visible) / len(ranking.rids), predicate)
        ranking = scan.nearest(db, inside, wanted)
        note = f"bits scan ({bits.KERNEL}), {len(ranking.rids):,} in scope of {total:,} rescored"
    return Best(_best_in_scope(db, ranking, depth, predicate), note)


def in_scope(db: apsw.Connection, rids: Ints, predicate: Predicate) -> dict[int, str]:
    """Those of the rows that the predicate lets through, with their ids."""
    if not len(rids):
        return {}
    rows = select(
        db,
        "SELECT i.rid, i.id FROM carray(?) AS w CROSS JOIN item AS i ON i.rid = w.value"
        f" WHERE {predicate.sql}",
        (as_table(np.ascontiguousarray(rids)), *predicate.values),
    )
    return dict(rows)


def _best_in_scope(
    db: apsw.Connection, ranking: Ranking, depth: int, predicate: Predicate
) -> list[tuple[int, float]]:
    visible = in_scope(db, ranking.rids, predicate)
    judged = sorted(
        (-cosine, visible[rid], rid)
        for rid, cosine in zip(ranking.rids.tolist(), ranking.cosines.tolist(), strict=True)
        if rid in visible
    )
    return [(rid, -negative) for negative, _, rid in judged[:depth]]


def _in_scope_places(
    db: apsw.Connection, scan: Scan, wanted: int, share: float, predicate: Predicate
) -> Ints:
    """Where the nearest by bits that are in scope stand; ``share`` is how many of the
    nearest were. If looking at a small part of all cannot be enough, all are looked up."""
    total = len(scan.rids)
    likely = int(1.25 * wanted / share) if share else total
    if likely <= total // 4:
        near = bits.nearest(scan.distances, likely)
        visible = list(in_scope(db, scan.rids[near], predicate))
        if len(visible) >= wanted // 2:
            return near[np.isin(scan.rids[near], visible)]
    rows = db.execute(f"SELECT i.rid FROM item AS i WHERE {predicate.sql}", predicate.values)
    scope = np.fromiter((rid for (rid,) in rows), dtype=np.int64)
    return np.flatnonzero(np.isin(scan.rids, scope))
