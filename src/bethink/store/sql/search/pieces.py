"""Search by pieces of words: trigrams, letters that keyboards swap, windows of long words.

Each word of the query is looked for as typed, also inside other words, ignoring
accents. If that finds nothing, with z and y swapped, which change places between
keyboards. If that finds nothing either, a long word is cut into overlapping windows of
half its length: words that share a stem, a compound's part or most of a misspelling
share one. The memories' trigrams find the candidates, their texts decide.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import bm25_idf
from bethink.ports import SearchResult, TrigramSearch
from bethink.store.analysis import (
    MIN_PART_LENGTH,
    PART_SIMILARITY,
    best_substring_match,
    fold,
    query_units,
    trigrams,
)
from bethink.store.sql.connection import Database, Row, as_table, is_on_server, read_ahead
from bethink.store.sql.search.lexical import (
    MAX_QUERY_LENGTH,
    SearchContext,
    load_matches,
    word_statistics,
)
from bethink.store.sql.search.terms import quote_fts5, tokenizer

MAX_QUERY_WORDS = 8
MIN_WORD_LENGTH = 3
MAX_WORD_LENGTH = 40
MIN_WINDOWED_LENGTH = 7  # letters; shorter words have no window that says anything
MAX_ROWS_PER_WORD = 500  # memories read for one word, the newest
MAX_MATCHING_TERMS = 32  # index words that hold a piece
SWAP_SIMILARITY = 0.9
MIN_COVERAGE = 0.5
_WORD = lazy_pattern(r"[^\W_]+")
_SWAP_Z_AND_Y = str.maketrans("zyZY", "yzYZ")
_TERMS_WITH = f"""
    SELECT term.tid, term.t FROM vocabulary AS v CROSS JOIN term ON term.tid = v.rowid
    WHERE vocabulary MATCH ? ORDER BY v.rowid LIMIT {MAX_MATCHING_TERMS}
"""


class _TextRow(NamedTuple):
    rid: int
    id: str
    text: str


_Matches = list[tuple[_TextRow, float, str]]  # memories, each with its worth and why
_Find = Callable[[str], Iterator[tuple[_TextRow, float, str]]]


def search_pieces(search: TrigramSearch, ctx: SearchContext) -> SearchResult:
    """Search memories for pieces of the query's words; the score is the share, 0 to 1."""
    db = ctx.db
    words = _query_words(db, search.text, ctx.predicate.as_of_ms)
    total = sum(words.values())
    is_alone = len(search.text.split()) == 1
    scores: dict[int, float] = {}
    reasons: dict[int, list[str]] = {}
    ids: dict[int, str] = {}
    find = partial(_substring_matches, search=search, ctx=ctx, alone=is_alone)
    if is_on_server(db):
        read_ahead(db, *[_query([word], search, ctx) for word in words])
        left = _ways(word for word in words if not any(find(word)))
        read_ahead(db, *[_query(pieces, search, ctx) for pieces in left])
    for piece, weight in words.items():
        matches = _find_word(piece, find) or _window_matches(piece, search, ctx)
        for row, worth, why in matches:
            ids[row.rid] = row.id
            scores[row.rid] = scores.get(row.rid, 0.0) + weight * worth / total
            reasons.setdefault(row.rid, []).append(why)
    passing = (rid for rid, score in scores.items() if score >= search.min_share)
    best = sorted(passing, key=lambda rid: (-scores[rid], ids[rid]))[: max(search.depth, 0)]
    found = [(rid, scores[rid], "; ".join(reasons[rid])) for rid in best]
    note = f"{len(words)} words searched in the {'originals' if search.original else 'texts'}"
    return SearchResult(load_matches(found, ctx), note, 1.0 if words else 0.0)


def search_ahead(search: TrigramSearch, ctx: SearchContext) -> None:
    """Tell what `search_pieces` will ask first: index words; of originals, which are few, all."""
    for pieces in _ways(_query_words(ctx.db, search.text, ctx.predicate.as_of_ms)):
        by_term = ((_TERMS_WITH, (_holds(piece),)) for piece in pieces)
        read_ahead(ctx.db, *([_query(pieces, search, ctx)] if search.original else by_term))


def _ways(words: Iterable[str]) -> list[list[str]]:
    """Return the pieces by which each method looks for each of the words."""
    ways = (([word], [word.translate(_SWAP_Z_AND_Y)], word_windows(word)) for word in words)
    return [pieces for way in ways for pieces in way if pieces]


def _query_words(db: Database, text: str, as_of_ms: int | None) -> dict[str, float]:
    """Return the first few words to look for, each weighted by its rarest part's idf."""
    tokens = tokenizer(db)
    clean = text[:MAX_QUERY_LENGTH].replace("\0", " ").encode("utf-8", "ignore").decode()
    units = [unit for unit in query_units(clean) if not unit.common]
    terms = {term for unit in units for word in unit.words for term in tokens(word)}
    known = word_statistics(db, terms, as_of_ms)
    found: dict[str, float] = {}
    for unit in units:
        piece = fold(unit.shown)[:MAX_WORD_LENGTH]
        if len(piece) >= MIN_WORD_LENGTH and len(found) < MAX_QUERY_WORDS:
            counts = [known.frequencies[term] for word in unit.words for term in tokens(word)]
            found.setdefault(piece, bm25_idf(known.documents, min(counts, default=0)))
    return found


