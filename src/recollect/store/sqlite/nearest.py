"""Finding the nearest vectors: a scan of sign bits, then the true cosines of the best."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np

from recollect.ports import Found, Match
from recollect.store.sqlite import bits
from recollect.store.sqlite.chunks import Chunk, Model, read_chunk
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.halves import HalvesCache
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.scope import Predicate, SqlValue
from recollect.store.sqlite.terms import as_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.ports import Vector
    from recollect.store.sqlite.bits import Columns, Ints

LEAST_RESCORED = 120
# Multiples of the square root of the number of vectors: rescored at first, and at most.
FIRST_RESCORED, MOST_RESCORED = 3, 16
TELLING, EARLY = 12, 0.4  # enough, when so many of the best were in so early a part
SIGNS_ENOUGH = 20_000  # vectors; of more, the signs choose whom the other planes judge
SIGNS_SHARE = 5  # one in so many is chosen
# Times as many as are wanted are looked at first: enough, when a quarter is in scope.
LOOKED_AT, LOOKED_AT_PLAIN = 4, 2
FEW = 2_000  # memories; so many are always looked up by an index that a scope has


class Stored(NamedTuple):
    """All vectors of a model that can be found: row ids and sign bits, chunk after chunk.

    Each has a column of ``bits``. ``chunks`` says of each chunk its id, its version and how
    many of the rows are its.
    """

    chunks: tuple[tuple[int, int, int], ...]
    rids: Ints
    bits: Columns


class ChunkCache:
    """The chunks of a model, kept between searches; one is read again when its version
    has changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: Stored | None = None
        self._scan: Scan | None = None
        self._halves = HalvesCache()

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

    def scan(self, stored: Stored, query: Vector) -> Scan:
        """A question to the vectors; the last one is kept, for several channels may ask it."""
        scan = self._scan
        if scan is None or scan.stored is not stored or not np.array_equal(scan.query, query):
            scan = self._scan = Scan(stored, self._halves, query)
        return scan


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
            chunk = Chunk(version, kept.rids[place], kept.bits[:, place])
        else:
            chunk = read_chunk(db, cid, model)
        chunks.append((cid, chunk.version, len(chunk.rids)))
        rids.append(chunk.rids)
        signs.append(chunk.bits)
    if not chunks:
        nothing = np.empty((0, bits.width(model.dim)), np.uint8)
        return Stored((), np.empty(0, np.int64), bits.columns(nothing))
    return Stored(tuple(chunks), np.concatenate(rids), np.concatenate(signs, axis=1))


class Ranking(NamedTuple):
    """Rows with their cosines, best first."""

    rids: Ints
    cosines: NDArray[np.float64]

    def first(self, count: int) -> Ranking:
        return Ranking(self.rids[:count], self.cosines[:count])


class Best(NamedTuple):
    """The rows of the answer with their cosines, best first, and how they were found."""

    rows: list[tuple[int, float]]
    note: str


class Near(NamedTuple):
    """Places, and how far each is from the question by its bits."""

    places: Ints
    estimates: NDArray[np.unsignedinteger[Any]]

    def first(self, count: int) -> Ints:
        """The ``count`` nearest in order, and all that tie with the last."""
        near = bits.nearest(self.estimates, count)
        return self.places[near[np.argsort(self.estimates[near], kind="stable")]]


