"""Posting lists as arrays: which revisions hold a term, and how often.

New revisions wait in ``posting_new``. When 1,024 row ids are complete their postings become
blocks, one for each term, and 16 such blocks become one of 16,384 row ids: a term is read
with a few look-ups, and a write touches one row. Everything here runs inside the caller's
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bethink.core.arrays import NDArray
from bethink.core.named_tuple import NamedTuple
from bethink.errors import StoreDamaged
from bethink.store.ranking import WINDOW_TERMS, WeightedQuery
from bethink.store.sql.connection import Database, as_table, select
from bethink.store.sql.damage import REPAIR_REMEDY
from bethink.store.sql.search.terms import BLOCK_ROWS, MAX_TERM_LENGTH
from bethink.store.sql.state_cache import CachePart, StateCache

if TYPE_CHECKING:
    IntArray = NDArray[np.int64]
    Counts = NDArray[np.uint8]

SMALL_BLOCK, LARGE_BLOCK = BLOCK_ROWS, 16 * BLOCK_ROWS  # row ids
LENGTH_TERM = 0  # the term whose count is the number of index words
MAX_COUNT = 255  # or more
_MANY = 1e9  # what that is taken for
_TERM_BITS = 32
_TERM_MASK = (1 << _TERM_BITS) - 1
_IN_BLOCK = np.dtype([("offset", "<u2"), ("count", "u1")])
_IN_NEW = np.dtype([("tid", "<u4"), ("count", "u1")])
_SELECT_PACKED = "SELECT value FROM meta WHERE name = 'packed'"
_SET_PACKED = "UPDATE meta SET value = ? WHERE name = 'packed'"
# Not REPLACE, which removes a row and adds it again, perhaps on other pages.
_ADD_BLOCK = """
    INSERT INTO posting_block (key, data) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET data = excluded.data