def _find_word(piece: str, find: _Find) -> _Matches:
    """Return the memories that hold a word as typed or, if none does, with z and y swapped."""
    found: _Matches = [
        (row, worth, f"contains {piece}" if inside == piece else f"'{piece}' is part of '{inside}'")
        for row, worth, inside in find(piece)
    ]
    swapped = piece.translate(_SWAP_Z_AND_Y)
    if not found and swapped != piece:
        found = [
            (row, SWAP_SIMILARITY * worth, f"'{piece}' read as '{inside}', z and y swapped")
            for row, worth, inside in find(swapped)
        ]
    return found


def _substring_matches(
    piece: str, search: TrigramSearch, ctx: SearchContext, *, alone: bool
) -> Iterator[tuple[_TextRow, float, str]]:
    """Yield memories with a word that holds a piece; a question of one word needs no more."""
    shortest, least = (MIN_WORD_LENGTH, search.min_share) if alone else (MIN_PART_LENGTH, 0.0)
    for row in map(_TextRow._make, ctx.db.execute(*_query([piece], search, ctx))):
        match = best_substring_match(piece, fold(row.text), shortest)
        if match is not None:
            yield row, max(match[0], least), match[1]


def _window_matches(piece: str, search: TrigramSearch, ctx: SearchContext) -> _Matches:
    windows = word_windows(piece)
    found = []
    query = _query(windows, search, ctx) if windows else None
    for row in map(_TextRow._make, ctx.db.execute(*query) if query else ()):
        # Of words that hold as much the shortest: it has the least besides.
        words = set(_WORD.findall(fold(row.text)))
        measured = ((_coverage(piece, windows, word), -len(word), word) for word in words)
        covered, _, word = max(measured, default=(0.0, 0, ""))
        if covered:
            found.append((row, PART_SIMILARITY * covered, f"'{piece}' is similar to '{word}'"))
    return found


def word_windows(word: str) -> list[str]:
    """Split a word into overlapping windows of half its length, at least four letters.

    Steps are half a window; a short word has none.
    """
    if len(word) < MIN_WINDOWED_LENGTH:
        return []
    length = max(len(word) // 2, 4)
    last = len(word) - length
    starts = [*range(0, last, max(length // 2, 1)), last]
    return [word[at : at + length] for at in starts]


def _coverage(query_word: str, windows: Sequence[str], word: str) -> float:
    """Return the share of the query word that a memory's word covers.

    By the common prefix or, without one, by the windows it holds. A suffix alone says
    little, so without a common prefix more than half must be covered.
    """
    letters: set[int] = set()
    for window in windows:
        if window in word:
            at = query_word.find(window)
            letters.update(range(at, at + len(window)))
    if not letters:
        return 0.0
    prefix = next(
        (at for at, (one, other) in enumerate(zip(query_word, word, strict=False)) if one != other),
        min(len(query_word), len(word)),
    )
    if prefix >= len(windows[0]):
        return max(len(letters), prefix) / max(len(query_word), len(word))
    share = len(letters) / len(query_word)
    return share if share > MIN_COVERAGE else 0.0


def _query(pieces: Sequence[str], search: TrigramSearch, ctx: SearchContext) -> tuple[str, Row]:
    """Return the query for memories in scope that may hold one of the pieces, newest first."""
    trigram_query = " OR ".join(f"({_holds(piece)})" for piece in pieces)
    columns = "i.original" if search.original else "i.text || '\n' || i.about"
    has_original = "AND i.original IS NOT NULL" if search.original else ""
    sources, values = ["SELECT rowid FROM grams WHERE grams MATCH ?"], [trigram_query]
    rows = () if search.original else _rows_with_terms(ctx.db, pieces)
    if len(rows):
        sources.append("SELECT value FROM carray(?)")
        values.append(as_table(rows))
    sql = f"""
        SELECT i.rid, i.id, {columns} FROM ({" UNION ".join(sources)}) AS g
        CROSS JOIN item AS i ON i.rid = g.rowid
        WHERE ({ctx.predicate.sql}) {has_original} ORDER BY i.rid DESC LIMIT {MAX_ROWS_PER_WORD}"""
    return sql, (*values, *ctx.predicate.values)


def _holds(piece: str) -> str:
    return " AND ".join(map(quote_fts5, trigrams(piece)))


def _rows_with_terms(db: Database, pieces: Iterable[str]) -> Sequence[int]:
    """Return the rows with an index word that holds a piece.

    The trigram index has only texts, not what stands beside them (tags, topic, names), but the
    vocabulary has its own.
    """
    found: dict[int, None] = {}
    for piece in pieces:
        matching = db.execute(_TERMS_WITH, (_holds(piece),))
        found.update((tid, None) for tid, term in matching if piece in term)
    if not found:
        return ()
    from bethink.store.sql.search.postings import rows_by_term  # NumPy

    rows = rows_by_term(db, list(found)[:MAX_MATCHING_TERMS]).values()
    return array("q", {rid for one in rows for rid in one.tolist()})
