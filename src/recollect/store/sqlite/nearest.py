"""Finding the nearest vectors: a scan of sign bits, then the true cosines of the best."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np

from recollect.ports import Found, Match
from recollect.store.sqlite import bits
from recollect.store.sqlite.chunks import Chunk, Model, read_chunk
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.halves import HalvesCache
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.scope import Predicate
from recollect.store.sqlite.terms import as_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.ports import Vector
    from recollect.store.sqlite.bits import Bits, Ints

LEAST_RESCORED = 120
# Multiples of the square root of the number of vectors: rescored at first, and at most.
FIRST_RESCORED, MOST_RESCORED = 3, 16
TELLING, EARLY = 12, 0.4  # enough, when so many of the best were in so early a part
SIGNS_ENOUGH = 20_000  # vectors; of more, the signs choose whom the other planes judge
SIGNS_SHARE = 5  # one in so many is chosen


class Stored(NamedTuple):
    """All vectors of a model that can be found: row ids and sign bits, chunk after chunk.

    ``chunks`` says of each chunk its id, its version and how many of the rows are its.
    """

    chunks: tuple[tuple[int, int, int], ...]
    rids: Ints
    bits: Bits


class ChunkCache:
    """The chunks of a model, kept between searches; one is read again when its version
    has changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: Stored | None = None
        self.halves = HalvesCache()

    def read(self, db: apsw.Connection, model: Model) -> Stored:
        """All vectors of a model as this transaction sees them."""
        versions = select(
            db, "SELECT cid, version FROM chunk WHERE mid = ? ORDER BY number", (model.mid,)
        )
        with self._lock:
            kept = self._kept
        if kept is not None and [chunk[:2] for chunk in kept.chunks] == versions:
            return kept
        stored = _read_changed(db, model, versions, kept)
        # What a write has not committed may be undone, and its versions used again.
        if db.txn_state("main") != apsw.SQLITE_TXN_WRITE:
            with self._lock:
                self._kept = stored
        return stored


def _read_changed(
    db: apsw.Connection, model: Model, versions: Sequence[tuple[Any, ...]], kept: Stored | None
) -> Stored:
    known = {}
    at = 0
    for cid, version, count in kept.chunks if kept else ():
        known[cid, version] = slice(at, at + count)
        at += count
    chunks, rids, signs = [], [], []
    for cid, version in versions:
        place = known.get((cid, version))
        if kept is not None and place is not None:
            chunk = Chunk(version, kept.rids[place], kept.bits[place])
        else:
            chunk = read_chunk(db, cid, model)
        chunks.append((cid, chunk.version, len(chunk.rids)))
        rids.append(chunk.rids)
        signs.append(chunk.bits)
    if not chunks:
        return Stored((), np.empty(0, np.int64), np.empty((0, bits.width(model.dim)), np.uint8))
    return Stored(tuple(chunks), np.concatenate(rids), np.concatenate(signs))


class Ranking(NamedTuple):
    """Rows with their cosines, best first."""

    rids: Ints
    cosines: NDArray[np.float64]


class Best(NamedTuple):
    """The rows of the answer with their cosines, best first, and how they were found."""

    rows: list[tuple[int, float]]
    note: str


class Scan:
    """One question to the stored vectors: estimates by bits, then true cosines."""

    def __init__(self, stored: Stored, halves: HalvesCache, query: Vector, depth: int) -> None:
        self._stored = stored
        self._halves = halves
        self._query = query
        self._planes = bits.planes(query)
        self.rids = stored.rids
        self.signs = bits.hamming(self._planes[0], stored.bits) if len(self) else _NOTHING
        self.first = max(LEAST_RESCORED, 4 * depth, int(FIRST_RESCORED * len(self) ** 0.5))

    def __len__(self) -> int:
        return len(self.rids)

    def nearest(self, db: apsw.Connection, places: Ints | None = None) -> Ranking:
        """The nearest among these places, or all. Those that come first by their bits are
        rescored, and half as many again while one of the best came late among them."""
        places, estimates = self._estimate(places)
        most = max(self.first, int(MOST_RESCORED * len(self) ** 0.5))
        near = bits.nearest(estimates, most)
        places = places[near[np.argsort(estimates[near], kind="stable")]]
        rescored = np.empty(0)
        while True:
            until = min(len(places), max(self.first, len(rescored) * 3 // 2))
            halves = self._halves.read(
                db,
                self._stored.chunks,
                self.rids,
                places[len(rescored) : until],
                len(self._query),
            )
            rescored = np.concatenate([rescored, bits.cosines(self._query, halves)])
            order = np.argsort(-rescored, kind="stable")
            if until == len(places) or order[:TELLING].max() < EARLY * until:
                return Ranking(self.rids[places[order]], rescored[order])

    def _estimate(self, places: Ints | None) -> tuple[Ints, NDArray[np.uint32]]:
        """How far the signs at these places are from the query, all its planes weighed."""
        if places is None:
            few = len(self) <= SIGNS_ENOUGH
            places = bits.nearest(self.signs, len(self) if few else len(self) // SIGNS_SHARE)
        all_rows = self._stored.bits
        # np.take: six times as fast as indexing.
        rows = all_rows if len(places) == len(self) else np.take(all_rows, places, axis=0)
        estimates = self.signs[places] * np.uint32(2 ** (bits.PLANES - 1))
        if len(places):
            for place, plane in enumerate(reversed(self._planes[1:])):
                estimates += bits.hamming(plane, rows) * np.uint32(2**place)
        return places, estimates


_NOTHING = np.empty(0, dtype=np.uint16)


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
    ranking = scan.nearest(db)
    note = f"bits scan ({bits.KERNEL}), {len(ranking.rids):,} of {len(scan):,} rescored"
    if predicate.plain:
        # Nearly all rows are in scope, so the head of the ranking is enough to look at,
        # unless its end ties with what follows.
        head = Ranking(ranking.rids[: 2 * depth], ranking.cosines[: 2 * depth])
        rows = _best_in_scope(db, head, depth, predicate)
        if rows and len(rows) == depth and rows[-1][1] > head.cosines[-1]:
            return Best(rows, note)
    visible = in_scope(db, ranking.rids, predicate)
    if len(visible) < max(depth, scan.first // 2) and len(ranking.rids) < len(scan):
        inside = _in_scope_places(db, scan, len(visible) / len(ranking.rids), predicate)
        ranking = scan.nearest(db, inside)
        note = (
            f"bits scan ({bits.KERNEL}), {len(ranking.rids):,} in scope of {len(scan):,} rescored"
        )
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


def _in_scope_places(db: apsw.Connection, scan: Scan, share: float, predicate: Predicate) -> Ints:
    """Where the nearest that are in scope stand; ``share`` is how many of those looked at
    were. If looking at a small part of all cannot be enough, all are looked up."""
    likely = int(1.25 * scan.first / share) if share else len(scan)
    if likely <= len(scan) // 4:
        near = bits.nearest(scan.signs, likely)
        visible = list(in_scope(db, scan.rids[near], predicate))
        if len(visible) >= scan.first // 2:
            return near[np.isin(scan.rids[near], visible)]
    where = f"{predicate.among} AND {predicate.sql}"
    rows = db.execute(f"SELECT i.rid FROM item AS i WHERE {where}", predicate.values)
    scope = np.fromiter((rid for (rid,) in rows), dtype=np.int64)
    return np.flatnonzero(np.isin(scan.rids, scope))
