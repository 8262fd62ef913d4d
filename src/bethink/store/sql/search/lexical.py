"""Lexical search: a plan by document frequency, posting lists as arrays, exact BM25.

The rarest terms are searched first, as many as the budget allows; what holds any of them is
scored by all of the query's terms. Terms left out are only searched when the scope holds too
few matches of the others: fewer than ``depth`` matches means that there are no more. The
arrays give the exact score of most memories, and of the others (long ones, those that may
hold a name in full) the highest they can have: only the best of these are read.

Document frequencies of a moment in the past are counted over the revisions of that
time.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from bethink.core.named_tuple import NamedTuple
from bethink.core.words import bm25_idf
from bethink.model import Item
from bethink.ports import Match, SearchResult, TextSearch, Word, WordStatistics
from bethink.store.analysis import extra_index_words, query_units
from bethink.store.ranking import (
    WINDOW_TERMS,
    DocumentScore,
    QueryTerm,
    WeightedQuery,
    weight_query,
)
from bethink.store.sql.ceiling import is_below_ceiling
from bethink.store.sql.connection import Database, Row, as_table, is_on_server, read_ahead, select
from bethink.store.sql.damage import select_readable
from bethink.store.sql.search.scope import Predicate
from bethink.store.sql.search.terms import tokenizer
from bethink.store.sql.sql_functions import from_ms_or_none

if TYPE_CHECKING:
    from bethink.store.sql.search.postings import IntArray, Ranked
    from bethink.store.sql.state_cache import StateCache

_TOTALS_AS_OF = """
    SELECT count(*), total(length), coalesce(max(rid), 0) FROM item
    WHERE live_from <= ? AND text <> ''
