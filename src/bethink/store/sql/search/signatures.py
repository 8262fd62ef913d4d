"""Search by SimHash signatures, which are made where they are searched for.

A signature is one row per revision, derived from the text alone, so an export has none. A
write makes none: who searches asks for those of new revisions first. Rows are read once and
cached: rows added later have a higher row id and are read then, and ``meta`` counts other
changes to the table. Runs inside the caller's transaction.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import islice
from struct import pack

import apsw

from bethink.core.arrays import NDArray, np
from bethink.core.named_tuple import NamedTuple
from bethink.ports import SearchResult
from bethink.store.analysis import STOP_WORDS, extra_index_words
from bethink.store.sql.connection import Database, select
from bethink.store.sql.search.lexical import ItemLoader, load_matches, rows_in_scope
from bethink.store.sql.search.scope import Predicate
from bethink.store.sql.search.terms import tokenizer
from bethink.store.sql.state_cache import CachePart, StateCache

_ADD_SIGNATURE = "INSERT OR REPLACE INTO signature (rid, bits, counts) VALUES (?, ?, ?)"
_SELECT_MISSING = (
    "SELECT i.rid, i.text FROM item AS i LEFT JOIN signature AS s USING (rid) WHERE s.rid IS NULL"
)
_SELECT_NEW = """
    SELECT i.rid, i.text FROM item AS i
    WHERE i.rid > coalesce((SELECT max(rid) FROM signature), -1)
"""
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


def remove_signatures(db: Database, rids: Iterable[int]) -> int:
    """Remove signatures; return how many there were."""
    before = db.total_changes()
    db.executemany("DELETE FROM signature WHERE rid = ?", [(rid,) for rid in rids])
    removed = db.total_changes() - before
    if removed:
        db.execute(_BUMP_CHANGES)
    return removed


def has_new(db: Database) -> bool:
    """Whether there are revisions after the last one that has a signature."""
    return bool(db.execute(f"SELECT EXISTS ({_SELECT_NEW})").get)


def sign_missing(db: Database, limit: int, *, only_new: bool = False) -> int:
    """Sign revisions that have no signature, ``limit`` at most; return how many.

    ``only_new`` ones come after the last that has one.
    """
    found = _SELECT_NEW if only_new else _SELECT_MISSING
    rows = select(db, f"{found} ORDER BY i.rid LIMIT ?", (limit,))
    signatures = _sign(db, [text for _, text in rows])
    new = [(rid, *signature) for (rid, _), signature in zip(rows, signatures, strict=True)]
    db.executemany(_ADD_SIGNATURE, new)
    if rows and not only_new:
        db.execute(_BUMP_CHANGES)
    return len(rows)


def rebuild_signatures(db: Database) -> None:
    """Rebuild all signatures from the texts, where there are any."""
    if remove_signatures(db, [rid for (rid,) in select(db, "SELECT rid FROM signature")]):
        while sign_missing(db, _BATCH):
            pass


def verify_signatures(db: Database) -> list[str]:
    """Return the problems of the signatures, as messages."""
    problems = []
    if orphaned := db.execute(_COUNT_ORPHANED).get:
        problems.append(f"{orphaned:,} signatures belong to no revision")
    wrong = 0
    cursor = db.execute(_SELECT_ALL)
    while rows := list(islice(cursor, _BATCH)):
        expected = _sign(db, [text for _, text, _, _ in rows])
        wrong += sum(one[2:] != signed for one, signed in zip(rows, expected, strict=True))
    if wrong:
        problems.append(f"{wrong:,} signatures do not match their text")
    return problems


def _sign(db: Database, texts: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the bits and the word counts of texts, as they are stored."""
    from bethink.store.signature import sign_texts  # NumPy

    tokens = tokenizer(db)
    signed = sign_texts([content_terms(text, tokens(text), db) for text in texts])
    # Two bytes a count: a text has fewer words than that can count.
    return [(bits.tobytes(), pack(f"<{len(counts)}H", *counts)) for bits, counts in signed]