"""
_READ_BLOCKS = (
    "SELECT p.key, p.data FROM carray(?) AS w CROSS JOIN posting_block AS p ON p.key = w.value"
)
_BLOCKS_BETWEEN = "SELECT key, data FROM posting_block WHERE key >= ? AND key < ? ORDER BY key"
_DROP_BETWEEN = "DELETE FROM posting_block WHERE key >= ? AND key < ?"
_NEW_AFTER = "SELECT rid, data FROM posting_new WHERE rid > ? ORDER BY rid"
_NEW_BELOW = "SELECT rid, data FROM posting_new WHERE rid < ? ORDER BY rid"


class Postings(NamedTuple):
    """Entries in the order of their row ids: term, row id and count."""

    tids: IntArray
    rids: IntArray
    counts: Counts

    def of(self, chosen: NDArray[np.bool_] | IntArray) -> Postings:
        return Postings(self.tids[chosen], self.rids[chosen], self.counts[chosen])


class Packed(NamedTuple):
    """Below which row id there are blocks, and how often any block was changed."""

    end: int
    version: int

    def block_starts(self) -> list[int]:
        """Return the first row id of each block."""
        large = self.end // LARGE_BLOCK * LARGE_BLOCK
        return [*range(0, large, LARGE_BLOCK), *range(large, self.end, SMALL_BLOCK)]

    def start_of(self, rids: IntArray) -> IntArray:
        """Return the first row id of the block that each row id belongs to."""
        large = self.end // LARGE_BLOCK * LARGE_BLOCK
        starts: IntArray = np.where(
            rids < large, rids // LARGE_BLOCK * LARGE_BLOCK, rids // SMALL_BLOCK * SMALL_BLOCK
        )
        return starts


def read_packed(db: Database) -> Packed:
    """Return how far the postings are in blocks."""
    end, _, version = str(db.execute(_SELECT_PACKED).get).partition(":")
    return Packed(int(end), int(version))


def _block_key(start: int) -> int:
    return start // SMALL_BLOCK << _TERM_BITS


def pack_postings(db: Database, end: int) -> None:
    """Move revisions below a row id, a multiple of 1,024, into blocks."""
    packed = read_packed(db)
    rows = select(db, _NEW_BELOW, (end,))
    db.execute("DELETE FROM posting_new WHERE rid < ?", (end,))
    db.execute(_SET_PACKED, (f"{end}:{packed.version + 1}",))
    for start in range(packed.end // LARGE_BLOCK * LARGE_BLOCK, end, LARGE_BLOCK):
        if start + LARGE_BLOCK <= end:
            _merge(db, start)
    _add_to_blocks(db, Packed(end, packed.version + 1), _decode_new(rows))


def _merge(db: Database, start: int) -> None:
    """Make one block of each term out of the small ones of 16,384 row ids."""
    bounds = (_block_key(start), _block_key(start + LARGE_BLOCK))
    found = _decode_blocks(select(db, _BLOCKS_BETWEEN, bounds))
    db.execute(_DROP_BETWEEN, bounds)
    _write_blocks(db, start, found)


def _add_to_blocks(db: Database, packed: Packed, new: Postings) -> None:
    """Add postings to their blocks, made where there are none."""
    starts = packed.start_of(new.rids)
    for start in np.unique(starts).tolist():
        added = new.of(starts == start)
        keys = np.unique(added.tids) + _block_key(start)
        known = _decode_blocks(select(db, _READ_BLOCKS, (as_table(keys),)))
        if len(known.rids):
            # A row id that was used before, or blocks that have just become one.
            both = _concatenate(known, added)
            added = both.of(np.argsort(both.rids, kind="stable"))
        _write_blocks(db, start, added)


def _concatenate(first: Postings, then: Postings) -> Postings:
    return Postings(
        np.concatenate((first.tids, then.tids)),
        np.concatenate((first.rids, then.rids)),
        np.concatenate((first.counts, then.counts)),
    )


def _write_blocks(db: Database, start: int, postings: Postings) -> None:
    """Write the blocks of the terms that occur from one row id on."""
    db.executemany(_ADD_BLOCK, _encode_blocks(start, postings))


def _encode_blocks(start: int, postings: Postings) -> list[tuple[int, bytes]]:
    """Return each term's block of the row ids from one on, by its key."""
    if not len(postings.tids):
        return []
    order = np.argsort(postings.tids, kind="stable")
    tids = postings.tids[order]
    entries = np.empty(len(order), _IN_BLOCK)
    entries["offset"] = postings.rids[order] - start
    entries["count"] = postings.counts[order]
    stored = entries.tobytes()
    firsts = np.flatnonzero(np.diff(tids, prepend=-1))
    ends = np.append(firsts[1:], len(tids))
    size, keys = _IN_BLOCK.itemsize, (tids[firsts] + _block_key(start)).tolist()
    spans = zip(keys, firsts.tolist(), ends.tolist(), strict=True)
    return [(key, stored[first * size : end * size]) for key, first, end in spans]