"""
_FIRST_LATER_ROW = "SELECT min(rid) FROM item WHERE live_from > ?"
_LATER_ROWS = "SELECT rid FROM item WHERE live_from > ? AND rid <= ?"


MAX_QUERY_LENGTH = 16_384  # characters; a longer query is read no further


class ParsedQuery(NamedTuple):
    """A query as index terms; ``index_terms`` are all of them, names in one word too."""

    terms: tuple[QueryTerm, ...]
    index_terms: tuple[str, ...]
    word_count: int


def parse_query(db: Database, text: str) -> ParsedQuery:
    """Parse a query to index terms; stop words are left out unless there are no others."""
    tokens = tokenizer(db)
    query_terms: list[QueryTerm] = []
    index_terms: dict[str, None] = {}
    units = query_units(_truncate_query(text))
    for unit in units:
        if unit.common:
            continue
        pairs = [(word, term) for word in unit.words for term in tokens(word)]
        joined = tokens(unit.joined)[:1] if unit.joined else []
        if not pairs:
            continue
        words, terms_ = zip(*pairs, strict=True)
        index_terms |= dict.fromkeys((*terms_, *joined))
        query_terms.append(QueryTerm(unit.shown, words, terms_, "".join(joined)))
    word_count = sum(len(unit.words) for unit in units)
    return ParsedQuery(tuple(query_terms), tuple(index_terms), word_count)


def index_terms(db: Database, text: str) -> tuple[str, ...]:
    """Return the index terms of a text as it would be stored, each once."""
    tokens = tokenizer(db)
    text = _storable(text)
    return tuple(dict.fromkeys((*tokens(text), *tokens(extra_index_words(text)))))


def query_words_of(db: Database, text: str) -> tuple[Word, ...]:
    """Return the words and names of a query, in its order, each once."""
    tokens = tokenizer(db)
    found = (
        Word(unit.shown, tuple(term for word in unit.words for term in tokens(word)), unit.common)
        for unit in query_units(_truncate_query(text))
    )
    return tuple(word for word in found if word.terms)


def word_statistics(
    db: Database, terms: Iterable[str], as_of_ms: int | None = None
) -> WordStatistics:
    """Return the number of memories and each index term's document frequency.

    With a moment, as of then.
    """
    if as_of_ms is not None:
        return _statistics_as_of(db, document_frequencies(db, terms), as_of_ms)
    counters: dict[str, str] = dict(
        select(db, "SELECT name, value FROM meta WHERE name IN ('documents', 'total_length')")
    )
    documents = int(counters.get("documents", "0"))
    total = int(counters.get("total_length", "0"))
    return WordStatistics(
        documents=documents,
        average_length=total / documents if documents else 0.0,
        frequencies=document_frequencies(db, terms),
    )


def _statistics_as_of(db: Database, today: Mapping[str, int], as_of_ms: int) -> WordStatistics:
    """Return word statistics over the revisions of a moment, for terms that are known today."""
    documents, total, last = db.execute(_TOTALS_AS_OF, (as_of_ms,)).get
    average = total / documents if documents else 0.0
    later = db.execute(_FIRST_LATER_ROW, (as_of_ms,)).get
    known = tuple(term for term, df in today.items() if df)
    if later is None or not known:
        return WordStatistics(documents, average, today)
    from bethink.store.sql.search import postings  # NumPy

    # Rows are numbered in the order of storing: those of later seldom come between.
    left_out = select(db, _LATER_ROWS, (as_of_ms, last)) if later < last else []
    if is_below_ceiling(db):
        left_out += select(db, "SELECT rid FROM temp.hidden_row")
    tids = {term: tid for term, _, tid in _read_terms(db, known)}
    counts = postings.count_rows(db, tids, last, [rid for (rid,) in left_out])
    return WordStatistics(documents, average, dict.fromkeys(today, 0) | counts)


def document_frequencies(db: Database, terms: Iterable[str]) -> dict[str, int]:
    """Return for each index term the number of memories that hold it, 0 if unknown."""
    found = dict.fromkeys(terms, 0)
    if found:
        found.update((term, df) for term, df, _ in _read_terms(db, tuple(found)))
    return found


def _read_terms(db: Database, terms: tuple[str, ...]) -> list[Row]:
    """Return the rows of index terms: term, frequency, number. A server is asked for each once."""
    read_ahead(db, (SELECT_TERMS, (as_table(terms),)))
    return select_readable(db, SELECT_TERMS, terms, bind=as_table)


def _storable(text: str) -> str:
    """Remove what SQLite cannot store; callers reject such text before."""
    return text.replace("\0", " ").encode("utf-8", "ignore").decode("utf-8")


def _truncate_query(text: str) -> str:
    return _storable(text[:MAX_QUERY_LENGTH])


Ahead = Callable[[Database, Sequence[int]], None]  # told which rows will be read


class ItemLoader(Protocol):
    """Reads items by their rows; `ahead` tells which will be read."""

    def __call__(self, db: Database, rids: Sequence[int]) -> dict[int, Item]: ...

    def ahead(self, db: Database, rids: Sequence[int]) -> None: ...


class SearchContext(NamedTuple):
    """What a search works with: a transaction, the rows in scope, and how items are read."""

    db: Database
    predicate: Predicate
    hydrate: ItemLoader
    cache: StateCache | None = None


def load_matches(found: Sequence[tuple[int, float, str]], ctx: SearchContext) -> tuple[Match, ...]:
    """Return matches for rows with their scores and reasons; rows that are gone are left out."""
    items = ctx.hydrate(ctx.db, [rid for rid, _, _ in found])
    return tuple(Match(items[rid], score, why) for rid, score, why in found if rid in items)


MAX_TERMS = 64
MAX_EXAMINED = 512  # revisions looked at together
MAX_TIES = 2_000  # memories with the same score as the last that fits
CHEAP_DOCUMENT_FREQUENCY = 500  # memories; a word in fewer is always cheap to search
IDF_RATIO = 4.0  # times the idf
SELECT_TERMS = "SELECT t, df, tid FROM carray(?) AS w CROSS JOIN term ON t = w.value"
_SELECT_TEXTS = (
    "SELECT i.rid, i.id, i.text, i.about, i.length"
    " FROM carray(?) AS w CROSS JOIN item AS i ON i.rid = w.value"
)


class CandidateRow(NamedTuple):
    """A candidate: the columns needed to score a memory by its words."""

    rid: int
    id: str
    text: str
    about: str
    length: int


class SearchPlan(NamedTuple):
    """Terms to search, rarest first, and terms to search only if those give too little."""

    first: tuple[str, ...]
    rest: tuple[str, ...]
    postings: int


def search_text(search: TextSearch, ctx: SearchContext) -> SearchResult:
    """Search memories that hold any of the query's words, ranked by BM25, ties by id."""
    as_of_ms = ctx.predicate.as_of_ms
    reading = parse_query(ctx.db, search.text)
    known = word_statistics(ctx.db, reading.index_terms, as_of_ms)
    every = _with_others(known, search, as_of_ms)
    terms = _limit_terms(reading.terms, every.frequencies)
    query = weight_query(terms, every, search)
    plan = make_plan(
        {term: known.frequencies[term] for term in query.weights},
        documents=known.documents,
        budget=search.postings_budget,
    )
    ranked = _rank_by_words(query, plan, search.depth, ctx, ctx.hydrate.ahead)
    found = [(rid, scored.score, query.why(scored)) for rid, scored in ranked]
    searched = {term for unit in terms for term in unit.terms}.intersection(plan.first)
    return SearchResult(
        matches=load_matches(found, ctx),
        note=f"{len(searched)} of {reading.word_count} words searched, {plan.postings:,} postings",
        ceiling=query.ceiling,
    )


