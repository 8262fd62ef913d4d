"""Fuzzy search: misspelt words and parts of words.

A word that is rare in the index is expanded to the terms it resembles (by the
vocabulary's trigrams) and also looked for as a substring (by the memories' trigrams). A
memory scores the share of the query that it holds, each word weighted by its idf and by
its spelling similarity.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from bethink.core.dataclass import dataclass
from bethink.core.words import bm25_idf
from bethink.ports import SearchResult, TextSearch, WordStatistics
from bethink.store import analysis
from bethink.store.sql.connection import (
    Database,
    Row,
    as_table,
    is_on_server,
    keep_terms,
    read_ahead,
)
from bethink.store.sql.search.lexical import (
    MAX_TERMS,
    SELECT_TERMS,
    CandidateRow,
    ParsedQuery,
    SearchContext,
    document_frequencies,
    find_candidates,
    load_matches,
    parse_query,
    word_statistics,
)
from bethink.store.sql.search.scope import Predicate
from bethink.store.sql.search.terms import quote_fts5, tokenizer, words_and_terms

POSTINGS_BUDGET = 200_000
MIN_CANDIDATES = 40
RARE_DOCUMENTS = 2  # memories; a word in so few may itself be a slip
MAX_EXPANSIONS = 8
MAX_TRIGRAM_CANDIDATES = 300  # terms that share trigrams, looked at for each word
MAX_EDIT_SEARCH_LENGTH = 8  # letters; longer words keep a trigram whatever the slip
MAX_WORD_LENGTH = 40
SimilarTerm = tuple[str, float, int]  # a term, how alike it is, and how many memories hold it
MAX_ROWS_READ = 2_000  # memories read for a word too short to tell by its trigrams


@dataclass(frozen=True, slots=True)
class FuzzyTerm:
    """A word of the query: the terms it may match with their similarity, and its weight."""

    word: str
    term: str
    weight: float
    readings: Mapping[str, float]
    hardly_known: bool


@dataclass(frozen=True, slots=True)
class FuzzyMatch:
    """How a memory matches a word: similarity, and the term or substring matched."""

    similarity: float
    term: str = ""
    inside: str = ""


def search_substring(text: str, depth: int, ctx: SearchContext) -> SearchResult:
    """Search memories for the query's words, similar spellings and parts of words."""
    db, predicate = ctx.db, ctx.predicate
    reading = parse_query(db, text)
    as_of_ms = predicate.as_of_ms
    query = _expand_query(db, reading, as_of_ms) if reading.terms else _literal_query(text)
    for word in query:
        read_ahead(db, *_substring_query(word, predicate))
    readings = {term for word in query for term in word.readings}
    search = TextSearch("", max(MIN_CANDIDATES, 3 * depth // 2), postings_budget=POSTINGS_BUDGET)
    rows: dict[int, CandidateRow] = {}
    pieces: dict[int, dict[str, FuzzyMatch]] = {}
    for word in query:
        for row, match in _candidates_by_substring(db, word, max(200, 2 * depth), predicate):
            rows.setdefault(row.rid, row)
            pieces.setdefault(row.rid, {})[word.word] = match
    ctx.hydrate.ahead(db, list(rows)[:depth])
    if depth > 0:
        rows |= {row.rid: row for row in find_candidates(readings, search, ctx)}
    scored = _score(db, query, rows.values(), pieces)[: max(depth, 0)]
    best = [(row.rid, score, _describe_matches(db, row, match)) for row, score, match in scored]
    expanded = [word.word for word in query if word.hardly_known]
    note = f"words expanded: {', '.join(expanded)}" if expanded else "no word expanded"
    return SearchResult(load_matches(best, ctx), note, 1.0 if query else 0.0)


def _literal_query(text: str) -> list[FuzzyTerm]:
    """Search a query without a word, like ``=>`` or an emoji, literally."""
    piece = "".join(text.split()).replace("\0", "")[:MAX_WORD_LENGTH]
    return [FuzzyTerm(piece, "", 1.0, {}, hardly_known=True)] if piece else []


def _expand_query(db: Database, reading: ParsedQuery, as_of_ms: int | None) -> list[FuzzyTerm]:
    known = word_statistics(db, reading.index_terms, as_of_ms)
    _similar_ahead(db, reading, known)
    terms: dict[str, FuzzyTerm] = {}
    for unit in reading.terms:
        for word, term in zip(unit.words, unit.terms, strict=True):
            if term not in terms and len(terms) < MAX_TERMS:
                find_similar = partial(_similar_terms, db, term, as_of_ms)
                terms[term] = _expand_term(word, term, unit.joined, known, find_similar)
    return list(terms.values())


def _expand_term(
    word: str,
    term: str,
    joined: str,
    known: WordStatistics,
    find_similar: Callable[[], list[SimilarTerm]],
) -> FuzzyTerm:
    """Expand a word to similar terms. Its weight is the idf of the likeliest one."""
    readings = {term: 1.0} if known.frequencies[term] else {}
    if joined and known.frequencies[joined]:
        readings[joined] = 1.0
    hardly_known = _is_hardly_known(word, term, known)
    frequency = known.frequencies[term]
    if hardly_known and len(term) <= MAX_WORD_LENGTH:
        similar = find_similar()
        readings = {**{other: similarity for other, similarity, _ in similar}, **readings}
        if not frequency and similar:
            frequency = similar[0][2]
    return FuzzyTerm(word, term, bm25_idf(known.documents, frequency), readings, hardly_known)


def _is_hardly_known(word: str, term: str, known: WordStatistics) -> bool:
    return known.frequencies[term] <= RARE_DOCUMENTS and len(word) >= 3


def search_ahead(db: Database, text: str, predicate: Predicate) -> None:
    """Tell what `search_substring` will ask first."""
    reading = parse_query(db, text)
    known = word_statistics(db, reading.index_terms, predicate.as_of_ms)
    _similar_ahead(db, reading, known)
    for unit in reading.terms:
        for word, term in zip(unit.words, unit.terms, strict=True):
            rare = _is_hardly_known(word, term, known)
            fuzzy = FuzzyTerm(word, term, 1.0, {}, hardly_known=rare)
            read_ahead(db, *_substring_query(fuzzy, predicate))


def _similar_ahead(db: Database, reading: ParsedQuery, known: WordStatistics) -> None:
    """Tell at once what `_similar_terms` will ask for each word."""
    if not is_on_server(db):
        return
    pairs = ((w, t) for one in reading.terms for w, t in zip(one.words, one.terms, strict=True))
    for term in dict.fromkeys(term for word, term in pairs if _is_hardly_known(word, term, known)):
        if len(term) <= MAX_WORD_LENGTH:
            likely = as_table((*_parts(term), *_misspellings(term))) if len(term) > 2 else None
            read_ahead(db, *([(SELECT_TERMS, (likely,))] if likely else ()))
            read_ahead(db, *_trigram_query(term))


def _parts(term: str) -> set[str]:
    return {
        term[start:end]
        for start in range(len(term))
        for end in range(start + analysis.MIN_PART_LENGTH, len(term) + 1)
    }


def _misspellings(term: str) -> Iterable[str]:
    searched = analysis.max_edits(term) and len(term) <= MAX_EDIT_SEARCH_LENGTH
    return analysis.one_edit_variants(term) if searched else ()


def _similar_terms(db: Database, term: str, as_of_ms: int | None) -> list[SimilarTerm]:
    """Return the terms a word may be a misspelling or compound of."""
    parts = _parts(term)
    likely = {*parts, *_misspellings(term)}
    found = {t: df for t, df in document_frequencies(db, likely).items() if df}
    rows = [row for sql, values in _trigram_query(term) for row in db.execute(sql, values)]
    keep_terms(db, rows)
    found.update((t, df) for t, df, _ in rows)
    if as_of_ms is not None:
        known = word_statistics(db, found, as_of_ms).frequencies
        found = {t: df for t, df in known.items() if df}
    scored = ((other, analysis.spelling_similarity(term, other), df) for other, df in found.items())
    # A term that holds the word as a part is left to the memories' own trigrams.
    similar = [
        (other, similarity, df)
        for other, similarity, df in scored
        if other != term and (similarity > analysis.PART_SIMILARITY or other in parts)
    ]
    similar.sort(key=lambda found: (-found[1], -found[2], found[0]))
    return similar[:MAX_EXPANSIONS]


def _trigram_query(term: str) -> list[tuple[str, list[str]]]:
    """Return the query for terms that share trigrams with one; none where it has too few."""
    shared = analysis.trigrams(term)
    if not shared or not analysis.max_edits(term):
        return []
    lookups = " UNION ALL ".join(
        ["SELECT rowid AS tid FROM vocabulary WHERE vocabulary MATCH ?"] * len(shared)
    )
    sql = f"""
        SELECT t, df, tid FROM (SELECT tid, count(*) AS shared FROM ({lookups}) GROUP BY tid)
        JOIN term USING (tid) ORDER BY shared DESC, tid LIMIT {MAX_TRIGRAM_CANDIDATES}"""
    return [(sql, [quote_fts5(trigram) for trigram in shared])]


def _substring_query(query_term: FuzzyTerm, predicate: Predicate) -> list[tuple[str, Row]]:
    """Return the query for memories that hold a word's trigrams; none for a well-known word."""
    shared = analysis.trigrams(_piece(query_term))
    if not query_term.hardly_known or not shared:
        return []
    sql = f"""
        SELECT i.original, i.rid, i.id, i.text, i.about, i.length
        FROM grams AS g CROSS JOIN item AS i ON i.rid = g.rowid
        WHERE grams MATCH ? AND ({predicate.sql}) ORDER BY g.rowid DESC"""
    return [(sql, (" AND ".join(map(quote_fts5, shared)), *predicate.values))]


def _piece(query_term: FuzzyTerm) -> str:
    return unicodedata.normalize("NFC", query_term.word)[:MAX_WORD_LENGTH]


def _candidates_by_substring(
    db: Database, query_term: FuzzyTerm, remaining: int, predicate: Predicate
) -> Iterator[tuple[CandidateRow, FuzzyMatch]]:
    """Yield memories whose text or original contains the word, newest first."""
    cursor = (
        row for query in _substring_query(query_term, predicate) for row in db.execute(*query)
    )
    # Three letters are a single trigram: most of what it finds is inside other words.
    short = len(_piece(query_term)) < analysis.MIN_PART_LENGTH
    rows = islice(cursor, MAX_ROWS_READ) if short else cursor
    for original, *columns in rows:
        row = CandidateRow(*columns)
        match = analysis.best_substring_match(
            analysis.fold(query_term.word), analysis.fold(f"{row.text}\n{original or ''}")
        )
        if match is None:
            continue
        similarity, inside = match
        yield row, FuzzyMatch(similarity, inside=inside)
        remaining -= 1
        if not remaining:
            return


def _score(
    db: Database,
    query: Sequence[FuzzyTerm],
    rows: Iterable[CandidateRow],
    pieces: Mapping[int, Mapping[str, FuzzyMatch]],
) -> list[tuple[CandidateRow, float, list[tuple[FuzzyTerm, FuzzyMatch]]]]:
    """Score each memory by the share of the query it holds, with its matches; best first."""
    tokens = tokenizer(db)
    total = sum(word.weight for word in query)
    scored = []
    for row in rows:
        present = {*tokens(row.text), *tokens(row.about)}
        matches = [
            (word, found)
            for word in query
            if (found := _best_match(word, present, pieces.get(row.rid, {}).get(word.word)))
        ]
        score = (
            sum(word.weight * found.similarity for word, found in matches) / total
            if matches
            else 0.0
        )
        if score > 0.0:
            scored.append((row, score, matches))
    scored.sort(key=lambda found: (-found[1], found[0].id))
    return scored


def _best_match(
    query_term: FuzzyTerm, present: set[str], piece: FuzzyMatch | None
) -> FuzzyMatch | None:
    found = [
        FuzzyMatch(near, term) for term, near in query_term.readings.items() if term in present
    ]
    if piece is not None:
        found.append(piece)
    return max(found, key=lambda match: match.similarity, default=None)


def _describe_matches(
    db: Database, row: CandidateRow, matches: Sequence[tuple[FuzzyTerm, FuzzyMatch]]
) -> str:
    exact = [word.word for word, found in matches if found.similarity == 1.0]
    reasons = [f"matches {', '.join(exact)}"] if exact else []
    for word, found in matches:
        if found.similarity == 1.0:
            continue
        other = found.inside or _surface_form(db, row, found.term)
        if found.similarity > analysis.PART_SIMILARITY:
            reasons.append(f"misspelt: '{word.word}' read as '{other}'")
        elif found.inside:
            reasons.append(f"'{word.word}' is part of '{other}'")
        else:
            reasons.append(f"'{other}' is part of '{word.word}'")
    return "; ".join(reasons)


def _surface_form(db: Database, row: CandidateRow, term: str) -> str:
    """Return the word of a memory that the index stores as this term."""
    for text in (row.text, row.about):
        for word, found in words_and_terms(db, text):
            if found == term:
                return word
    return term
