"""The word index: kept in step with the memories, verified and rebuilt.

Posting lists to rank by (`postings`), two contentless FTS5 tables of trigrams (``grams``,
``vocabulary``), and two counts: how many memories hold a term (``term.df``), and how many
memories and index words there are (``meta``). Everything here runs inside the caller's
transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from struct import Struct

import apsw

from bethink.core.named_tuple import NamedTuple
from bethink.store.sql.connection import Database, as_table, select
from bethink.store.sql.damage import MAX_TERM_ID
from bethink.store.sql.dialect import batch
from bethink.store.sql.search.lexical import SELECT_TERMS, word_statistics
from bethink.store.sql.search.terms import BLOCK_ROWS, MAX_TERM_LENGTH, tokenizer

_INDEX_TABLES = ("grams", "vocabulary")
# Deleting one row costs as much as merging this many; measured with 100,000 memories.
_BULK_SHARE = 3_000


class IndexRow(NamedTuple):
    """The columns of a memory's row that the word index takes, exactly as stored."""

    rid: int
    text: str
    about: str
    original: str | None


class RowTerms(NamedTuple):
    """The index terms of a memory's row."""

    text: list[str]
    about: list[str]

    @property
    def length(self) -> int:
        """How many there are: the row's ``length`` column."""
        return len(self.text) + len(self.about)

    @property
    def counted(self) -> set[str]:
        """Those that have a row of ``term``."""
        return {term for term in (*self.text, *self.about) if len(term) <= MAX_TERM_LENGTH}


def split_row(db: Database, row: IndexRow) -> RowTerms:
    """Split the row's texts into index terms."""
    tokens = tokenizer(db)
    return RowTerms(tokens(row.text), tokens(row.about))


def index_rows(db: Database, rows: Sequence[IndexRow], known: Sequence[RowTerms] = ()) -> None:
    """Add memories to the word index; ``known`` are their index terms, if at hand."""
    db.executemany(
        "INSERT INTO grams (rowid, text, original) VALUES (?, ?, ?)",
        ((row.rid, row.text, row.original) for row in rows),
    )
    split = known or [split_row(db, row) for row in rows]
    frequencies, length = _count_terms(split)
    tids = _add_terms(db, frequencies)
    _add_to_counters(db, documents=sum(row.text != "" for row in rows), total_length=length)
    _add_postings(
        db, [(row.rid, _encode_terms(terms, tids)) for row, terms in zip(rows, split, strict=True)]
    )


def unindex_rows(db: Database, rows: Sequence[IndexRow]) -> None:
    """Remove memories from the word index, with all words that only they held.

    The rows must be those given to `index_rows`: FTS5 finds what to remove by the text.
    """
    _delete_from_indexes(db, rows)
    split = [split_row(db, row) for row in rows]
    frequencies, length = _count_terms(split)
    _remove_postings(db, {row.rid: terms for row, terms in zip(rows, split, strict=True)})
    _remove_terms(db, frequencies)
    _add_to_counters(db, documents=-sum(row.text != "" for row in rows), total_length=-length)


def _delete_from_indexes(db: Database, rows: Sequence[IndexRow]) -> None:
    """Delete rows from the texts' trigrams: each from its pages or, of many, by a merge."""
    in_bulk = len(rows) * _BULK_SHARE > word_statistics(db, ()).documents
    _set_secure_delete(db, "vocabulary", on=True)
    _set_secure_delete(db, "grams", on=not in_bulk)
    db.executemany(
        "INSERT INTO grams (grams, rowid, text, original) VALUES ('delete', ?, ?, ?)",
        ((row.rid, row.text, row.original) for row in rows),
    )
    if in_bulk:
        # Merging all segments leaves out what was deleted.
        db.execute("INSERT INTO grams (grams) VALUES ('optimize')")
        _set_secure_delete(db, "grams", on=True)


