"""Lexical search: a plan by document frequency, FTS5 for candidates, exact BM25.

What a search costs is the posting lists FTS5 walks. So the rarest terms are searched
first, as many as the budget allows, and the best candidates are scored by all of the
query's terms. Terms left out are only searched when the scope holds too few matches of
the others: fewer than ``depth`` matches means that there are no more.

Document frequencies of a moment in the past are counted over the revisions of that
time.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import apsw

from bethink.core.text import bm25_idf
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
from bethink.store.sqlite.db.ceiling import hides_rows, is_below_ceiling
from bethink.store.sqlite.search.scope import Predicate

_TOTALS_AS_OF = (
    "SELECT count(*), total(length), coalesce(max(rid), 0) FROM item WHERE live_from <= ?"
)
_FIRST_LATER_ROW = "SELECT min(rid) FROM item WHERE live_from > ?"
# Rows are numbered in the order of storing, so a row number usually separates the times.
_COUNT_MATCHING = "SELECT count(*) FROM words WHERE words MATCH ? AND rowid <= ?{rowid}"
_COUNT_HOLDING = "SELECT count(DISTINCT doc) FROM posting WHERE term = ? AND doc <= ?{doc}"
_COUNT_HOLDING_AS_OF = """
    SELECT count(DISTINCT p.doc) FROM posting AS p CROSS JOIN item AS i ON i.rid = p.doc
    WHERE p.term = ? AND i.live_from <= ?