def _decode_new(rows: Sequence[tuple[int, bytes]]) -> Postings:
    entries = _from_stored([data for _, data in rows], _IN_NEW)
    sizes = [len(data) // _IN_NEW.itemsize for _, data in rows]
    rids = np.repeat(np.array([rid for rid, _ in rows], np.int64), sizes)
    return Postings(entries["tid"].astype(np.int64), rids, entries["count"])


def _decode_blocks(rows: Sequence[tuple[int, bytes]]) -> Postings:
    entries = _from_stored([data for _, data in rows], _IN_BLOCK)
    keys = np.array([key for key, _ in rows], np.int64)
    sizes = np.array([len(data) for _, data in rows], np.int64) // _IN_BLOCK.itemsize
    rids = np.repeat((keys >> _TERM_BITS) * SMALL_BLOCK, sizes)
    rids += entries["offset"]
    return Postings(np.repeat(keys & _TERM_MASK, sizes), rids, entries["count"])


def _from_stored(stored: Sequence[bytes], dtype: np.dtype[np.void]) -> NDArray[np.void]:
    if any(len(one) % dtype.itemsize for one in stored):
        raise StoreDamaged("a posting list is damaged", remedy=REPAIR_REMEDY)
    return np.frombuffer(b"".join(stored), dtype)


def remove_postings(db: Database, terms: Mapping[int, Iterable[int]]) -> None:
    """Remove revisions (by row id), given the tids of their terms."""
    if not terms:
        return
    rids = np.fromiter(sorted(terms), np.int64, len(terms))
    db.executemany("DELETE FROM posting_new WHERE rid = ?", ((rid,) for rid in rids.tolist()))
    packed = read_packed(db)
    rids = rids[rids < packed.end]
    starts = packed.start_of(rids)
    for start in np.unique(starts).tolist():
        gone = rids[starts == start]
        tids = sorted({LENGTH_TERM, *(tid for rid in gone.tolist() for tid in terms[rid])})
        keys = np.array(tids, np.int64) + _block_key(start)
        known = _decode_blocks(select(db, _READ_BLOCKS, (as_table(keys),)))
        left = known.of(~np.isin(known.rids, gone))
        emptied = np.setdiff1d(known.tids, left.tids) + _block_key(start)
        db.executemany("DELETE FROM posting_block WHERE key = ?", emptied[:, None].tolist())
        _write_blocks(db, start, left)
    db.execute(_SET_PACKED, (f"{packed.end}:{packed.version + 1}",))


def rebuild_postings(db: Database, rows: Iterable[tuple[int, bytes]]) -> None:
    """Make all postings anew from revisions in the order of their row ids.

    They come as ``posting_new`` has them.
    """
    version = read_packed(db).version + 1
    db.execute("DELETE FROM posting_block")
    db.execute("DELETE FROM posting_new")
    last = int(db.execute("SELECT coalesce(max(rid), 0) FROM item").get)
    packed = Packed((last + 1) // SMALL_BLOCK * SMALL_BLOCK, version)
    db.execute(_SET_PACKED, (f"{packed.end}:{version}",))
    for start, group in _by_block(rows, packed):
        if start < packed.end:
            _write_blocks(db, start, _decode_new(group))
        else:
            db.executemany("INSERT INTO posting_new (rid, data) VALUES (?, ?)", group)


def count_wrong_postings(db: Database, rows: Iterable[tuple[int, bytes]]) -> int:
    """Count the posting lists that differ from those of the revisions, see `rebuild_postings`.

    What waits in ``posting_new`` may belong below the end of the blocks.
    """
    packed = read_packed(db)
    new: dict[int, bytes] = dict(select(db, "SELECT rid, data FROM posting_new"))
    wrong, starts = 0, packed.block_starts()
    ends = dict(zip(starts, [*starts, packed.end][1:], strict=True))
    for start, group in _by_block(rows, packed):
        packed_rows = [row for row in group if row[0] not in new]
        wrong += sum(new.pop(rid) != data for rid, data in group if rid in new)
        if start in ends:
            bounds = (_block_key(start), _block_key(ends.pop(start)))
            expected = {*_encode_blocks(start, _decode_new(packed_rows))}
            found = expected.symmetric_difference(select(db, _BLOCKS_BETWEEN, bounds))
            wrong += len({key for key, _ in found})
        else:
            wrong += len(packed_rows)
    unknown = [(_block_key(start), _block_key(end)) for start, end in ends.items()]
    for bounds in (*unknown, (_block_key(packed.end), 2**63 - 1)):
        wrong += len(select(db, _BLOCKS_BETWEEN, bounds))
    return wrong + len(new)


def _by_block(
    rows: Iterable[tuple[int, bytes]], packed: Packed
) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
    """Yield revisions by the block they belong to; the last ones belong to none."""
    large = packed.end // LARGE_BLOCK * LARGE_BLOCK
    group: list[tuple[int, bytes]] = []
    at = -1
    for row in rows:
        size = LARGE_BLOCK if row[0] < large else SMALL_BLOCK
        start = row[0] // size * size
        if start != at:
            if group:
                yield at, group
            at, group = start, []
        group.append(row)
    if group:
        yield at, group


class TermPostings(NamedTuple):
    """Where one term occurs, as ascending positions in a part, and how often."""

    positions: IntArray
    counts: Counts

    def of(self, chosen: NDArray[np.bool_]) -> TermPostings:
        return TermPostings(self.positions[chosen], self.counts[chosen])


class Part(NamedTuple):
    """Revisions that are ranked together: the length of each position, and its row id.

    Without ``rids`` the positions are the row ids themselves.
    """

    lengths: Counts
    rids: IntArray | None = None

    def rows(self, positions: IntArray) -> IntArray:
        """Return the row ids of positions."""
        return positions if self.rids is None else self.rids[positions]


class _NewPart(NamedTuple):
    """The revisions that are in no block, with their postings in the order of the terms."""

    packed: Packed
    last: int
    stored: Postings
    part: Part
    tids: IntArray
    postings: TermPostings


_NOTHING = np.empty(0, np.int64)


class PostingLists:
    """Reads posting lists; the lengths and the newest revisions are cached between searches."""

    def __init__(self, cache: StateCache | None = None) -> None:
        self._cache = cache or StateCache()

    def read(self, db: Database, tids: Sequence[int]) -> Iterator[tuple[Part, list[TermPostings]]]:
        """Yield each part with the postings of the terms, in their order."""
        order = np.array(sorted(set(tids)), np.int64)  # np.unique would load numpy.ma
        places = np.searchsorted(order, tids).tolist()
        packed = read_packed(db)
        if packed.end:
            found = _read_terms(db, packed, order)
            lists = _split(order, found.tids, TermPostings(found.rids, found.counts))
            part = self._cache.get(db, _BLOCKS, lambda: _read_lengths(db, packed), state=packed)
            yield part, [lists[place] for place in places]
        new = self._new_part(db, packed)
        if len(new.part.lengths):
            lists = _split(order, new.tids, new.postings)
            yield new.part, [lists[place] for place in places]

    def _new_part(self, db: Database, packed: Packed) -> _NewPart:
        """Return what is in no block; of what is cached only later rows are read."""
        last = int(db.execute("SELECT coalesce(max(rid), 0) FROM posting_new").get)
        before = self._cache.latest(db, _NEW)
        return self._cache.get(
            db, _NEW, lambda: _read_new(db, packed, last, before), state=(packed, last)
        )


_BLOCKS, _NEW = CachePart[Part](), CachePart[_NewPart]()


def _read_lengths(db: Database, packed: Packed) -> Part:
    found = _read_terms(db, packed, np.array([LENGTH_TERM], np.int64))
    lengths = np.zeros(packed.end, np.uint8)
    lengths[found.rids] = found.counts
    return Part(lengths)


def _read_new(db: Database, packed: Packed, last: int, before: _NewPart | None) -> _NewPart:
    """Read what is in no block, from what was there before where that is a part of it.

    Rows leave only with a new version of the blocks, see `remove_postings`.
    """
    if before is not None and before.packed == packed and before.last < last:
        later = _decode_new(select(db, _NEW_AFTER, (before.last,)))
        return _sort_new(packed, last, _concatenate(before.stored, later))
    return _sort_new(packed, last, _decode_new(select(db, _NEW_AFTER, (-1,))))


def _sort_new(packed: Packed, last: int, stored: Postings) -> _NewPart:
    is_length = stored.tids == LENGTH_TERM
    rids, lengths = stored.rids[is_length], stored.counts[is_length]
    order = np.argsort(stored.tids, kind="stable")
    positions = np.searchsorted(rids, stored.rids)[order]
    postings = TermPostings(positions, stored.counts[order])
    return _NewPart(packed, last, stored, Part(lengths, rids), stored.tids[order], postings)


def _read_terms(db: Database, packed: Packed, tids: IntArray) -> Postings:
    """Read the postings of terms from the blocks, term by term."""
    starts = np.array([_block_key(start) for start in packed.block_starts()], np.int64)
    keys = np.ascontiguousarray((tids[:, None] + starts[None, :]).ravel())
    return _decode_blocks(select(db, _READ_BLOCKS, (as_table(keys),)) if len(keys) else [])


def rows_by_term(db: Database, tids: Sequence[int]) -> dict[int, IntArray]:
    """Return the row ids that hold each term, in order."""
    packed = read_packed(db)
    blocks = _read_terms(db, packed, np.array(tids, np.int64))
    found = _concatenate(blocks, _decode_new(select(db, _NEW_AFTER, (-1,))))
    return {tid: found.rids[found.tids == tid] for tid in tids}


def count_rows(
    db: Database, tids: Mapping[str, int], last: int, left_out: Sequence[int]
) -> dict[str, int]:
    """Count the rows up to ``last`` that hold each term, without those that are left out."""
    rows = rows_by_term(db, list(tids.values()))
    counted = ((term, rows[tid][rows[tid] <= last]) for term, tid in tids.items())
    return {term: len(found) - int(np.isin(found, left_out).sum()) for term, found in counted}


def _split(tids: IntArray, stored: IntArray, postings: TermPostings) -> list[TermPostings]:
    """Split postings in the order of their terms into those of each of the terms."""
    firsts = np.searchsorted(stored, tids, "left").tolist()
    ends = np.searchsorted(stored, tids, "right").tolist()
    return [
        TermPostings(postings.positions[first:end], postings.counts[first:end])
        for first, end in zip(firsts, ends, strict=True)
    ]


class Ranked(NamedTuple):
    """Revisions that hold a query's terms, in no order.

    No score exceeds its bound; where ``exact``, it is the bound. ``lists`` are the postings
    that they come from, by term.
    """

    part: Part
    positions: IntArray
    bounds: NDArray[np.float64]
    exact: NDArray[np.bool_]
    lists: Mapping[str, TermPostings]

    def counts(self, indexes: Sequence[int]) -> list[dict[str, float]]:
        """Return for each of these how often it holds each of the terms."""
        found: list[dict[str, float]] = [{} for _ in indexes]
        wanted = self.positions[np.array(indexes, np.int64)]
        for term, (positions, counts) in self.lists.items():
            at = np.searchsorted(positions, wanted)
            at[at == len(positions)] = 0
            there = np.flatnonzero(positions[at] == wanted) if len(positions) else _NOTHING
            for index, count in zip(there.tolist(), counts[at[there]].tolist(), strict=True):
                found[index][term] = float(count)
        return found

    def best_first(self, first: int) -> Iterator[IntArray]:
        """Yield more and more indexes, by bound and row id, from the best on."""
        remaining, take = np.arange(len(self.bounds)), first
        while len(remaining):
            bounds = self.bounds[remaining]
            chosen = remaining
            is_left = np.zeros(len(remaining), np.bool_)
            if len(remaining) > 2 * take:
                is_left = bounds < np.partition(bounds, len(bounds) - take)[len(bounds) - take]
                chosen, bounds = remaining[~is_left], bounds[~is_left]
            yield chosen[np.argsort(-bounds, kind="stable")]
            remaining, take = remaining[is_left], 4 * take


def rank(
    query: WeightedQuery,
    part: Part,
    lists: Mapping[str, TermPostings],
    searched: Sequence[str],
    among: IntArray | None,
) -> Ranked:
    """Bound the score of every revision that holds a searched term, by all the terms.

    In the order of operations of `WeightedQuery.score`, so that equal scores are equal.
    ``among`` are the row ids that count, in order, if not all do.
    """
    holds = np.zeros(len(part.lengths), np.bool_)
    for term in searched:
        holds[lists[term].positions] = True
    if among is not None:
        holds &= _are_among(part, among)
    positions = np.flatnonzero(holds)
    places = np.empty(len(holds), np.int32)
    places[positions] = np.arange(len(positions), dtype=np.int32)
    found = {}
    for term, postings in lists.items():
        if among is not None or term not in searched:
            postings = postings.of(holds[postings.positions])  # noqa: PLW2901 - those that count
        counts = np.where(postings.counts == MAX_COUNT, _MANY, postings.counts)
        found[term] = (places[postings.positions], counts)
    lengths = part.lengths[positions]
    bounds, is_name = _bound(query, found, _length_norms(query)[lengths])
    exact = (lengths <= WINDOW_TERMS) & ~is_name & (query.about_weight == 1.0)
    unindexed = [weight for term, weight in query.weights.items() if len(term) > MAX_TERM_LENGTH]
    if unindexed:
        bounds, exact = bounds + (query.k1 + 1.0) * sum(unindexed), np.zeros_like(exact)
    return Ranked(part, positions, bounds, exact, lists)


def _length_norms(query: WeightedQuery) -> NDArray[np.float64]:
    """Return what counts are set against by length; a long memory counts as one window."""
    lengths = np.minimum(np.arange(MAX_COUNT + 1.0), WINDOW_TERMS)
    relative = lengths / query.average_length if query.average_length else np.ones(len(lengths))
    norms: NDArray[np.float64] = query.k1 * (1.0 - query.b + query.b * relative)
    return norms


def _are_among(part: Part, rids: IntArray) -> NDArray[np.bool_]:
    if part.rids is not None:
        at = np.searchsorted(rids, part.rids)
        at[at == len(rids)] = 0
        return rids[at] == part.rids if len(rids) else np.zeros(len(at), np.bool_)
    among = np.zeros(len(part.lengths), np.bool_)
    among[rids[rids < len(among)]] = True
    return among


_Found = tuple["NDArray[np.int32]", "NDArray[np.float64]"]  # places and counts of a term


def _bound(
    query: WeightedQuery, found: Mapping[str, _Found], norms: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the highest score that each place may have, and where a name may be in full."""
    bounds, is_name = np.zeros(len(norms)), np.zeros(len(norms), np.bool_)
    bonus = np.zeros(len(norms))
    joined: dict[str, list[_Found]] = {}
    for unit in query.names:
        held = np.zeros(len(norms), np.int32)
        for term in set(unit.terms).intersection(found):
            held[found[term][0]] += 1
        full = (held == len(set(unit.terms))) & (len(unit.terms) > 1)
        if unit.joined in found:
            full[found[unit.joined][0]] = True
            for term in unit.terms:
                joined.setdefault(term, []).append(found[unit.joined])
        bonus += np.where(full, query.name_bonus(unit), 0.0)
        is_name |= full
    most = query.k1 + 1.0
    for term, weight in query.weights.items():
        if weight == 0.0 or not (term in found or term in joined):
            continue
        places, counts = _with_joined(found.get(term), joined.get(term, ()), len(norms))
        if query.about_weight > 1.0:
            counts *= query.about_weight
        bounds[places] += weight * counts * most / (counts + norms[places])
    return bounds + bonus, is_name


def _with_joined(own: _Found | None, joined: Sequence[_Found], size: int) -> _Found:
    """Return a term's counts, raised to those of names in one word that it is a part of."""
    if own is not None and not joined:
        return own
    raised = np.zeros(size)
    for places, counts in ((own,) if own is not None else ()) + tuple(joined):
        raised[places] = np.maximum(raised[places], counts)
    where = np.flatnonzero(raised).astype(np.int32)
    return where, raised[where]