def rebuild_word_index(db: Database) -> None:
    """Rebuild the whole word index from the memories."""
    frequencies: Counter[str] = Counter()
    wrong = []
    for rid, terms, length in _split_rows(db):
        frequencies.update(terms.counted)
        if terms.length != length:
            wrong.append((terms.length, rid))
    for row in wrong:
        # Where rot has moved its columns, SQLite takes no change of a row.
        with suppress(apsw.ConstraintError):
            db.execute("UPDATE item SET length = ? WHERE rid = ?", row)
    db.execute("DELETE FROM term")
    numbered = enumerate(sorted(frequencies.items()), 1)
    rows = ((tid, term, df) for tid, (term, df) in numbered)
    db.executemany("INSERT INTO term (tid, t, df) VALUES (?, ?, ?)", rows)
    for table in _INDEX_TABLES:
        _set_secure_delete(db, table, on=True)
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
    documents, total = _recount(db)
    counters = (("documents", f"{documents}"), ("total_length", f"{total}"))
    db.executemany(_SET_COUNTER, counters)
    rebuild_postings(db)


def rebuild_postings(db: Database) -> None:
    """Make the posting lists anew from the memories and the terms."""
    from bethink.store.sql.search import postings  # NumPy

    postings.rebuild_postings(db, _encoded_rows(db, Counter()))


def verify_word_index(db: Database) -> list[str]:
    """Return the problems of the word index, as messages; needs a write transaction."""
    from bethink.store.sql.search import postings  # NumPy

    problems = [
        f"the index '{table}' does not match the stored texts"
        for table in _INDEX_TABLES
        if not _is_consistent(db, table)
    ]
    frequencies: Counter[str] = Counter()
    wrong = postings.count_wrong_postings(db, _encoded_rows(db, frequencies))
    if unlike := dict(db.execute("SELECT t, df FROM term")).items() ^ frequencies.items():
        problems.append(f"{len({term for term, _ in unlike}):,} words have a wrong count")
    if wrong := wrong or db.execute(_COUNT_WRONG_IDS).get:
        problems.append(f"{wrong:,} posting lists do not match the stored texts")
    stored = word_statistics(db, ())
    documents, total = _recount(db)
    if stored.documents != documents:
        problems.append(f"{stored.documents:,} memories are counted, but {documents:,} are stored")
    if round(stored.average_length * stored.documents) != total:
        problems.append("the total length of the memories is wrong")
    return problems


def _count_terms(rows: Iterable[RowTerms]) -> tuple[Counter[str], int]:
    """Return how many of the rows hold each term, and how many index terms they have."""
    frequencies: Counter[str] = Counter()
    length = 0
    for row in rows:
        length += row.length
        frequencies.update(row.counted)
    return frequencies, length


# On a server terms that are known only count on; new ones have the next numbers, in their order.
_COUNT_TERM = batch(
    "INSERT INTO term (t, df) VALUES (?, ?)"
    " ON CONFLICT (t) DO UPDATE SET df = df + excluded.df RETURNING tid, t, df",
    postgres="""
    INSERT INTO bethink.term (space_id, tid, t, df)
    SELECT :space, (SELECT coalesce(max(tid), 0) FROM bethink.term WHERE space_id = :space)
        + row_number() OVER (ORDER BY EXISTS (SELECT 1 FROM bethink.term AS known
            WHERE known.space_id = :space AND known.t = n.t), n.number), n.t, n.df
    FROM unnest(?1::text[], ?2::bigint[]) WITH ORDINALITY AS n (t, df, number)
    ON CONFLICT (space_id, t) DO UPDATE SET df = term.df + excluded.df RETURNING tid, t, df
    """,
)
_UNCOUNT_TERM = batch(
    "UPDATE term SET df = df - ? WHERE t = ? RETURNING tid, t, df",
    postgres="""
    UPDATE bethink.term SET df = term.df - n.df FROM unnest(?1::bigint[], ?2::text[]) AS n (df, t)
    WHERE term.space_id = :space AND term.t = n.t RETURNING tid, term.t, term.df
    """,
)


def _add_terms(db: Database, frequencies: Mapping[str, int]) -> dict[str, int]:
    """Count new terms; return the tid of each."""
    updated = db.executemany(_COUNT_TERM, frequencies.items())
    tids, new = {}, []
    for tid, term, df in updated:
        tids[term] = tid
        if df == frequencies[term]:
            new.append((tid, term))
    db.executemany("INSERT INTO vocabulary (rowid, t) VALUES (?, ?)", new)
    return tids