"""

Tokens = Callable[[str], list[str]]


class _AsOf(NamedTuple):
    """A moment, and the last row stored by then if row order separates then from later."""

    as_of_ms: int
    last_row: int | None


def statistics_as_of(
    db: apsw.Connection, tokens: Tokens, today: Mapping[str, int], as_of_ms: int
) -> WordStatistics:
    """Return word statistics over the revisions of a moment.

    ``today`` gives the present document frequency of each index term.
    """
    documents, total, last = db.execute(_TOTALS_AS_OF, (as_of_ms,)).get
    average = total / documents if documents else 0.0
    later = db.execute(_FIRST_LATER_ROW, (as_of_ms,)).get
    if later is None:
        return WordStatistics(documents, average, today)
    past = _AsOf(as_of_ms, last if last < later else None)
    frequencies = {
        term: _document_frequency_as_of(db, tokens, term, past) if df else 0
        for term, df in today.items()
    }
    return WordStatistics(documents, average, frequencies)


def _document_frequency_as_of(db: apsw.Connection, tokens: Tokens, term: str, past: _AsOf) -> int:
    if past.last_row is None:
        return int(db.execute(_COUNT_HOLDING_AS_OF, (term, past.as_of_ms)).get)
    # An appended e yields the stem where the stemmer would cut it once more.
    spelled = next((word for word in (term, f"{term}e") if tokens(word) == [term]), None)
    if spelled is None:
        counting = _COUNT_HOLDING.format(doc=_not_hidden(db, "doc"))
        return int(db.execute(counting, (term, past.last_row)).get)
    quoted = '"' + spelled.replace('"', '""') + '"'
    counting = _COUNT_MATCHING.format(rowid=_not_hidden(db, "rowid"))
    return int(db.execute(counting, (quoted, past.last_row)).get)


def _not_hidden(db: apsw.Connection, column: str) -> str:
    """Return the condition on a row of the index by which a ceiling hides it."""
    if not is_below_ceiling(db):
        return ""
    return f" AND {column} NOT IN (SELECT rid FROM temp.hidden_row)"


_TOKENIZER_ARGS = ("porter", ["unicode61", "remove_diacritics", "2"])  # as in the schema
MAX_TERM_LENGTH = 128  # longer ones are blobs: indexed, but not searched
MAX_QUERY_LENGTH = 16_384  # characters; a longer query is read no further


class ParsedQuery(NamedTuple):
    """A query as index terms.

    ``spelling`` gives for every index term a word that FTS5 stems to it: an index term
    itself would be stemmed once more.
    """

    terms: tuple[QueryTerm, ...]
    spelling: dict[str, str]
    word_count: int


def as_table(values: Any) -> Any:
    """Bind strings (a tuple) or integers (an array) as the rows of ``carray(?)``.

    There must be at least one; one statement serves any number of them. A string with NUL
    cannot be bound and is no id or word of ours: it becomes one that matches nothing.
    """
    if isinstance(values, tuple) and any("\0" in value for value in values):
        values = tuple("" if "\0" in value else value for value in values)
    return apsw.carray(values)


def tokenizer(db: apsw.Connection) -> Tokens:
    """Return FTS5's own tokenizer, so that counts agree with the index."""
    split: Callable[..., Any] = db.fts5_tokenizer(*_TOKENIZER_ARGS)

    def tokens(text: str) -> list[str]:
        found: list[str] = split(
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return found

    return tokens


def words_and_terms(db: apsw.Connection, text: str) -> Iterator[tuple[str, str]]:
    """Yield each word as written, with its index term."""
    split: Callable[..., Any] = db.fts5_tokenizer(*_TOKENIZER_ARGS)
    encoded = text.encode("utf-8", "replace")
    for start, end, term in split(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None):
        yield encoded[start:end].decode("utf-8", "replace"), term


def parse_query(db: apsw.Connection, text: str) -> ParsedQuery:
    """Parse a query to index terms; stop words are left out unless there are no others."""
    tokens = tokenizer(db)
    query_terms: list[QueryTerm] = []
    spelling: dict[str, str] = {}
    units = query_units(_truncate_query(text))
    for unit in units:
        if unit.common:
            continue
        pairs = [(word, term) for word in unit.words for term in tokens(word)]
        joined = tokens(unit.joined)[:1] if unit.joined else []
        if not pairs:
            continue
        for word, term in (*pairs, *((unit.joined, term) for term in joined)):
            spelling.setdefault(term, word)
        words, terms_ = zip(*pairs, strict=True)
        query_terms.append(QueryTerm(unit.shown, words, terms_, "".join(joined)))
    return ParsedQuery(tuple(query_terms), spelling, sum(len(unit.words) for unit in units))


def index_terms(db: apsw.Connection, text: str) -> tuple[str, ...]:
    """Return the index terms of a text as it would be stored, each once."""
    tokens = tokenizer(db)
    text = _storable(text)
    return tuple(dict.fromkeys((*tokens(text), *tokens(extra_index_words(text)))))


def query_words_of(db: apsw.Connection, text: str) -> tuple[Word, ...]:
    """Return the words and names of a query, in its order, each once."""
    tokens = tokenizer(db)
    found = (
        Word(unit.shown, tuple(term for word in unit.words for term in tokens(word)), unit.common)
        for unit in query_units(_truncate_query(text))
    )
    return tuple(word for word in found if word.terms)


def word_statistics(
    db: apsw.Connection, terms: Iterable[str], as_of_ms: int | None = None
) -> WordStatistics:
    """Return the number of memories and each index term's document frequency.

    With a moment, as of then.
    """
    if as_of_ms is not None:
        # rarely needed

        return statistics_as_of(db, tokenizer(db), document_frequencies(db, terms), as_of_ms)
    counters = dict(
        db.execute("SELECT name, value FROM meta WHERE name IN ('documents', 'total_length')")
    )
    documents = int(counters.get("documents", "0"))
    total = int(counters.get("total_length", "0"))
    return WordStatistics(
        documents=documents,
        average_length=total / documents if documents else 0.0,
        frequencies=document_frequencies(db, terms),
    )


def document_frequencies(db: apsw.Connection, terms: Iterable[str]) -> dict[str, int]:
    """Return for each index term the number of memories that hold it, 0 if unknown."""
    found = dict.fromkeys(terms, 0)
    if found:
        found.update(
            db.execute(
                "SELECT t, df FROM carray(?) AS w CROSS JOIN term ON t = w.value",
                (as_table(tuple(found)),),
            )
        )
    return found


def _storable(text: str) -> str:
    """Remove what SQLite cannot store; callers reject such text before."""
    return text.replace("\0", " ").encode("utf-8", "ignore").decode("utf-8")


def _truncate_query(text: str) -> str:
    return _storable(text[:MAX_QUERY_LENGTH])


ItemLoader = Callable[[apsw.Connection, Sequence[int]], dict[int, Item]]

MAX_TERMS = 64
FEW_CANDIDATES, SOME_CANDIDATES, MANY_CANDIDATES = 40, 150, 500
LONG_CANDIDATE_SHARE = 4  # one long candidate more for so many
FTS5_PARAMETERS = (1.2, 0.75)  # k1 and b of its bm25(), which cannot be changed
LARGE_STORE_DOCUMENTS, LARGE_STORE_BUDGET = 1_000_000, 50_000
CHEAP_DOCUMENT_FREQUENCY = 500  # memories; a word in fewer is always cheap to search
IDF_RATIO = 4.0  # times the idf
SMALL_SCOPE = 2_000  # memories; a scope of this size is scored completely


class CandidateRow(NamedTuple):
    """A candidate: the columns needed to score a memory by its words.

    ``relevance`` is FTS5's own score of it, higher is better; infinite where unknown.
    """

    rid: int
    id: str
    text: str
    about: str
    length: int
    visible: int = 1
    relevance: float = math.inf


class SearchPlan(NamedTuple):
    """Terms to search, rarest first, and terms to search only if those give too little.

    ``candidates`` are scored exactly: the fewer, the better FTS5 can rank them.
    """

    first: tuple[str, ...]
    rest: tuple[str, ...]
    postings: int
    rest_postings: int
    budget: int
    candidates: int


class CandidateRequest(NamedTuple):
    """A request for candidates: a plan, its spelling for FTS5, and the scope's predicate."""

    plan: SearchPlan
    spelling: Mapping[str, str]
    about_weight: float
    depth: int
    predicate: Predicate

    @property
    def candidate_count(self) -> int:
        """How many candidates are scored exactly."""
        return max(self.plan.candidates, 3 * self.depth // 2)

    def fts5_query(self, terms: Sequence[str]) -> str:
        """Return an FTS5 query for any of the terms; each is quoted, so none is an operator."""
        return " OR ".join('"' + self.spelling[term].replace('"', '""') + '"' for term in terms)


def search_text(
    db: apsw.Connection, search: TextSearch, predicate: Predicate, hydrate: ItemLoader
) -> SearchResult:
    """Search memories that hold any of the query's words, ranked by BM25, ties by id."""
    reading = parse_query(db, search.text)
    known = word_statistics(db, reading.spelling, predicate.as_of_ms)
    terms = _limit_terms(reading.terms, known.frequencies)
    query = weight_query(terms, known, search)
    plan = make_plan(
        {term: known.frequencies[term] for term in query.weights},
        documents=known.documents,
        budget=search.postings_budget,
    )
    request = CandidateRequest(plan, reading.spelling, search.about_weight, search.depth, predicate)
    rows = gather_candidates(db, request)
    ranked = _rank_exactly(
        db, query, rows, search.depth, _score_headroom(db, query, plan, known, predicate)
    )
    items = hydrate(db, [row.rid for row, _ in ranked])
    searched = {term for unit in terms for term in unit.terms}.intersection(plan.first)
    return SearchResult(
        matches=tuple(
            Match(items[row.rid], scored.score, query.why(scored))
            for row, scored in ranked
            if row.rid in items
        ),
        note=f"{len(searched)} of {reading.word_count} words searched, {plan.postings:,} postings",
        ceiling=query.ceiling,
    )


def make_plan(frequencies: Mapping[str, int], *, documents: int, budget: int) -> SearchPlan:
    """Spend the postings budget on the rarest terms; search at least one known term.

    A term in more than a third of all memories waits, if there is a far rarer one.
    """
    if documents >= LARGE_STORE_DOCUMENTS:
        budget = max(budget, LARGE_STORE_BUDGET)
    common_from = max(documents / 3, CHEAP_DOCUMENT_FREQUENCY)
    first: list[str] = []
    rest: list[str] = []
    spent = 0
    present = [term for term, df in frequencies.items() if df > 0]
    present.sort(key=lambda term: (frequencies[term], term))
    for term in present:
        df = frequencies[term]
        common = df > common_from and _is_far_less_specific(df, frequencies[present[0]], documents)
        if first and (spent + df > budget or common):
            rest.append(term)
        else:
            first.append(term)
            spent += df
    rest_postings = sum(frequencies[term] for term in rest)
    # FTS5 gives a word in half of all memories no weight, and unsearched words none:
    # its order is only approximate then.
    approximate = any(frequencies[term] > documents / 2 for term in first)
    candidates = MANY_CANDIDATES if approximate else SOME_CANDIDATES if rest else FEW_CANDIDATES
    return SearchPlan(tuple(first), tuple(rest), spent, rest_postings, budget, candidates)


def _is_far_less_specific(df: int, rarest: int, documents: int) -> bool:
    return IDF_RATIO * bm25_idf(documents, df) < bm25_idf(documents, rarest)


# A long memory is scored by its best window, which is better than the whole by no more than
# it is shorter.
_MAX_RELEVANCE = f"-ranked.cost * max(1.0, i.length / {WINDOW_TERMS}.0)"
_SELECT_LONG = f"SELECT 1 FROM main.item INDEXED BY item_long WHERE length > {WINDOW_TERMS} LIMIT 1"


def gather_candidates(db: apsw.Connection, request: CandidateRequest) -> list[CandidateRow]:
    """Return candidates in scope, the best by FTS5's own ranking and the best long ones.

    There are fewer than ``depth`` only if no more memories in scope hold any of the plan's
    terms.
    """
    rows = _gather_by_whole(db, request)
    if len(rows) >= request.depth > 0 and db.execute(_SELECT_LONG).get:
        known = {row.rid for row in rows}
        rows += (row for row in _long_candidates(db, request) if row.rid not in known)
    return rows


def _long_candidates(db: apsw.Connection, request: CandidateRequest) -> Iterator[CandidateRow]:
    """Yield the long memories in scope whose best window may be the best."""
    predicate = request.predicate
    cursor = db.execute(
        f"""
        SELECT i.rid, i.id, i.text, i.about, i.length, 1, {_MAX_RELEVANCE}
        FROM (
            SELECT words.rowid AS rid, bm25(words, 1.0, ?) AS cost
            FROM words CROSS JOIN main.item AS long INDEXED BY item_long
                ON long.rid = words.rowid AND long.length > {WINDOW_TERMS}
            WHERE words MATCH ?{_not_hidden(db, "words.rowid")}
            ORDER BY cost * long.length, words.rowid LIMIT ?
        ) AS ranked CROSS JOIN item AS i ON i.rid = ranked.rid WHERE {predicate.sql}""",
        (
            request.about_weight,
            request.fts5_query(request.plan.first),
            request.candidate_count // LONG_CANDIDATE_SHARE,
            *predicate.values,
        ),
    )
    return _to_candidates(cursor)


def _gather_by_whole(db: apsw.Connection, request: CandidateRequest) -> list[CandidateRow]:
    """Return candidates in scope, the best by FTS5's own ranking."""
    plan, predicate = request.plan, request.predicate
    if not plan.first or request.depth < 1:
        return []
    limit = request.candidate_count
    # With a filter, one longer query is cheaper than two.
    fetch_limit = limit if predicate.plain else 4 * limit
    rows: list[CandidateRow] = []
    seen = 0
    # Fetching a row is the cost: fetch no more than needed.
    for row in _candidates_by_relevance(db, request, plan.first, limit=fetch_limit):
        seen += 1
        if row.visible:
            rows.append(row)
            if len(rows) == limit:
                return rows
    exhausted = seen < fetch_limit
    enough = request.depth if exhausted else max(request.depth, limit // 2)
    if len(rows) >= enough or (exhausted and not plan.rest):
        return rows
    if not predicate.plain:
        whole_scope = _scan_small_scope(db, predicate)
        if whole_scope is not None:
            return whole_scope
    if not exhausted:
        more = _candidates_by_relevance(db, request, plan.first, offset=fetch_limit)
        visible = (row for row in more if row.visible)
        rows += islice(visible, limit - len(rows))
    if len(rows) < request.depth and plan.rest:
        rows += _candidates_by_common_terms(db, request, {row.rid for row in rows})
    return rows


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


def _rank_exactly(
    db: apsw.Connection,
    query: WeightedQuery,
    rows: Sequence[CandidateRow],
    depth: int,
    headroom: float,
) -> list[tuple[CandidateRow, DocumentScore]]:
    """Return the ``depth`` best by exact score.

    A row whose FTS5 score plus the headroom does not reach the best so far is skipped.
    """
    tokens = tokenizer(db)
    ranked: list[tuple[CandidateRow, DocumentScore]] = []
    best: list[float] = []
    for row in rows:
        if len(best) == depth and row.relevance + headroom < best[0]:
            continue
        if row.length > WINDOW_TERMS:
            scored = query.score_best_window(tokens(row.text), tokens(row.about))
        elif not row.about:
            scored = query.score(tokens(row.text), (), row.length)
        elif query.is_flat:
            scored = query.score(tokens(f"{row.text}\n{row.about}"), (), row.length)
        else:
            scored = query.score(tokens(row.text), tokens(row.about), row.length)
        if scored.score > 0.0:
            ranked.append((row, scored))
            push = heapq.heappush if len(best) < depth else heapq.heappushpop
            push(best, scored.score)
    ranked.sort(key=lambda pair: (-pair[1].score, pair[0].id))
    return ranked[:depth]


def _score_headroom(
    db: apsw.Connection,
    query: WeightedQuery,
    plan: SearchPlan,
    known: WordStatistics,
    predicate: Predicate,
) -> float:
    """Return the headroom; infinite where FTS5 counts others: by today, or hidden ones."""
    counts_others = predicate.as_of_ms is not None or hides_rows(db)
    return math.inf if counts_others else _bm25_headroom(query, plan, known)


def _bm25_headroom(query: WeightedQuery, plan: SearchPlan, known: WordStatistics) -> float:
    """Return by how much an exact score can exceed that of FTS5.

    FTS5 knows only the terms searched, has an idf that falls to zero, and fixed parameters.
    """
    if (query.k1, query.b) != FTS5_PARAMETERS:
        return math.inf
    max_factor = query.k1 + 1.0
    headroom = 1e-6  # of rounding
    for term in (*plan.first, *plan.rest):
        df = known.frequencies[term]
        fts5_weight = (
            math.log((known.documents - df + 0.5) / (df + 0.5)) if term in plan.first else 0.0
        )
        headroom += max_factor * max(query.weights[term] - max(fts5_weight, 0.0), 0.0)
    for unit in query.names:
        # A name written as one word counts as its parts, and a full match counts twice.
        headroom += (max_factor + 1.0) * sum(query.weights[term] for term in unit.terms)
    return headroom


def _candidates_by_relevance(
    db: apsw.Connection,
    request: CandidateRequest,
    terms: Sequence[str],
    *,
    limit: int = -1,
    offset: int = 0,
) -> Iterator[CandidateRow]:
    """Yield the memories that hold any of the terms, best first, including out of scope."""
    predicate = request.predicate
    # bm25() in the order, not `rank`: half the time on wide queries. The better, the lower.
    cursor = db.execute(
        f"""
        SELECT i.rid, i.id, i.text, i.about, i.length, ({predicate.sql}), {_MAX_RELEVANCE}
        FROM (
            SELECT rowid AS rid, bm25(words, 1.0, ?) AS cost
            FROM words WHERE words MATCH ?{_not_hidden(db, "rowid")}
            ORDER BY cost, rowid LIMIT ? OFFSET ?
        ) AS ranked CROSS JOIN item AS i ON i.rid = ranked.rid""",
        (*predicate.values, request.about_weight, request.fts5_query(terms), limit, offset),
    )
    return _to_candidates(cursor)


def _to_candidates(cursor: Iterable[Any]) -> Iterator[CandidateRow]:
    return map(CandidateRow._make, cursor)


def _scan_small_scope(db: apsw.Connection, predicate: Predicate) -> list[CandidateRow] | None:
    """Return every memory in scope, if they are few; else None."""
    rows = db.execute(
        f"SELECT i.rid, i.id, i.text, i.about, i.length, 1, 9e999 FROM item AS i"
        f" WHERE {predicate.sql} LIMIT {SMALL_SCOPE + 1}",
        predicate.values,
    ).fetchall()
    return list(_to_candidates(rows)) if len(rows) <= SMALL_SCOPE else None


def _candidates_by_common_terms(
    db: apsw.Connection, request: CandidateRequest, known: set[int]
) -> Iterator[CandidateRow]:
    """Yield further memories by the terms that were left out.

    If even those are too many to rank, the newest: such common words hardly discriminate.
    """
    plan = request.plan
    if plan.rest_postings <= plan.budget:
        found = _candidates_by_relevance(db, request, plan.rest)
    else:
        found = _newest_candidates(db, request, plan.rest)
    fresh = (row for row in found if row.visible and row.rid not in known)
    return islice(fresh, request.candidate_count)


def _newest_candidates(
    db: apsw.Connection, request: CandidateRequest, terms: Sequence[str]
) -> Iterator[CandidateRow]:
    predicate = request.predicate
    cursor = db.execute(
        f"""
        SELECT i.rid, i.id, i.text, i.about, i.length, 1, 9e999
        FROM words AS w CROSS JOIN item AS i ON i.rid = w.rowid
        WHERE words MATCH ? AND ({predicate.sql}) ORDER BY w.rowid DESC""",
        (request.fts5_query(terms), *predicate.values),
    )
    return _to_candidates(cursor)