def _with_others(known: WordStatistics, search: TextSearch, as_of_ms: int | None) -> WordStatistics:
    """Add the counts of words in the other stores of the same search."""
    if not search.beside:
        return known
    from bethink.store.joined import join_statistics  # start-up time: few join stores

    as_of, terms = from_ms_or_none(as_of_ms), tuple(known.frequencies)
    return join_statistics(known, [other.statistics(terms, as_of=as_of) for other in search.beside])


def find_candidates(
    terms: Iterable[str], search: TextSearch, ctx: SearchContext
) -> list[CandidateRow]:
    """Return the memories in scope that hold any of the index terms, the best by BM25."""

    def texts_too(db: Database, rids: Sequence[int]) -> None:
        _texts_ahead(db, rids)
        ctx.hydrate.ahead(db, rids)

    known = word_statistics(ctx.db, sorted(terms), ctx.predicate.as_of_ms)
    query = weight_query([QueryTerm(t, (t,), (t,)) for t in known.frequencies], known, search)
    plan = make_plan(known.frequencies, documents=known.documents, budget=search.postings_budget)
    ranked = _rank_by_words(query, plan, search.depth, ctx, texts_too)
    return _read_texts(ctx.db, [rid for rid, _ in ranked])


def make_plan(frequencies: Mapping[str, int], *, documents: int, budget: int) -> SearchPlan:
    """Spend the postings budget on the rarest terms; search at least one known term.

    A term in more than a third of all memories waits, if there is a far rarer one.
    """
    common_from = max(documents / 3, CHEAP_DOCUMENT_FREQUENCY)
    first: list[str] = []
    rest: list[str] = []
    spent = 0
    present = [term for term, df in frequencies.items() if df > 0]
    present.sort(key=lambda term: (frequencies[term], term))
    for term in present:
        df = frequencies[term]
        idf, rarest = (bm25_idf(documents, count) for count in (df, frequencies[present[0]]))
        common = df > common_from and IDF_RATIO * idf < rarest
        if first and (spent + df > budget or common):
            rest.append(term)
        else:
            first.append(term)
            spent += df
    return SearchPlan(tuple(first), tuple(rest), spent)


def _limit_terms(
    terms: Sequence[QueryTerm], frequencies: Mapping[str, int]
) -> tuple[QueryTerm, ...]:
    """Return the rarest known terms of a long query, in the order of the query."""
    if sum(len(unit.terms) for unit in terms) <= MAX_TERMS:
        return tuple(terms)

    def rarity(position: int) -> tuple[bool, int, int]:
        counts = [frequencies[term] for term in terms[position].terms if frequencies[term]]
        return not counts, min(counts, default=0), position

    kept: dict[int, QueryTerm] = {}
    remaining = MAX_TERMS
    for position in sorted(range(len(terms)), key=rarity):
        unit = terms[position]
        kept[position] = unit._replace(words=unit.words[:remaining], terms=unit.terms[:remaining])
        remaining -= len(kept[position].terms)
        if remaining <= 0:
            break
    return tuple(kept[position] for position in sorted(kept))


class _RankedRow(NamedTuple):
    """A memory found; where its words need not be read, its place in the ranking instead."""

    score: float
    id: str
    rid: int
    place: int
    ranked: Ranked
    scored: DocumentScore | None


