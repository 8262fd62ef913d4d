"""Staged search: trigram pieces of words, and SimHash signatures.

Each word of the query is looked for as typed, also inside other words, ignoring
accents. If that finds nothing, with z and y swapped, which change places between
keyboards. If that finds nothing either, a long word is cut into overlapping windows of
half its length: words that share a stem, a compound's part or most of a misspelling
share one. The memories' trigrams find the candidates, their texts decide.

A signature is one row per revision, derived from the text alone, so an export has none.
Rows are read once and cached: rows added later have a higher row id and are read then,
and ``meta`` counts other changes to the table. Runs inside the caller's transaction.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import apsw

from bethink.core.named_tuple import NamedTuple
from bethink.core.words import bm25_idf
from bethink.ports import Match, SearchResult, TrigramSearch
from bethink.store.analysis import (
    PART_SIMILARITY,
    STOP_WORDS,
    best_substring_match,
    extra_index_words,
    fold,
    query_units,
    trigrams,
)
from bethink.store.sql.connection import Database, select
from bethink.store.sql.search.lexical import (
    MAX_QUERY_LENGTH,
    ItemLoader,
    rows_in_scope,
    word_statistics,
)
from bethink.store.sql.search.scope import Predicate
from bethink.store.sql.search.terms import tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MAX_QUERY_WORDS = 8
MIN_WORD_LENGTH = 3
MAX_WORD_LENGTH = 40
MIN_WINDOWED_LENGTH = 7  # letters; shorter words have no window that says anything
MAX_ROWS_PER_WORD = 500  # memories read for one word, the newest
MAX_MATCHING_TERMS = 32  # index words that hold a piece
SWAP_SIMILARITY = 0.9
MIN_COVERAGE = 0.5
_SWAP_Z_AND_Y = str.maketrans("zyZY", "yzYZ")


class _QueryWord(NamedTuple):
    piece: str
    weight: float


class _TextRow(NamedTuple):
    rid: int
    id: str
    text: str


class _PieceMatch(NamedTuple):
    worth: float
    why: str


def search_pieces(
    db: Database, search: TrigramSearch, predicate: Predicate, hydrate: ItemLoader
) -> SearchResult:
    """Search memories for pieces of the query's words; the score is the share, 0 to 1."""
    words = _query_words(db, search.text, predicate.as_of_ms)
    total = sum(word.weight for word in words)
    scores: dict[int, float] = {}
    reasons: dict[int, list[str]] = {}
    ids: dict[int, str] = {}
    for word in words:
        for row, match in _find_word(db, word.piece, search, predicate):
            ids[row.rid] = row.id
            scores[row.rid] = scores.get(row.rid, 0.0) + word.weight * match.worth / total
            reasons.setdefault(row.rid, []).append(match.why)
    passing = (rid for rid, score in scores.items() if score >= search.min_share)
    best = sorted(passing, key=lambda rid: (-scores[rid], ids[rid]))[: max(search.depth, 0)]
    items = hydrate(db, best)
    matches = tuple(
        Match(items[rid], scores[rid], "; ".join(reasons[rid])) for rid in best if rid in items
    )
    where = "originals" if search.original else "texts"
    return SearchResult(
        matches, f"{len(words)} words searched in the {where}", 1.0 if words else 0.0
    )


def _query_words(db: Database, text: str, as_of_ms: int | None) -> list[_QueryWord]:
    """Return the first few words to look for, each weighted by its rarest part's idf."""
    tokens = tokenizer(db)
    clean = text[:MAX_QUERY_LENGTH].replace("\0", " ").encode("utf-8", "ignore").decode()
    units = [unit for unit in query_units(clean) if not unit.common]
    terms = {term for unit in units for word in unit.words for term in tokens(word)}
    known = word_statistics(db, terms, as_of_ms)
    found: dict[str, _QueryWord] = {}
    for unit in units:
        piece = fold(unit.shown)[:MAX_WORD_LENGTH]
        if len(piece) >= MIN_WORD_LENGTH and len(found) < MAX_QUERY_WORDS:
            counts = [known.frequencies[term] for word in unit.words for term in tokens(word)]
            found.setdefault(
                piece, _QueryWord(piece, bm25_idf(known.documents, min(counts, default=0)))
            )
    return list(found.values())


