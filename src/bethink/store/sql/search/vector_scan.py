"""Nearest-neighbour search: scan sign bits, then rescore the best by exact cosine.

A memory with passages is as near as the nearest of its vectors. Chunks and float16 vectors
that searches read are cached in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from bethink.core.arrays import NDArray, Vector, np
from bethink.core.named_tuple import NamedTuple
from bethink.ports import Background
from bethink.store.sql.connection import (
    Database,
    Row,
    as_table,
    generation,
    is_on_server,
    read_ahead,
    select,
)
from bethink.store.sql.damage import select_readable
from bethink.store.sql.search import vector_index
from bethink.store.sql.search.lexical import rows_in_scope, scope_ahead
from bethink.store.sql.search.scope import Predicate
from bethink.store.sql.search.vector_index import StoredModel, read_chunk, read_vectors
from bethink.store.sql.state_cache import CachePart, StateCache, is_writing

if TYPE_CHECKING:
    from bethink.store.sql.search.lexical import SearchContext
    from bethink.store.sql.search.vector_index import BitColumns, Float16Matrix, IntArray

MAX_CACHED_VECTORS = 131_072  # vectors, 67 MB of 256 dimensions
_SPARE_VECTORS = 4_096

ChunkVersions = tuple[tuple[int, int, int], ...]  # of each its id, version and number of rows


def smallest_distances(distances: NDArray[np.unsignedinteger[Any]], count: int) -> IntArray:
    """Return positions of the ``count`` smallest distances, and of all ties with the last."""
    if len(distances) <= count:
        return np.arange(len(distances))
    # The smallest limit that as many are within: near that of a sample.
    sample = distances[:: max(1, len(distances) // 4_096)]
    place = min(count * len(sample) // len(distances), len(sample) - 1)
    limit, step = int(np.partition(sample, place)[place]), 1
    while np.count_nonzero(distances <= limit) < count:
        limit, step = limit + step, 2 * step
    while step:
        if limit >= step and np.count_nonzero(distances <= limit - step) >= count:
            limit, step = limit - step, 2 * step
        else:
            step //= 2
    return np.flatnonzero(distances <= limit)


class MeasuredVectors(NamedTuple):
    """Vectors as they are compared, and the length of each."""

    rows: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @classmethod
    def of(cls, rows: Float16Matrix) -> MeasuredVectors:
        wide = vector_index.float16_to_float32(rows)
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        lengths[lengths == 0.0] = 1.0
        return cls(wide, lengths)

    def cosines(self, query: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the cosine of the query with each; equal rows get exactly equal ones."""
        # Not a matrix product, whose sums depend on the position of a row.
        dots = np.einsum("ij,j->i", self.rows, query)
        whole = self.lengths * np.sqrt(np.einsum("i,i->", query, query))
        return np.asarray(dots / whole, np.float64)


class Float16Arena:
    """An append-only array of vectors; none is ever moved or changed.

    A reader that knows a vector's offset may read it at any time.
    """

    def __init__(self, capacity: int, dim: int) -> None:
        # Not initialised: untouched memory is not allocated.
        self.rows: Float16Matrix = np.empty((capacity, dim), np.float16)
        self.used = 0


class CachedChunks(NamedTuple):
    """The cache of one state of the chunks: each vector's offset in the arena, -1 if not there."""

    chunks: ChunkVersions
    offsets: NDArray[np.int32]
    arena: Float16Arena

    def has_room(self, count: int) -> bool:
        return self.arena.used + count <= len(self.arena.rows)

    def add(self, positions: IntArray, vectors: Float16Matrix) -> None:
        """Append the vectors of these positions to the arena."""
        start, end = self.arena.used, self.arena.used + len(positions)
        self.arena.rows[start:end] = vectors
        self.offsets[positions] = np.arange(start, end)
        self.arena.used = end