class _Best:
    """The best memories found so far, at most ``depth``, and those that tie with the last."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._scores: list[float] = []  # a heap
        self._found: list[_RankedRow] = []
        self._ties = 0

    def __len__(self) -> int:
        return len(self._scores)

    def may_hold(self, bound: float) -> bool:
        """Whether a memory with this highest score may be among the best."""
        if len(self._scores) < self.depth or bound > self._scores[0]:
            return True
        self._ties += 1
        return bound == self._scores[0] and self._ties < MAX_TIES

    def add(self, row: _RankedRow) -> None:
        push = heapq.heappush if len(self._scores) < self.depth else heapq.heappushpop
        push(self._scores, row.score)
        self._found.append(row)

    def ranked(self) -> list[tuple[int, DocumentScore]]:
        """Return row ids and scores, best first, ties by id."""
        best = sorted(self._found, key=lambda row: (-row.score, row.id))[: self.depth]
        scores = {row.rid: row.scored for row in best if row.scored is not None}
        for ranked in {id(row.ranked): row.ranked for row in best}.values():
            rows = [row for row in best if row.ranked is ranked and row.scored is None]
            counts = ranked.counts([row.place for row in rows])
            for row, found in zip(rows, counts, strict=True):
                scores[row.rid] = DocumentScore(row.score, found, ())
        return [(row.rid, scores[row.rid]) for row in best]


def _rank_by_words(
    query: WeightedQuery, plan: SearchPlan, depth: int, ctx: SearchContext, ahead: Ahead
) -> list[tuple[int, DocumentScore]]:
    """Return the ``depth`` best in scope: of the plan's terms, then of all if those are few.

    What is likely among them is told to ``ahead`` before it is looked at.
    """
    if not plan.first or depth < 1:
        return []
    from bethink.store.sql.search import postings  # NumPy

    lists = postings.PostingLists(ctx.cache)
    tids = {term: tid for term, _, tid in _read_terms(ctx.db, (*plan.first, *plan.rest))}
    best = _Best(depth)
    for rest in ((), plan.rest):
        best = _Best(depth)
        searched = [term for term in (*plan.first, *rest) if term in tids]
        for part, found in lists.read(ctx.db, list(tids.values())):
            by_term = dict(zip(tids, found, strict=True))
            ranked = postings.rank(query, part, by_term, searched, ctx.predicate.rows)
            _examine(query, ranked, best, ctx, ahead)
        if len(best) == depth or not plan.rest:
            break
    return best.ranked()


def _examine(
    query: WeightedQuery, ranked: Ranked, best: _Best, ctx: SearchContext, ahead: Ahead
) -> None:
    """Score the revisions in scope that may be among the best, the likeliest first."""
    db = ctx.db
    first = (3 if ctx.predicate.plain else 8) * best.depth // 2
    for chunk in ranked.best_first(first):
        for at in range(0, len(chunk), MAX_EXAMINED):
            piece = chunk[at : at + MAX_EXAMINED]
            if not best.may_hold(ranked.bounds[piece[0]]):
                return
            rids = ranked.part.rows(ranked.positions[piece])
            if is_on_server(db):
                ahead(db, rids[: best.depth].tolist())
                _texts_ahead(db, rids[~ranked.exact[piece]].tolist())
            ids = rows_in_scope(db, rids, ctx.predicate)
            unknown = [rid for rid in rids[~ranked.exact[piece]].tolist() if rid in ids]
            texts = {row.rid: row for row in _read_texts(db, unknown)}
            bounds = ranked.bounds[piece].tolist()
            for index, rid, bound in zip(piece.tolist(), rids.tolist(), bounds, strict=True):
                if rid not in ids:
                    continue
                if not best.may_hold(bound):
                    return
                scored = _score_row(db, query, texts[rid]) if rid in texts else None
                score = bound if scored is None else scored.score
                if score > 0.0:
                    best.add(_RankedRow(score, ids[rid], rid, index, ranked, scored))


def rows_in_scope(
    db: Database, rids: IntArray | array[int], predicate: Predicate
) -> dict[int, str]:
    """Return those of the rows that the predicate allows, with their ids."""
    if not len(rids):
        return {}
    sql = _ROWS_IN_SCOPE + predicate.sql_of_known_rows
    return dict(select_readable(db, sql, rids, predicate.values, bind=as_table))


_ROWS_IN_SCOPE = (
    "SELECT i.rid, i.id FROM carray(?) AS w CROSS JOIN item AS i ON i.rid = w.value WHERE "
)


def scope_ahead(db: Database, rids: IntArray, predicate: Predicate) -> None:
    """Tell that `rows_in_scope` will be asked for these rows."""
    if len(rids):
        sql = _ROWS_IN_SCOPE + predicate.sql_of_known_rows
        read_ahead(db, (sql, (as_table(rids), *predicate.values)))


def _texts_ahead(db: Database, rids: Sequence[int]) -> None:
    if rids:
        read_ahead(db, (_SELECT_TEXTS, (as_table(array("q", rids)),)))


def _read_texts(db: Database, rids: Sequence[int]) -> list[CandidateRow]:
    """Return the columns that are needed to score revisions."""
    if not rids:
        return []
    found = select_readable(db, _SELECT_TEXTS, array("q", rids), bind=as_table)
    return [CandidateRow(*row) for row in found]


def _score_row(db: Database, query: WeightedQuery, row: CandidateRow) -> DocumentScore:
    """Score a memory by its words."""
    tokens = tokenizer(db)
    text, about = tokens(row.text), tokens(row.about)
    if row.length > WINDOW_TERMS:
        return query.score_best_window(text, about)
    return query.score(text, about, row.length)