_ADD_POSTINGS = "INSERT OR REPLACE INTO posting_new (rid, data) VALUES (?, ?)"
PACKED_END = """
    SELECT CAST(substr(value, 1, instr(value, ':') - 1) AS INTEGER) FROM meta WHERE name = 'packed'
"""
_MAX_COUNT = 255
_SELECT_TEXTS = "SELECT rid, text, about, length FROM item ORDER BY rid"
_COUNT_WRONG_IDS = f"SELECT count(*) FROM term WHERE tid NOT BETWEEN 1 AND {MAX_TERM_ID}"


@lru_cache(maxsize=512)
def _entry_format(entries: int) -> Struct:
    return Struct("<" + "IB" * entries)


def _encode_terms(terms: RowTerms, tids: Mapping[str, int]) -> bytes:
    """Encode a revision's terms with their counts; the term 0 is any word."""
    entries = [0, min(terms.length, _MAX_COUNT)]
    for term, count in Counter(terms.text + terms.about).items():
        if term in tids:
            entries += (tids[term], min(_MAX_COUNT, count))
    return _entry_format(len(entries) // 2).pack(*entries)


def _add_postings(db: Database, rows: Sequence[tuple[int, bytes]]) -> None:
    """Add the postings of new revisions; complete stretches of row ids become blocks."""
    db.executemany(_ADD_POSTINGS, rows)
    end = (max((rid for rid, _ in rows), default=0) + 1) // BLOCK_ROWS * BLOCK_ROWS
    if end > db.execute(PACKED_END).get:
        from bethink.store.sql.search import postings  # NumPy

        postings.pack_postings(db, end)


def _remove_postings(db: Database, rows: Mapping[int, RowTerms]) -> None:
    from bethink.store.sql.search import postings  # NumPy

    held = {rid: {*terms.text, *terms.about} for rid, terms in rows.items()}
    every = tuple({term for terms in held.values() for term in terms})
    found = select(db, SELECT_TERMS, (as_table(every),)) if every else []
    tids = {term: tid for term, _, tid in found}
    postings.remove_postings(
        db, {rid: [tids[t] for t in terms if t in tids] for rid, terms in held.items()}
    )


def _split_rows(db: Database) -> Iterator[tuple[int, RowTerms, int]]:
    """Yield the terms of every revision, in the order of row ids, and its stored length."""
    tokens = tokenizer(db)
    for rid, text, about, length in db.execute(_SELECT_TEXTS):
        yield rid, RowTerms(tokens(text), tokens(about)), length


def _encoded_rows(db: Database, frequencies: Counter[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the postings of every revision, in the order of row ids, and count its terms."""
    tids: dict[str, int] = dict(db.execute("SELECT t, tid FROM term"))
    for rid, terms, _ in _split_rows(db):
        frequencies.update(terms.counted)
        yield rid, _encode_terms(terms, tids)


def _remove_terms(db: Database, frequencies: Mapping[str, int]) -> None:
    counts = ((count, term) for term, count in frequencies.items())
    updated = db.executemany(_UNCOUNT_TERM, counts)
    removed = [(tid, term) for tid, term, df in updated if df <= 0]
    db.executemany("INSERT INTO vocabulary (vocabulary, rowid, t) VALUES ('delete', ?, ?)", removed)
    db.executemany("DELETE FROM term WHERE tid = ?", ((tid,) for tid, _ in removed))


def _set_secure_delete(db: Database, table: str, *, on: bool) -> None:
    """Make FTS5 remove entries from its pages at once, or when segments are merged."""
    if db.execute(f"SELECT v FROM {table}_config WHERE k = 'secure-delete'").get != on:
        db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', {on:d})")


def _add_to_counters(db: Database, **changes: int) -> None:
    db.executemany(
        "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name)"
        " DO UPDATE SET value ="
        " CAST(CAST(value AS INTEGER) + CAST(excluded.value AS INTEGER) AS TEXT)",
        ((name, str(change)) for name, change in changes.items()),
    )


_SET_COUNTER = """
    INSERT INTO meta (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


def _recount(db: Database) -> tuple[int, int]:
    """Count memories and their index terms from the rows."""
    documents, total = db.execute("SELECT count(*), total(length) FROM item WHERE text <> ''").get
    return documents, int(total)


def _is_consistent(db: Database, table: str) -> bool:
    """Whether FTS5 finds its table complete and equal to its rows."""
    try:
        db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError:
        return False
    return True