class Scan:
    """One question to one state of the stored vectors: estimates by bits, true cosines."""

    def __init__(self, stored: Stored, halves: HalvesCache, query: Vector) -> None:
        self.stored = stored
        self.query = query
        self.rids = stored.rids
        self._halves = halves
        self._planes = bits.planes(query)
        self._signs = bits.hamming(self._planes[0], stored.bits)
        self._last: tuple[int, Ranking] | None = None
        # The fewer bytes an estimate has, the faster it is sorted.
        self._number = np.uint16 if len(query) << bits.PLANES < 2**16 else np.uint32

    def __len__(self) -> int:
        return len(self.rids)

    @cached_property
    def near(self) -> Near:
        """All places with their estimates; of many vectors those that the signs choose."""
        few = len(self) <= SIGNS_ENOUGH
        chosen = bits.nearest(self._signs, len(self) if few else len(self) // SIGNS_SHARE)
        return self.among(chosen)

    def among(self, places: Ints) -> Near:
        """These places and how far their signs are from the query, all its planes weighed."""
        all_signs = self.stored.bits
        # np.take: six times as fast as indexing.
        signs = all_signs if len(places) == len(self) else np.take(all_signs, places, axis=1)
        weight = 2 ** (bits.PLANES - 1)
        estimates = np.multiply(self._signs[places], weight, dtype=self._number)
        for plane in self._planes[1:]:
            weight //= 2
            estimates += np.multiply(bits.hamming(plane, signs), weight, dtype=self._number)
        return Near(places, estimates)

    def nearest(self, db: apsw.Connection, depth: int) -> Ranking:
        """The nearest of all. Kept: a question is asked of several scopes in turn."""
        first = rescored_first(len(self), depth)
        if self._last is None or self._last[0] != first:
            most = max(first, int(MOST_RESCORED * len(self) ** 0.5))
            self._last = (first, self.rescore(db, self.near.first(most), first))
        return self._last[1]

    def rescore(self, db: apsw.Connection, places: Ints, first: int) -> Ranking:
        """The true cosines of the ``first`` of these places, which are in the order of
        their estimates, and of half as many again while one of the best came late."""
        cosines = np.empty(0)
        while True:
            until = min(len(places), max(first, len(cosines) * 3 // 2))
            more = places[len(cosines) : until]
            halves = self._halves.read(db, self.stored.chunks, self.rids, more, len(self.query))
            cosines = np.concatenate([cosines, bits.cosines(self.query, halves)])
            order = np.argsort(-cosines, kind="stable")
            if until == len(places) or order[:TELLING].max() < EARLY * until:
                return Ranking(self.rids[places[order]], cosines[order])


def rescored_first(vectors: float, depth: int) -> int:
    """How many are rescored at first, of so many vectors that may be the answer."""
    return max(LEAST_RESCORED, 4 * depth, int(FIRST_RESCORED * vectors**0.5))


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
    """Looks at the head of the ranking of all. Where few of that are in scope, those in
    scope are ranked by themselves."""
    ranking, of = scan.nearest(db, depth), ""
    head = ranking.first((LOOKED_AT_PLAIN if predicate.plain else LOOKED_AT) * depth)
    judged = _judge(db, head, predicate)
    if len(judged) < depth and len(ranking.rids) < len(scan):
        ranking, of = _rank_inside(db, scan, ranking, depth, predicate), "in scope "
        head = ranking.first(LOOKED_AT * depth)
        judged = _judge(db, head, predicate)
    if len(head.rids) < len(ranking.rids) and not _settled(judged, head, depth):
        judged = _judge(db, ranking, predicate)
    return Best(
        [(rid, cosine) for cosine, _, rid in judged[:depth]],
        f"bits scan, {len(ranking.rids):,} {of}of {len(scan):,} rescored",
    )


def _settled(judged: Sequence[tuple[float, str, int]], head: Ranking, depth: int) -> bool:
    """Whether what follows the head of a ranking cannot be among the ``depth`` best."""
    return len(judged) >= depth and (not depth or judged[depth - 1][0] > head.cosines[-1])


def _judge(
    db: apsw.Connection, ranking: Ranking, predicate: Predicate
) -> list[tuple[float, str, int]]:
    """Cosine, id and row of those in scope, best first, ties by id."""
    visible = in_scope(db, ranking.rids, predicate)
    judged = [
        (cosine, visible[rid], rid)
        for rid, cosine in zip(ranking.rids.tolist(), ranking.cosines.tolist(), strict=True)
        if rid in visible
    ]
    return sorted(judged, key=lambda one: (-one[0], one[1]))


def _rank_inside(
    db: apsw.Connection, scan: Scan, ranking: Ranking, depth: int, predicate: Predicate
) -> Ranking:
    """Those in scope, which are few among all: by an index, else by looking further down
    the estimates, else by looking at every row."""
    inside = _by_index(db, scan, predicate)
    if inside is None:
        share = len(in_scope(db, ranking.rids, predicate)) / len(ranking.rids)
        first = rescored_first(share * len(scan), depth)
        likely = int(2 * first / share) if share else len(scan)
        if likely <= len(scan) // 4:
            places = scan.near.first(likely)
            visible = in_scope(db, scan.rids[places], predicate)
            if len(visible) >= first // 2:
                places = places[np.isin(scan.rids[places], list(visible))]
                return scan.rescore(db, places, len(places))
        inside = _places(db, scan, predicate.sql, predicate.values)
    first = rescored_first(len(scan), depth)
    most = max(first, int(MOST_RESCORED * len(inside) ** 0.5))
    return scan.rescore(db, scan.among(inside).first(most), first)


def _by_index(db: apsw.Connection, scan: Scan, predicate: Predicate) -> Ints | None:
    """Where those in scope stand, if an index says that they are few."""
    among = predicate.among
    if among is None:
        return None
    most = max(FEW, len(scan) // 10)
    rows = f"SELECT 1 FROM item AS i WHERE {among.sql} LIMIT {most + 1}"
    if db.execute(f"SELECT count(*) FROM ({rows})", among.values).get > most:
        return None
    where = f"{among.sql} AND {predicate.sql}"
    return _places(db, scan, where, (*among.values, *predicate.values))


def _places(db: apsw.Connection, scan: Scan, where: str, values: Sequence[SqlValue]) -> Ints:
    rows = db.execute(f"SELECT i.rid FROM item AS i WHERE {where}", values)
    scope = np.fromiter((rid for (rid,) in rows), dtype=np.int64)
    return np.flatnonzero(np.isin(scan.rids, scope))


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