class Float16Cache:
    """Cache of vectors by their position among all of a model's; changed ones are reread.

    Its arena has room for twice the vectors of the store, up to a limit. When it is full, what
    is still of use moves to a new one.
    """

    def __init__(self, max_vectors: int = MAX_CACHED_VECTORS) -> None:
        self._max_vectors = max_vectors
        self._lock = threading.Lock()
        self._cached: CachedChunks | None = None

    def read(
        self, db: Database, chunks: ChunkVersions, keys: IntArray, positions: IntArray, dim: int
    ) -> Float16Matrix:
        """Return the vectors at these places, in their order."""
        # Uncommitted versions may be rolled back and used again.
        if is_writing(db):
            return read_vectors(db, keys[positions], dim)
        cached = self._entry_for(chunks, dim)
        offsets = cached.offsets[positions]
        missing = np.flatnonzero(offsets < 0)
        found: Float16Matrix = np.take(cached.arena.rows, offsets, axis=0, mode="clip")
        if len(missing):
            places = positions[missing]
            found[missing] = read_vectors(db, keys[places], dim)
            self._store(cached, places, found[missing])
        return found

    def read_ahead(
        self, db: Database, chunks: ChunkVersions, keys: IntArray, positions: IntArray, dim: int
    ) -> None:
        """Tell which vectors will be read, as far as they are not known."""
        missing = positions[self._entry_for(chunks, dim).offsets[positions] < 0]
        if len(missing):
            read_ahead(db, (vector_index.SELECT_VECTORS, (as_table(keys[missing]),)))

    def _entry_for(self, chunks: ChunkVersions, dim: int) -> CachedChunks:
        """Return the cache entry of this state, with all that earlier entries know of it."""
        with self._lock:
            cached = self._cached
            if cached is None or cached.arena.rows.shape[1] != dim:
                cached = self._cached = self._empty(chunks, dim)
            elif cached.chunks != chunks:
                cached = self._cached = _copy_unchanged(cached, chunks)
            return cached

    def _empty(self, chunks: ChunkVersions, dim: int) -> CachedChunks:
        offsets = _no_offsets(chunks)
        capacity = min(self._max_vectors, 2 * len(offsets) + _SPARE_VECTORS)
        return CachedChunks(chunks, offsets, Float16Arena(capacity, dim))

    def _store(self, cached: CachedChunks, positions: IntArray, vectors: Float16Matrix) -> None:
        with self._lock:
            if not cached.has_room(len(positions)):
                if self._cached is not cached:
                    return
                fresh = self._cached = self._empty(cached.chunks, vectors.shape[1])
                known = np.flatnonzero(cached.offsets >= 0)
                if fresh.has_room(len(known) + len(positions)):
                    fresh.add(known, cached.arena.rows[cached.offsets[known]])
                cached = fresh
            if cached.has_room(len(positions)):
                cached.add(positions, vectors)


def _no_offsets(chunks: ChunkVersions) -> NDArray[np.int32]:
    return np.full(sum(rows for _, _, rows in chunks), -1, np.int32)


def _copy_unchanged(cached: CachedChunks, chunks: ChunkVersions) -> CachedChunks:
    """Return the cache of another state, with the vectors in chunks that have not changed."""
    starts, at = {}, 0
    for chunk in cached.chunks:
        starts[chunk] = at
        at += chunk[2]
    offsets, at = _no_offsets(chunks), 0
    for chunk in chunks:
        if chunk in starts:
            span = slice(starts[chunk], starts[chunk] + chunk[2])
            offsets[at : at + chunk[2]] = cached.offsets[span]
        at += chunk[2]
    return CachedChunks(chunks, offsets, cached.arena)


MIN_RESCORED = 120
# Multiples of the square root of the number of vectors: rescored at first, and at most.
FIRST_RESCORED_FACTOR, MAX_RESCORED_FACTOR = 1.5, 16
STABLE_TOP, EARLY_SHARE = 12, 0.4  # stop when the best ones were all found this early
MAX_FULL_SCAN = 20_000  # vectors; in larger sets the signs preselect
# Of so many one is preselected, or so many times as many as are rescored at most.
SIGN_FILTER_RATIO, SIGN_FILTER_FACTOR = 5, 4
# Factor of the first fetch: enough if a quarter is in scope.
OVERFETCH, OVERFETCH_DEFAULT_SCOPE = 4, 2
MAX_AHEAD = 100  # of the nearest, whose memories are read with the look at their scope
MIN_IN_SCOPE = 0.7  # of those found by an index; with fewer the others are left out first
BACKGROUND_SAMPLE = 256  # vectors, evenly spaced


