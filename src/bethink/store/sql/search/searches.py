"""The searches of a space: by words, pieces, meaning, sets of words, time and entities."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from bethink.core.arrays import Vector
from bethink.core.named_tuple import NamedTuple
from bethink.model import Filters, Item
from bethink.ports import (
    Choose,
    Match,
    Scope,
    SearchResult,
    TextSearch,
    TrigramSearch,
    Word,
    WordStatistics,
)
from bethink.ports.values import Calendar
from bethink.store.sql.connection import (
    Connections,
    Database,
    Row,
    as_table,
    generation,
    is_on_server,
    read_ahead,
    select,
)
from bethink.store.sql.damage import met_unreadable, select_readable
from bethink.store.sql.items import count_days, session_spans
from bethink.store.sql.rows import read_items, read_items_ahead
from bethink.store.sql.search import lexical
from bethink.store.sql.search.lexical import SearchContext
from bethink.store.sql.search.scope import Predicate, compile_scope, few_ahead, find_few
from bethink.store.sql.search.vectors import VectorIndex
from bethink.store.sql.sql_functions import ceil_ms, from_ms, to_ms_or_none
from bethink.store.sql.state_cache import CachePart, StateCache

if TYPE_CHECKING:
    from bethink.store.sql.search.postings import IntArray


_MAX_CACHED_ITEMS = 4096
FEW_ROWS = 1_000  # rows of a scope that are looked at one by one


class ItemReader(NamedTuple):
    """Reads items as of a moment; several searches of one recall find much the same rows."""

    cache: StateCache
    as_of_ms: int | None

    def __call__(self, db: Database, rids: Sequence[int]) -> dict[int, Item]:
        items = self._known(db)
        missing = [rid for rid in rids if rid not in items]
        if missing:
            items.update(read_items(db, missing, self.as_of_ms))
        return {rid: items[rid] for rid in rids if rid in items}

    def ahead(self, db: Database, rids: Sequence[int]) -> None:
        if is_on_server(db):
            items = self._known(db)
            read_items_ahead(db, [rid for rid in rids if rid not in items], self.as_of_ms)

    def _known(self, db: Database) -> dict[int, Item]:
        """Return what was read of this state of the store, by row id."""
        return self.cache.get(db, _ITEMS, dict, key=self.as_of_ms)


# By moment: items as they are, and as of one moment in the past.
_ITEMS = CachePart[dict[int, Item]](limit=2, is_full=lambda known: len(known) > _MAX_CACHED_ITEMS)
UNREADABLE = "some memories cannot be read and are left out (bethink doctor)"
_EVENT_TIME = "coalesce(i.occurred_at, i.stored_at)"
_ROWS_OF_IDS = "SELECT i.rid FROM carray(?) AS w CROSS JOIN item AS i ON i.id = w.value"
# Longest duration, by its index: how early an item that overlaps a window may begin.
_LONGEST_DURATION = """
    SELECT max(occurred_end - coalesce(occurred_at, stored_at)) FROM item
    WHERE occurred_end IS NOT NULL