def _find_word(
    db: Database, piece: str, search: TrigramSearch, predicate: Predicate
) -> list[tuple[_TextRow, _PieceMatch]]:
    """Return the memories that hold a word, by the first method that finds any."""
    whole = [
        (row, _PieceMatch(worth, _describe_match(piece, inside)))
        for row, worth, inside in _substring_matches(db, piece, search, predicate)
    ]
    swapped = piece.translate(_SWAP_Z_AND_Y)
    if whole or swapped == piece:
        return whole or _window_matches(db, piece, search, predicate)
    other = [
        (
            row,
            _PieceMatch(SWAP_SIMILARITY * worth, f"'{piece}' read as '{inside}', z and y swapped"),
        )
        for row, worth, inside in _substring_matches(db, swapped, search, predicate)
    ]
    return other or _window_matches(db, piece, search, predicate)


def _describe_match(piece: str, inside: str) -> str:
    return f"contains {piece}" if inside == piece else f"'{piece}' is part of '{inside}'"


def _substring_matches(
    db: Database, piece: str, search: TrigramSearch, predicate: Predicate
) -> Iterator[tuple[_TextRow, float, str]]:
    for row in _candidate_rows(db, [piece], search, predicate):
        match = best_substring_match(piece, fold(row.text))
        if match is not None:
            yield (row, *match)


def _window_matches(
    db: Database, piece: str, search: TrigramSearch, predicate: Predicate
) -> list[tuple[_TextRow, _PieceMatch]]:
    windows = word_windows(piece)
    found = []
    for row in _candidate_rows(db, windows, search, predicate) if windows else ():
        # Of words that hold as much the shortest: it has the least besides.
        covered, _, word = max(
            (
                (_coverage(piece, windows, word), -len(word), word)
                for word in _split_words(row.text)
            ),
            default=(0.0, 0, ""),
        )
        if covered:
            found.append(
                (row, _PieceMatch(PART_SIMILARITY * covered, f"'{piece}' is similar to '{word}'"))
            )
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


def _split_words(text: str) -> set[str]:
    words = "".join(char if char.isalnum() else " " for char in fold(text)).split()
    return set(words)


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


def _candidate_rows(
    db: Database, pieces: Sequence[str], search: TrigramSearch, predicate: Predicate
) -> Iterator[_TextRow]:
    """Yield memories in scope that may hold one of the pieces, newest first."""
    trigram_query = " OR ".join(
        f"({' AND '.join(map(_quote_fts5, trigrams(piece)))})" for piece in pieces
    )
    columns = "i.original" if search.original else "i.text || char(10) || i.about"
    has_original = "AND i.original IS NOT NULL" if search.original else ""
    sources = ["SELECT rowid FROM grams WHERE grams MATCH ?"]
    values = [trigram_query]
    about_query = "" if search.original else _about_query(db, pieces)
    if about_query:
        sources.append("SELECT rowid FROM words WHERE words MATCH ?")
        values.append(about_query)
    cursor = db.execute(
        f"""
        SELECT i.rid, i.id, {columns} FROM ({" UNION ".join(sources)}) AS g
        CROSS JOIN item AS i ON i.rid = g.rowid
        WHERE ({predicate.sql}) {has_original} ORDER BY i.rid DESC LIMIT {MAX_ROWS_PER_WORD}""",
        (*values, *predicate.values),
    )
    return map(_TextRow._make, cursor)