class StoredVectors(NamedTuple):
    """All vectors of a model that can be found: keys and sign bits, chunk after chunk.

    Each has a column of ``bits`` and the row id of its memory in ``rids``. ``chunks`` holds
    for each chunk its id, its version and its number of rows.
    """

    chunks: tuple[tuple[int, int, int], ...]
    keys: IntArray
    rids: IntArray
    bits: BitColumns

    def without(self, hidden: IntArray, state: int) -> StoredVectors:
        """Return the vectors of other rows than these, in a state of the store."""
        visible = np.flatnonzero(~np.isin(self.rids, hidden))
        # One chunk of its own, since positions count from the first visible one.
        chunk = (-1, state, len(visible))
        keys = self.keys[visible]
        rids = keys if self.rids is self.keys else self.rids[visible]
        return StoredVectors((chunk,), keys, rids, np.ascontiguousarray(self.bits[:, visible]))


class ChunkCache:
    """The chunks of a model, with the last scan and sample of them, kept between searches."""

    def __init__(self, cache: StateCache | None = None) -> None:
        self._cache = cache or StateCache()
        self._halves = Float16Cache()

    def read(self, db: Database, model: StoredModel) -> StoredVectors:
        """Return all vectors of a model as this transaction sees them."""
        versions = tuple(select(db, SELECT_VERSIONS, (model.mid,)))
        before = self._cache.latest(db, _STORED)
        read = partial(_read_changed, db, model, versions, before)
        return self._cache.get(db, _STORED, read, state=(model.mid, versions))

    def scan(self, db: Database, stored: StoredVectors, query: Vector) -> VectorScan:
        """Return the scan for a query; the last one is cached for other retrievers."""
        make = partial(VectorScan, stored, self._halves, query)
        return self._cache.get(db, _SCAN, make, key=query.tobytes(), state=stored.chunks)

    def read_ahead(self, db: Database, scan: VectorScan, predicate: Predicate) -> None:
        """Tell what the sample of a scan will read, as far as it is not known."""
        if not is_on_server(db):
            return
        sample = self._cache.latest(db, _SAMPLE)
        if sample is not None and sample.chunks == scan.stored.chunks:
            sample.read_ahead(db, predicate)
            return
        places = _sampled_places(scan)
        scan.halves_ahead(db, places)
        rids = np.array(sorted(set(scan.rids[places].tolist())), np.int64)
        if len(rids):
            read_ahead(db, (_WITH_VALIDITY, (as_table(rids),)))
            scope_ahead(db, rids, predicate)

    def sample(self, db: Database, scan: VectorScan) -> VectorSample:
        """Return the sample of what a scan searches; the last one is cached."""
        make = partial(VectorSample, db, scan, self._cache)
        return self._cache.get(db, _SAMPLE, make, state=scan.stored.chunks)


def _read_changed(
    db: Database, model: StoredModel, versions: Sequence[Row], cached: StoredVectors | None
) -> StoredVectors:
    known = {}
    at = 0
    for cid, version, count in cached.chunks if cached else ():
        known[cid, version] = slice(at, at + count)
        at += count
    chunks, keys, signs = [], [], []
    for cid, version in versions:
        span = known.get((cid, version))
        if cached is not None and span is not None:
            read, found, bits = version, cached.keys[span], cached.bits[:, span]
        else:
            read, found, bits = read_chunk(db, cid, model)
        chunks.append((cid, read, len(found)))
        keys.append(found)
        signs.append(bits)
    if not chunks:
        empty = np.empty((0, vector_index.packed_width(model.dim)), np.uint8)
        none = np.empty(0, np.int64)
        return StoredVectors((), none, none, vector_index.to_bit_columns(empty))
    every = np.concatenate(keys)
    has_passages = bool(len(every)) and int(every.max()) > vector_index.ROW_MASK
    rids = every & vector_index.ROW_MASK if has_passages else every
    return StoredVectors(tuple(chunks), every, rids, np.concatenate(signs, axis=1))