"""


class TimeWindow(NamedTuple):
    """A time range, and whether events that began before it and reach into it count.

    ``since`` and ``until`` are those of the filters.
    """

    start: datetime
    end: datetime
    overlapping: bool = False
    since: datetime | None = None
    until: datetime | None = None


def search_time(window: TimeWindow, depth: int, ctx: SearchContext) -> SearchResult:
    """Return items that happened in [start, end), nearest to its middle first, ties by id.

    The middle scores 1, the edges one half; an item counts where it began.
    """
    start, end, overlapping, since, until = window
    first, last = ceil_ms(start), ceil_ms(end)
    if first >= last or depth < 1:
        return SearchResult((), "the window is empty")
    middle, half = (first + last) / 2, (last - first) / 2
    low = first if since is None else max(first, ceil_ms(since))
    high = last if until is None else min(last, ceil_ms(until))
    read_ahead(ctx.db, *([(_LONGEST_DURATION, ())] if overlapping else ()))
    rows = [
        *_rows_in_window((low, min(middle, high)), "DESC", depth, ctx),
        *_rows_in_window((max(middle, low), high), "ASC", depth, ctx),
    ]
    if overlapping:
        rows += _rows_reaching(first, depth, ctx)
    ranked = sorted((abs(at - middle), item, rid, at) for rid, item, at in rows)[:depth]
    items = ctx.hydrate(ctx.db, [rid for _, _, rid, _ in ranked])
    matches = []
    for distance, _, rid, at in ranked:
        item = items.get(rid)
        if item is not None:
            verb = "happened" if item.occurred_at else "stored"
            why = f"{verb} {from_ms(at):%Y-%m-%d}"
            matches.append(Match(item, max(0.0, 1.0 - 0.5 * distance / half), why))
    return SearchResult(tuple(matches), f"from {start:%Y-%m-%d} to {end:%Y-%m-%d}", 1.0)


def _rows_in_window(
    window: tuple[float, float], direction: str, depth: int, ctx: SearchContext
) -> list[Row]:
    """Return the first ``depth`` rows in scope from one end of a window.

    By the time index, whatever else the scope has an index for; of few rows, by themselves.
    """
    values: Row = ()
    predicate = ctx.predicate
    table, row_id, at = "item", "t.rid", _EVENT_TIME.replace("i.", "t.")
    if predicate.rows is not None and len(predicate.rows) <= FEW_ROWS:
        if not len(predicate.rows):
            return []
        values = (as_table(predicate.rows),)
        table, row_id, at = "carray(?)", "t.value", _EVENT_TIME
    return select(
        ctx.db,
        f"SELECT i.rid, i.id, {at} AS at FROM {table} AS t CROSS JOIN item AS i ON i.rid = {row_id}"
        f" WHERE {at} >= ? AND {at} < ? AND ({predicate.sql})"
        f" ORDER BY {at} {direction}, i.id LIMIT ?",
        (*values, *window, *predicate.values, depth),
    )


def _rows_reaching(first: int, depth: int, ctx: SearchContext) -> list[Row]:
    """Return items that began before a moment and had not ended by then, latest first."""
    longest = ctx.db.execute(_LONGEST_DURATION).get
    if not longest or longest <= 0:
        return []
    return select(
        ctx.db,
        f"SELECT i.rid, i.id, {_EVENT_TIME} AS at FROM item AS i"
        f" WHERE {_EVENT_TIME} >= ? AND {_EVENT_TIME} < ? AND i.occurred_end > ?"
        f" AND ({ctx.predicate.sql})"
        f" ORDER BY {_EVENT_TIME} DESC, i.id LIMIT ?",
        (first - longest, first, first, *ctx.predicate.values, depth),
    )


_MAX_COUNTED = 4096
_SPREAD = 2_654_435_761  # a multiplier that spreads, as of multiplicative hashing
_COUNTS = CachePart[int](limit=64)


def count_rows_in_scope(db: Database, predicate: Predicate) -> int:
    """Count the rows in scope; of more than 4,096 that might be, estimate it from as many."""
    rows: range | IntArray | None = predicate.rows
    if rows is None:
        rows = range(1, int(db.execute("SELECT coalesce(max(rid), 0) FROM item").get) + 1)
    step = -(-len(rows) // _MAX_COUNTED) or 1
    # One of each so many, by no period: conversations and users take turns.
    places = (n * step + (n * _SPREAD % 2**32 * step >> 32) for n in range(len(rows) // step))
    sample = array("q", (int(rows[place]) for place in places))
    return step * len(lexical.rows_in_scope(db, sample, predicate))


class SqlSearch:
    """The searches of a space: `ItemSearch` in SQLite.

    What only some questions need is imported where it is used: start-up time of a recall.
    """

    def __init__(self, connections: Connections, vectors: VectorIndex, cache: StateCache) -> None:
        self._connections = connections
        self._vectors = vectors
        self._cache = cache
        self._damaged: int | None = None
        self._compiled: tuple[Scope | None, Predicate | None] = (None, None)

    def _reader(self, scope: Scope) -> ItemReader:
        return ItemReader(self._cache, to_ms_or_none(scope.as_of))

    def _predicate(self, db: Database, scope: Scope) -> Predicate:
        """Compile a scope; below a ceiling it is no plain one, though its filters may be."""
        known, compiled = self._compiled
        if compiled is None or known != scope:
            compiled = compile_scope(scope)
            self._compiled = (scope, compiled)  # a recall searches one scope several times
        predicate = find_few(db, self._cache, compiled)
        is_below = self._connections.is_view
        return predicate._replace(plain=False) if is_below else predicate

    def _tell_damage(self, db: Database, found: SearchResult) -> SearchResult:
        """Add to a result that memories are missing, because they could not be read.

        What was read is cached, so that this holds until the next write.
        """
        if met_unreadable(db):
            self._damaged = generation(db)
        if self._damaged is None or self._damaged != generation(db):
            return found
        return found._replace(damage=UNREADABLE)

    def _context(self, db: Database, scope: Scope) -> SearchContext:
        return SearchContext(db, self._predicate(db, scope), self._reader(scope), self._cache)

    def _search(
        self, scope: Scope, search: Callable[[SearchContext], SearchResult]
    ) -> SearchResult:
        with self._connections.read_transaction() as db:
            return self._tell_damage(db, search(self._context(db, scope)))

    def read_ahead(
        self,
        scope: Scope | None = None,
        *,
        text: str | None = None,
        nearest: tuple[Vector, str, int] | None = None,
        pieces: TrigramSearch | None = None,
    ) -> None:
        with self._connections.read_transaction() as db:
            if not is_on_server(db):
                return
            if scope is None:
                said = lexical.query_words_of(db, text or "")
                words = (term for word in said for term in word.terms)
                terms = dict.fromkeys((*words, *lexical.parse_query(db, text or "").index_terms))
                if terms:
                    read_ahead(db, (lexical.SELECT_TERMS, (as_table(tuple(terms)),)))
            elif nearest is not None:
                self._vectors.search_ahead(*nearest, self._context(db, scope))
            elif pieces is not None:
                from bethink.store.sql.search.pieces import search_ahead as pieces_ahead

                pieces_ahead(pieces, self._context(db, scope))
            elif text is not None:
                from bethink.store.sql.search.fuzzy import search_ahead  # see above

                search_ahead(db, text, self._predicate(db, scope))
            else:
                few_ahead(db, self._cache, compile_scope(scope))

    def text(self, search: TextSearch, scope: Scope) -> SearchResult:
        return self._search(scope, partial(lexical.search_text, search))

    def substring(self, text: str, depth: int, scope: Scope) -> SearchResult:
        from bethink.store.sql.search.fuzzy import search_substring  # see above

        return self._search(scope, partial(search_substring, text, depth))

    def vector(
        self, vector: Vector, model: str, depth: int, scope: Scope, choose: Choose | None = None
    ) -> SearchResult:
        return self._search(scope, partial(self._vectors.search, vector, model, depth, choose))

    def pieces(self, search: TrigramSearch, scope: Scope) -> SearchResult:
        from bethink.store.sql.search.pieces import search_pieces  # see above

        return self._search(scope, partial(search_pieces, search))

    def signature(self, text: str, depth: int, min_likeness: float, scope: Scope) -> SearchResult:
        from bethink.store.sql.search.word_sets import search_word_sets  # see above

        return self._search(scope, partial(search_word_sets, text, depth, min_likeness))

    def time(
        self, start: datetime, end: datetime, depth: int, scope: Scope, *, overlapping: bool = False
    ) -> SearchResult:
        filters = scope.filters
        window = TimeWindow(start, end, overlapping, filters.since, filters.until)
        return self._search(scope, partial(search_time, window, depth))

    def entities(self, entities: Sequence[str], depth: int, scope: Scope) -> SearchResult:
        from bethink.store.sql.links import search_entities  # see above

        return self._search(scope, partial(search_entities, entities, depth))

    def mentioning(self, entities: Sequence[str], each: int, scope: Scope) -> dict[str, list[Item]]:
        from bethink.store.sql.entities import latest_mentions  # see above

        with self._connections.read_transaction() as db:
            return latest_mentions(db, entities, each, scope, self._reader(scope))

    def in_scope(self, ids: Sequence[str], scope: Scope) -> list[Item]:
        if not ids:
            return []
        with self._connections.read_transaction() as db:
            predicate = self._predicate(db, scope)
            sql = f"{_ROWS_OF_IDS} WHERE {predicate.sql_of_known_rows}"
            rows = select_readable(db, sql, tuple(ids), predicate.values, bind=as_table)
            return list(self._reader(scope)(db, sorted(rid for (rid,) in rows)).values())

    def count(self, scope: Scope) -> int:
        with self._connections.read_transaction() as db:
            if scope == Scope(Filters(), scope.moment, scope.as_of):
                return lexical.word_statistics(db, (), to_ms_or_none(scope.as_of)).documents
            predicate = self._predicate(db, scope)
            # Not of the moment of asking: expiry changes little, and each recall has its own.
            key = (predicate.lasting, to_ms_or_none(scope.as_of))
            return self._cache.get(db, _COUNTS, lambda: count_rows_in_scope(db, predicate), key=key)

    def calendar(self, scope: Scope, *, sessions: int, days: bool = True) -> Calendar:
        with self._connections.read_transaction() as db:
            counted = count_days(db, scope) if days else ()
            return Calendar(tuple(counted), tuple(session_spans(db, scope, sessions)))

    def terms(self, text: str) -> tuple[str, ...]:
        with self._connections.read_transaction() as db:
            return lexical.index_terms(db, text)

    def words(self, text: str) -> tuple[Word, ...]:
        with self._connections.read_transaction() as db:
            return lexical.query_words_of(db, text)

    def statistics(self, terms: Iterable[str], *, as_of: datetime | None = None) -> WordStatistics:
        with self._connections.read_transaction() as db:
            return lexical.word_statistics(db, terms, to_ms_or_none(as_of))