def _about_query(db: Database, pieces: Iterable[str]) -> str:
    """Return an FTS5 query for the ``about`` words (tags, topic, names) holding a piece.

    The trigram index has only texts, but the vocabulary has its own.
    """
    tokens = tokenizer(db)
    terms: dict[str, None] = {}
    for piece in pieces:
        matching = db.execute(
            "SELECT term.t FROM vocabulary AS v CROSS JOIN term ON term.tid = v.rowid"
            f" WHERE vocabulary MATCH ? LIMIT {MAX_MATCHING_TERMS}",
            (" AND ".join(map(_quote_fts5, trigrams(piece))),),
        )
        terms.update((term, None) for (term,) in matching if piece in term)
    # An e brings the stemmer back to stems that it would cut once more.
    spelled = (next((s for s in (t, f"{t}e") if tokens(s) == [t]), None) for t in terms)
    known = [_quote_fts5(word) for word in islice(filter(None, spelled), MAX_MATCHING_TERMS)]
    return f"about : ({' OR '.join(known)})" if known else ""


def _quote_fts5(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


_ADD_SIGNATURE = "INSERT OR REPLACE INTO signature (rid, bits, counts) VALUES (?, ?, ?)"
_COPY_SIGNATURE = (
    "INSERT INTO signature (rid, bits, counts) SELECT ?, bits, counts FROM signature WHERE rid = ?"
)
_SELECT_MISSING = (
    "SELECT i.rid, i.text FROM item AS i LEFT JOIN signature AS s USING (rid) WHERE s.rid IS NULL"
)
_COUNT_ORPHANED = "SELECT count(*) FROM signature WHERE rid NOT IN (SELECT rid FROM item)"
_SELECT_ALL = (
    "SELECT i.rid, i.text, s.bits, s.counts FROM item AS i JOIN signature AS s USING (rid)"
)
_SELECT_CHANGES = "SELECT value FROM meta WHERE name = 'signature_changes'"
_BUMP_CHANGES = """
    INSERT INTO meta (name, value) VALUES ('signature_changes', '1') ON CONFLICT (name)
    DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)
"""
_BATCH = 500


class SignatureQuery(NamedTuple):
    """A signature search: a text, the maximum number of results, the minimum similarity."""

    text: str
    depth: int
    min_similarity: float


def content_terms(text: str, tokens: Sequence[str], db: Database) -> list[str]:
    """Return the content terms of a text, each once; ``tokens`` are all its index terms.

    Scripts without spaces add their bigrams, accented words their plain forms.
    """
    if not text.isascii():
        tokens = (*tokens, *tokenizer(db)(extra_index_words(text)))
    stop_terms = _stop_terms()
    return [term for term in dict.fromkeys(tokens) if term not in stop_terms]


@lru_cache(maxsize=1)
def _stop_terms() -> frozenset[str]:
    """Return the stop words as index terms."""
    db = apsw.Connection(":memory:")
    try:
        return STOP_WORDS.union(tokenizer(db)(" ".join(sorted(STOP_WORDS))))
    finally:
        db.close()


def add_signatures(db: Database, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Store the signatures of new revisions, given by row id and content terms."""
    from bethink.store.signature import sign_texts  # NumPy

    signatures = sign_texts([terms for _, terms in rows])
    db.executemany(
        _ADD_SIGNATURE,
        [
            (rid, signature.bits.tobytes(), _pack_counts(signature.counts))
            for (rid, _), signature in zip(rows, signatures, strict=True)
        ],
    )


def copy_signature(db: Database, rid: int, old_rid: int) -> None:
    """Copy the signatures of an earlier revision with the same text."""
    db.execute(_COPY_SIGNATURE, (rid, old_rid))


def remove_signatures(db: Database, rids: Iterable[int]) -> int:
    """Remove signatures; return how many there were."""
    before = db.total_changes()
    db.executemany("DELETE FROM signature WHERE rid = ?", [(rid,) for rid in rids])
    removed = db.total_changes() - before
    if removed:
        db.execute(_BUMP_CHANGES)
    return removed


def sign_missing(db: Database, limit: int) -> int:
    """Sign revisions that have no signature, ``limit`` at most; return how many."""
    rows = select(db, f"{_SELECT_MISSING} ORDER BY i.rid LIMIT ?", (limit,))
    if rows:
        _sign_texts(db, rows)
        db.execute(_BUMP_CHANGES)
    return len(rows)


def rebuild_signatures(db: Database) -> None:
    """Rebuild all signatures from the texts."""
    db.execute("DELETE FROM signature")
    while sign_missing(db, _BATCH):
        pass
    db.execute(_BUMP_CHANGES)


def verify_signatures(db: Database) -> list[str]:
    """Return the problems of the signatures, as messages."""
    from bethink.store.signature import sign_texts  # NumPy

    tokens = tokenizer(db)
    problems = []
    missing = db.execute(f"SELECT count(*) FROM ({_SELECT_MISSING})").get
    if missing:
        problems.append(f"{missing:,} revisions have no signature: bethink reindex adds them")
    if orphaned := db.execute(_COUNT_ORPHANED).get:
        problems.append(f"{orphaned:,} signatures belong to no revision")
    wrong = 0
    cursor = db.execute(_SELECT_ALL)
    while rows := list(islice(cursor, _BATCH)):
        expected = sign_texts([content_terms(row[1], tokens(row[1]), db) for row in rows])
        for (_, _, bits, counts), signature in zip(rows, expected, strict=True):
            wrong += (signature.bits.tobytes(), _pack_counts(signature.counts)) != (bits, counts)
    if wrong:
        problems.append(f"{wrong:,} signatures do not match their text")
    return problems


def _sign_texts(db: Database, rows: Sequence[tuple[Any, ...]]) -> None:
    tokens = tokenizer(db)
    add_signatures(db, [(rid, content_terms(text, tokens(text), db)) for rid, text in rows])


def _pack_counts(counts: Sequence[int]) -> bytes:
    """Pack word counts, two bytes each; a text has fewer than that can count."""
    return b"".join(count.to_bytes(2, "little") for count in counts)


class _CachedSignatures(NamedTuple):
    """All signatures up to a row id, as of so many changes to the table."""

    changes: int
    last: int
    rids: NDArray[np.int64]
    counts: NDArray[np.int64]
    bits: NDArray[np.uint64]


class SignatureIndex:
    """Search the signatures of one store; what was read is cached for the next search."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: _CachedSignatures | None = None
        self._missing: tuple[object, int] = (None, 0)

    def search(
        self, db: Database, query: SignatureQuery, predicate: Predicate, hydrate: ItemLoader
    ) -> SearchResult:
        """Return memories in scope with similar words, best first, ties by id."""
        terms = content_terms(query.text, tokenizer(db)(query.text), db)
        if not terms or query.depth < 1:
            return SearchResult((), "the question has no content term")
        signatures = self._read(db)
        near = _similar_rows(signatures, terms, query.min_similarity)
        visible = rows_in_scope(db, array("q", near), predicate)
        ranked = sorted((-near[rid], visible[rid], rid) for rid in visible)[: query.depth]
        items = hydrate(db, [rid for _, _, rid in ranked])
        matches = tuple(
            Match(items[rid], -negative, f"signature {-negative:.0%} similar")
            for negative, _, rid in ranked
            if rid in items
        )
        note = f"{len(signatures.rids):,} signatures compared"
        if missing := self._count_missing(db, signatures):
            note += f"; {missing:,} memories have no signature yet: bethink reindex adds them"
        return SearchResult(matches, note, 1.0)

    def _read(self, db: Database) -> _CachedSignatures:
        changes = int(db.execute(_SELECT_CHANGES).get or 0)
        with self._lock:
            cached = self._cached
        if cached is None or cached.changes != changes:
            cached = _empty_cache(changes)
        rows = select(
            db, "SELECT rid, bits, counts FROM signature WHERE rid > ? ORDER BY rid", (cached.last,)
        )
        if rows:
            cached = _append_rows(cached, rows)
            # What a write has not committed may be undone, and its row ids used again.
            if db.txn_state("main") != apsw.SQLITE_TXN_WRITE:
                with self._lock:
                    self._cached = cached
        return cached

    def _count_missing(self, db: Database, signatures: _CachedSignatures) -> int:
        state = (signatures.changes, signatures.last, db.execute("SELECT max(rid) FROM item").get)
        if self._missing[0] != state:
            sql = f"SELECT count(*) FROM ({_SELECT_MISSING} AND i.live_to IS NULL)"
            self._missing = (state, db.execute(sql).get)
        return self._missing[1]


def _empty_cache(changes: int) -> _CachedSignatures:
    import numpy as np  # start-up time: most recalls ask no signatures

    from bethink.store.signature import SIGNATURE_BYTES
    from bethink.store.sql.search.vector_index import to_bit_columns

    none = np.empty(0, np.int64)
    return _CachedSignatures(
        changes, -1, none, none, to_bit_columns(np.empty((0, SIGNATURE_BYTES), np.uint8))
    )


def _append_rows(cached: _CachedSignatures, rows: Sequence[tuple[Any, ...]]) -> _CachedSignatures:
    import numpy as np  # as above

    from bethink.store.signature import SIGNATURE_BYTES
    from bethink.store.sql.search.vector_index import to_bit_columns

    # Rot may have cut one.
    rows = [row for row in rows if len(row[1]) == len(row[2]) // 2 * SIGNATURE_BYTES]
    if not rows:
        return cached
    bits = np.frombuffer(b"".join(row[1] for row in rows), np.uint8).reshape(-1, SIGNATURE_BYTES)
    counts = np.frombuffer(b"".join(row[2] for row in rows), "<u2").astype(np.int64)
    rows_per_item = np.array([len(row[1]) // SIGNATURE_BYTES for row in rows])
    rids = np.repeat(np.array([row[0] for row in rows], np.int64), rows_per_item)
    return _CachedSignatures(
        cached.changes,
        rows[-1][0],
        np.concatenate([cached.rids, rids]),
        np.concatenate([cached.counts, counts]),
        np.concatenate([cached.bits, to_bit_columns(bits)], axis=1),
    )


def _similar_rows(
    signatures: _CachedSignatures, terms: Sequence[str], min_similarity: float
) -> dict[int, float]:
    """Return rows that are similar enough, each with its best signature's similarity."""
    import numpy as np  # as above

    from bethink.store.signature import query_sums, signature_similarity

    if not len(signatures.rids):
        return {}
    agreement = _agreement(query_sums(terms).astype(np.float32), signatures.bits)
    similarities = signature_similarity(agreement, signatures.counts, len(terms))
    near: dict[int, float] = {}
    for position in np.flatnonzero(similarities >= min_similarity).tolist():
        rid, value = int(signatures.rids[position]), float(similarities[position])
        near[rid] = max(value, near.get(rid, 0.0))
    return near


def _agreement(question: NDArray[np.float32], signs: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the cosine of a query's sums, four bits a number, with each column of signs."""
    import numpy as np  # as above

    from bethink.store.signature import SIGNATURE_BITS
    from bethink.store.sql.search import vector_index

    dots = np.zeros(signs.shape[1])
    levels = np.zeros(SIGNATURE_BITS)
    for weight_bit, plane in enumerate(reversed(vector_index.query_bit_planes(question))):
        dots += 2**weight_bit * (SIGNATURE_BITS / 2 - vector_index.hamming_distances(plane, signs))
        levels += 2**weight_bit * (np.unpackbits(plane) - 0.5)
    agreement: NDArray[np.float64] = dots / np.sqrt(SIGNATURE_BITS * float(levels @ levels))
    return agreement