class Ranking(NamedTuple):
    """Rows with their best cosines, best first, and how many vectors were rescored."""

    rids: IntArray
    cosines: NDArray[np.float64]
    rescored: int

    def first(self, count: int) -> Ranking:
        return Ranking(self.rids[:count], self.cosines[:count], self.rescored)


# The rows found with their cosines, best first, and a note on how.
Found = tuple[Ranking, str]


class DistanceEstimates(NamedTuple):
    """Positions, and each one's estimated distance from the query by its bits."""

    places: IntArray
    estimates: NDArray[np.unsignedinteger[Any]]

    def nearest(self, count: int) -> IntArray:
        """Return the ``count`` nearest in order, and all that tie with the last."""
        near = smallest_distances(self.estimates, count)
        return self.places[near[np.argsort(self.estimates[near], kind="stable")]]


class VectorScan:
    """One query over one state of the stored vectors: estimates by bits, exact cosines."""

    def __init__(self, stored: StoredVectors, halves: Float16Cache, query: Vector) -> None:
        self.stored = stored
        self.query = query
        self.rids = stored.rids
        self.has_passages = stored.rids is not stored.keys
        self._halves = halves
        self._planes = vector_index.query_bit_planes(query)
        self._signs = vector_index.hamming_distances(self._planes[0], stored.bits)
        self._last: tuple[int, Ranking] | None = None
        # Smaller numbers are sorted faster.
        self._number = np.uint16 if len(query) << vector_index.BIT_PLANES < 2**16 else np.uint32

    def __len__(self) -> int:
        return len(self.rids)

    @cached_property
    def per_row(self) -> float:
        """How many vectors a row has on average."""
        rows = int(np.count_nonzero(self.stored.keys <= vector_index.ROW_MASK))
        return len(self) / max(1, rows)

    @cached_property
    def estimates(self) -> DistanceEstimates:
        """All positions with their estimates; of many vectors those that the signs select."""
        count = len(self)
        if count > MAX_FULL_SCAN:
            most = int(SIGN_FILTER_FACTOR * MAX_RESCORED_FACTOR * count**0.5)
            count = max(MAX_FULL_SCAN, min(count // SIGN_FILTER_RATIO, most))
        return self.estimate_distances(smallest_distances(self._signs, count))

    def estimate_distances(self, positions: IntArray) -> DistanceEstimates:
        """Estimate the distance of these positions from the query, by all its bit planes."""
        signs = self.stored.bits
        if len(positions) < len(self):
            # Six times as fast as indexing; without a check of positions that are there.
            signs = np.take(signs, positions, axis=1, mode="clip")
        weight = 2 ** (vector_index.BIT_PLANES - 1)
        estimates = np.multiply(self._signs[positions], weight, dtype=self._number)
        for plane in self._planes[1:]:
            weight //= 2
            estimates += np.multiply(
                vector_index.hamming_distances(plane, signs), weight, dtype=self._number
            )
        return DistanceEstimates(positions, estimates)

    def positions_of(self, rids: IntArray) -> IntArray:
        """Return the positions of all vectors of some rows."""
        if not len(rids) or not len(self):
            return np.empty(0, np.int64)
        wanted = np.zeros(max(int(self.rids.max()), int(rids.max())) + 1, np.bool_)
        wanted[rids] = True
        return np.flatnonzero(wanted[self.rids])

    def nearest(self, db: Database, depth: int) -> Ranking:
        """Return the nearest of all; cached, because a query is run in several scopes."""
        first = initial_rescore_count(len(self), depth * self.per_row)
        if self._last is None or self._last[0] != first:
            most = max(first, int(MAX_RESCORED_FACTOR * len(self) ** 0.5))
            self._last = (first, self.rescore(db, self.estimates.nearest(most), first))
        return self._last[1]

    def rescore(self, db: Database, positions: IntArray, first: int) -> Ranking:
        """Return exact cosines of the ``first`` of these positions, in order of estimate.

        Half as many again are rescored while one of the best came late.
        """
        cosines = np.empty(0)
        while True:
            end = min(len(positions), max(first, len(cosines) * 3 // 2))
            more = positions[len(cosines) : end]
            cosines = np.concatenate([cosines, self.cosines(db, more)])
            order = np.argsort(-cosines, kind="stable")
            if end == len(positions) or order[:STABLE_TOP].max() < EARLY_SHARE * end:
                return self._best_of_rows(self.rids[positions[order]], cosines[order])

    def halves(self, db: Database, positions: IntArray) -> Float16Matrix:
        """Return the vectors at these positions."""
        stored = self.stored
        return self._halves.read(db, stored.chunks, stored.keys, positions, len(self.query))

    def halves_ahead(self, db: Database, positions: IntArray) -> None:
        """Tell which vectors will be read."""
        stored = self.stored
        self._halves.read_ahead(db, stored.chunks, stored.keys, positions, len(self.query))

    def cosines(self, db: Database, positions: IntArray) -> NDArray[np.float64]:
        """Return the exact cosines of these positions."""
        return MeasuredVectors.of(self.halves(db, positions)).cosines(self.query)

    def _best_of_rows(self, rids: IntArray, cosines: NDArray[np.float64]) -> Ranking:
        """Keep the best vector of each row."""
        if not self.has_passages:
            return Ranking(rids, cosines, len(rids))
        _, first = np.unique(rids, return_index=True)
        first.sort()
        return Ranking(rids[first], cosines[first], len(rids))


def initial_rescore_count(vectors: float, depth: float) -> int:
    """Return how many are rescored at first, of so many candidate vectors."""
    return max(MIN_RESCORED, int(4 * depth), int(FIRST_RESCORED_FACTOR * vectors**0.5))


_WITH_VALIDITY = """
    SELECT i.rid FROM carray(?) AS w CROSS JOIN item AS i ON i.rid = w.value
    WHERE i.valid_from IS NOT NULL OR i.valid_to IS NOT NULL
"""
# Which vectors of a sample are in a scope, and of how many rows they are.
_Visible = tuple["NDArray[np.bool_]", int]


def _sampled_places(scan: VectorScan) -> IntArray:
    return np.linspace(0, len(scan) - 1, min(len(scan), BACKGROUND_SAMPLE)).astype(np.int64)


class VectorSample:
    """Evenly spaced vectors of one state, to tell how similar a question usually is.

    Which of them are in a scope is cached until the next write, unless it may change with
    time.
    """

    def __init__(self, db: Database, scan: VectorScan, cache: StateCache) -> None:
        places = _sampled_places(scan)
        self._cache = cache
        self.chunks = scan.stored.chunks
        self._vectors = MeasuredVectors.of(scan.halves(db, places))
        self._rids: list[int] = scan.rids[places].tolist()
        self._sampled = np.array(sorted(set(self._rids)), np.int64)  # np.unique loads numpy.ma
        self._is_lasting = not self._rids or not select_readable(
            db, _WITH_VALIDITY, self._sampled, bind=as_table
        )

    def background(self, db: Database, scan: VectorScan, predicate: Predicate) -> Background | None:
        """Return the usual cosine of the query to the vectors in scope."""
        places, rows = self._find_visible(db, predicate)
        if rows < 2:
            return None
        # Sorted: the sum must not tell in which order vectors were stored, hidden ones among them.
        cosines = np.sort(self._vectors.cosines(scan.query)[places])
        memories = round(rows / len(self._sampled) * len(scan) / scan.per_row)
        return Background(float(cosines.mean()), float(cosines.std()), memories)

    def _find_visible(self, db: Database, predicate: Predicate) -> _Visible:
        lasting = predicate.lasting if self._is_lasting else None
        if lasting is None:
            return self._select_visible(db, predicate)
        select_visible = partial(self._select_visible, db, predicate)
        state = (generation(db), self.chunks)
        return self._cache.get(db, _VISIBLE, select_visible, key=lasting, state=state)

    def read_ahead(self, db: Database, predicate: Predicate) -> None:
        """Tell which rows will be looked for in a scope, as far as they are not known."""
        lasting = predicate.lasting if self._is_lasting else None
        state = (generation(db), self.chunks)
        if lasting is None or not self._cache.knows(db, _VISIBLE, lasting, state):
            scope_ahead(db, self._sampled, predicate)

    def _select_visible(self, db: Database, predicate: Predicate) -> _Visible:
        visible = rows_in_scope(db, self._sampled, predicate)
        places = (rid in visible for rid in self._rids)
        return np.fromiter(places, bool, len(self._rids)), len(visible)


_TIMES = (
    "SELECT i.rid, i.occurred_at, i.occurred_end"
    " FROM carray(?) AS w CROSS JOIN item AS i ON i.rid = w.value"
)


def times_of(db: Database, rids: IntArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return when rows began and ended, in ms; NaN where that is not known."""
    rows = select_readable(db, _TIMES, rids, bind=as_table) if len(rids) else []
    found = {rid: times for rid, *times in rows}
    # Rot makes anything of a number.
    times = [
        [at if isinstance(at, int) else np.nan for at in found.get(rid, (None, None))]
        for rid in rids.tolist()
    ]
    begins, ends = np.array(times, np.float64).reshape(-1, 2).T
    return begins, ends


def times_ahead(db: Database, rids: IntArray) -> None:
    """Tell that `times_of` will be asked for these rows."""
    if len(rids):
        read_ahead(db, (_TIMES, (as_table(rids),)))


SELECT_VERSIONS = "SELECT cid, version FROM chunk WHERE mid = ? ORDER BY number"
_STORED = CachePart[StoredVectors]()
_SCAN, _SAMPLE = CachePart[VectorScan](), CachePart[VectorSample]()
_VISIBLE: CachePart[_Visible] = CachePart(limit=16)


def find_nearest(scan: VectorScan, depth: int, ctx: SearchContext) -> Found:
    """Return the ``depth`` nearest in scope by cosine, ties by id."""
    predicate = ctx.predicate
    # The head of the overall ranking; if few of it are in scope, the scope's own ranking.
    if predicate.rows is not None and _are_rare(scan, len(predicate.rows), depth):
        return _find_among(scan, depth, predicate.rows, ctx)
    ranking, scope_note = scan.nearest(ctx.db, depth), ""
    head = ranking.first((OVERFETCH_DEFAULT_SCOPE if predicate.plain else OVERFETCH) * depth)
    nearest_ahead(scan, depth, ctx)
    in_scope = _filter_in_scope(head, ctx, depth)
    if len(in_scope.rids) < depth and ranking.rescored < len(scan):
        if predicate.rows is not None:
            return _find_among(scan, depth, predicate.rows, ctx)
        ranking, scope_note = _rank_in_scope(scan, ranking, depth, ctx), "in scope "
        head = ranking.first(OVERFETCH * depth)
        in_scope = _filter_in_scope(head, ctx)
    if not _is_settled(in_scope, head, ranking, depth):
        in_scope = _filter_in_scope(ranking, ctx)
    note = f"bits scan, {ranking.rescored:,} {scope_note}of {len(scan):,} rescored"
    return in_scope.first(depth), note


def nearest_ahead(scan: VectorScan, depth: int, ctx: SearchContext) -> None:
    """Tell which rows `find_nearest` will look at first."""
    db, rows = ctx.db, ctx.predicate.rows
    rare = rows is not None and _are_rare(scan, len(rows), depth)
    if not rare and is_on_server(db):
        ranking = scan.nearest(db, depth)
        head = _head_of(ranking, depth).rids
        scope_ahead(db, head, ctx.predicate)
        times_ahead(db, head)
        ctx.hydrate.ahead(db, ranking.first(min(depth, MAX_AHEAD)).rids.tolist())


def _head_of(ranking: Ranking, depth: int) -> Ranking:
    return ranking.first(depth + depth // 8 + 8)


def _are_rare(scan: VectorScan, rows: int, depth: int) -> bool:
    """Whether the overall ranking will hold too few of so many rows."""
    first = initial_rescore_count(len(scan), depth * scan.per_row)
    return first < len(scan) and first * rows * scan.per_row < 2 * depth * len(scan)


def _find_among(scan: VectorScan, depth: int, rows: IntArray, ctx: SearchContext) -> Found:
    """Rank rows that hold all of the scope; of these only, if many others are among them."""
    positions = scan.positions_of(rows)
    ranking = _rank_positions(ctx.db, scan, positions, depth)
    head = ranking.first(OVERFETCH * depth)
    ctx.hydrate.ahead(ctx.db, head.first(min(depth, MAX_AHEAD)).rids.tolist())
    in_scope = _filter_in_scope(head, ctx)
    if len(in_scope.rids) < MIN_IN_SCOPE * len(head.rids) and ranking.rescored < len(positions):
        visible = np.fromiter(rows_in_scope(ctx.db, rows, ctx.predicate), np.int64)
        ranking = _rank_positions(ctx.db, scan, scan.positions_of(visible), depth)
        head = ranking.first(OVERFETCH * depth)
        in_scope = _filter_in_scope(head, ctx)
    if not _is_settled(in_scope, head, ranking, depth):
        in_scope = _filter_in_scope(ranking, ctx)
    note = f"bits scan, {ranking.rescored:,} in scope of {len(scan):,} rescored"
    return in_scope.first(depth), note


def _is_settled(in_scope: Ranking, head: Ranking, ranking: Ranking, depth: int) -> bool:
    """Whether rows after the head of a ranking cannot be among the ``depth`` best."""
    if not depth or len(head.rids) == len(ranking.rids):
        return True
    best = in_scope.cosines
    return len(best) >= depth and bool(best[depth - 1] > head.cosines[-1])


def _filter_in_scope(ranking: Ranking, ctx: SearchContext, depth: int = 0) -> Ranking:
    """Return those in scope, best first, ties by id.

    With a ``depth`` only the first rows are looked at, where no others can be among the best.
    """
    if depth:
        head = _head_of(ranking, depth)
        in_scope = _filter_in_scope(head, ctx)
        if _is_settled(in_scope, head, ranking, depth):
            return in_scope
    rids = ranking.rids.tolist()
    rows = ctx.predicate.rows  # where they are known, no others are in scope
    known = ranking.rids if rows is None else ranking.rids[np.isin(ranking.rids, rows)]
    ids = rows_in_scope(ctx.db, known, ctx.predicate)
    places = np.flatnonzero(np.fromiter(map(ids.__contains__, rids), bool, len(rids)))
    cosines = ranking.cosines[places]
    if (cosines[1:] == cosines[:-1]).any():
        places = np.array(sorted(places, key=lambda one: (-ranking.cosines[one], ids[rids[one]])))
    return Ranking(ranking.rids[places], ranking.cosines[places], ranking.rescored)


def _rank_in_scope(scan: VectorScan, ranking: Ranking, depth: int, ctx: SearchContext) -> Ranking:
    """Rank the few rows in scope: further down the estimates, else all."""
    db, predicate = ctx.db, ctx.predicate
    share = len(rows_in_scope(db, ranking.rids, predicate)) / len(ranking.rids)
    first = initial_rescore_count(share * len(scan), depth * scan.per_row)
    likely = int(2 * first / share) if share else len(scan)
    if likely <= len(scan) // 4:
        positions = scan.estimates.nearest(likely)
        visible = rows_in_scope(db, scan.rids[positions], predicate)
        positions = positions[np.isin(scan.rids[positions], list(visible))]
        if len(positions) >= first // 2 and len(visible) >= depth:
            return scan.rescore(db, positions, len(positions))
    rows = db.execute(f"SELECT i.rid FROM item AS i WHERE {predicate.sql}", predicate.values)
    in_scope = np.fromiter((rid for (rid,) in rows), dtype=np.int64)
    return _rank_positions(db, scan, scan.positions_of(in_scope), depth)


def _rank_positions(db: Database, scan: VectorScan, positions: IntArray, depth: int) -> Ranking:
    """Rank the vectors at some positions."""
    first = initial_rescore_count(len(scan), depth * scan.per_row)
    most = max(first, int(MAX_RESCORED_FACTOR * len(positions) ** 0.5))
    found = scan.rescore(db, scan.estimate_distances(positions).nearest(most), first)
    if len(found.rids) < depth and found.rescored < len(positions):
        # A few memories have most of the nearest passages.
        return scan.rescore(db, positions, len(positions))
    return found