class _CachedSignatures(NamedTuple):
    """All signatures up to a row id, as of so many changes to the table."""

    changes: int
    last: int
    rids: NDArray[np.int64]
    counts: NDArray[np.int64]
    bits: NDArray[np.uint64]


class SignatureIndex:
    """Search the signatures of one store; what was read is cached for the next search."""

    def __init__(self, cache: StateCache) -> None:
        self._cache = cache

    def search(  # noqa: PLR0917 - the port's parameters
        self,
        db: Database,
        text: str,
        depth: int,
        min_similarity: float,
        predicate: Predicate,
        hydrate: ItemLoader,
    ) -> SearchResult:
        """Return memories in scope with similar words, best first, ties by id."""
        terms = content_terms(text, tokenizer(db)(text), db)
        if not terms or depth < 1:
            return SearchResult((), "the question has no content term")
        signatures = self._read(db)
        near = _similar_rows(signatures, terms, min_similarity)
        visible = rows_in_scope(db, array("q", near), predicate)
        ranked = sorted((-near[rid], visible[rid], rid) for rid in visible)[:depth]
        found = [(rid, -low, f"signature {-low:.0%} similar") for low, _, rid in ranked]
        note = f"{len(signatures.rids):,} signatures compared"
        if missing := self._count_missing(db, signatures):
            note += f"; {missing:,} memories have no signature yet: bethink reindex adds them"
        return SearchResult(load_matches(db, found, hydrate), note, 1.0)

    def _read(self, db: Database) -> _CachedSignatures:
        """Return all signatures; of those that are cached only later rows are read."""
        changes = int(db.execute(_SELECT_CHANGES).get or 0)
        state = (changes, db.execute("SELECT max(rid) FROM signature").get)
        before = self._cache.latest(db, _SIGNATURES)
        if before is None or before.changes != changes:
            before = _empty_cache(changes)
        read = partial(_read_later, db, before)
        return self._cache.get(db, _SIGNATURES, read, state=state)

    def _count_missing(self, db: Database, signatures: _CachedSignatures) -> int:
        sql = f"SELECT count(*) FROM ({_SELECT_MISSING} AND i.live_to IS NULL)"
        state = (signatures.changes, signatures.last, db.execute("SELECT max(rid) FROM item").get)
        return self._cache.get(db, _MISSING, lambda: int(db.execute(sql).get), state=state)


_SIGNATURES, _MISSING = CachePart[_CachedSignatures](), CachePart[int]()


def _empty_cache(changes: int) -> _CachedSignatures:
    from bethink.store.signature import SIGNATURE_BYTES
    from bethink.store.sql.search.vector_index import to_bit_columns

    none = np.empty(0, np.int64)
    return _CachedSignatures(
        changes, -1, none, none, to_bit_columns(np.empty((0, SIGNATURE_BYTES), np.uint8))
    )


def _read_later(db: Database, cached: _CachedSignatures) -> _CachedSignatures:
    from bethink.store.signature import SIGNATURE_BYTES
    from bethink.store.sql.search.vector_index import to_bit_columns

    sql = "SELECT rid, bits, counts FROM signature WHERE rid > ? ORDER BY rid"
    rows = select(db, sql, (cached.last,))
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
    from bethink.store.signature import SIGNATURE_BITS
    from bethink.store.sql.search import vector_index

    dots = np.zeros(signs.shape[1])
    levels = np.zeros(SIGNATURE_BITS)
    for weight_bit, plane in enumerate(reversed(vector_index.query_bit_planes(question))):
        dots += 2**weight_bit * (SIGNATURE_BITS / 2 - vector_index.hamming_distances(plane, signs))
        levels += 2**weight_bit * (np.unpackbits(plane) - 0.5)
    agreement: NDArray[np.float64] = dots / np.sqrt(SIGNATURE_BITS * float(levels @ levels))
    return agreement
