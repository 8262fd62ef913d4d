"""The word index: kept in step with the memories, checked and rebuilt.

Three FTS5 tables without content of their own (``words``, ``grams``, ``vocabulary``)
and two counts: how many memories hold a term (``term.df``), and how many memories and
index words there are (``meta``). Everything here runs inside the caller's transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

import apsw

from recollect.store.sqlite.fuzzy import search_substring
from recollect.store.sqlite.lexical import search_text
from recollect.store.sqlite.terms import LONGEST_TERM, statistics, terms, tokenizer, words

__all__ = [
    "IndexRow",
    "Split",
    "index",
    "measure",
    "rebuild",
    "search_substring",
    "search_text",
    "split",
    "statistics",
    "terms",
    "unindex",
    "verify",
    "words",
]

_TABLES = ("words", "grams", "vocabulary")


class IndexRow(NamedTuple):
    """What the word index takes from a memory's row, exactly as stored there."""

    rid: int
    text: str
    about: str
    original: str | None


class Split(NamedTuple):
    """The index words of a memory's row."""

    text: list[str]
    about: list[str]

    @property
    def length(self) -> int:
        """How many there are: what the row's ``length`` must say."""
        return len(self.text) + len(self.about)


def split(db: apsw.Connection, row: IndexRow) -> Split:
    """The row's texts as index words."""
    tokens = tokenizer(db)
    return Split(tokens(row.text), tokens(row.about))


def index(db: apsw.Connection, rows: Sequence[IndexRow], known: Sequence[Split] = ()) -> None:
    """Makes memories findable by their words; ``known`` are their index words, where the
    caller has them."""
    db.executemany(
        "INSERT INTO words (rowid, text, about) VALUES (?, ?, ?)",
        ((row.rid, row.text, row.about) for row in rows),
    )
    db.executemany(
        "INSERT INTO grams (rowid, text, original) VALUES (?, ?, ?)",
        ((row.rid, row.text, row.original) for row in rows),
    )
    frequencies, length = _count(known or [split(db, row) for row in rows])
    _add_terms(db, frequencies)
    _add_to_counters(db, documents=len(rows), total_length=length)


def unindex(db: apsw.Connection, rows: Sequence[IndexRow]) -> None:
    """Takes memories out again, leaving no trace of words that only they held.

    The rows must be those given to `index`: FTS5 finds what to remove by the text.
    """
    _leave_no_trace(db)
    db.executemany(
        "INSERT INTO words (words, rowid, text, about) VALUES ('delete', ?, ?, ?)",
        ((row.rid, row.text, row.about) for row in rows),
    )
    db.executemany(
        "INSERT INTO grams (grams, rowid, text, original) VALUES ('delete', ?, ?, ?)",
        ((row.rid, row.text, row.original) for row in rows),
    )
    frequencies, length = _count([split(db, row) for row in rows])
    _remove_terms(db, frequencies)
    _add_to_counters(db, documents=-len(rows), total_length=-length)


def measure(db: apsw.Connection, row: IndexRow) -> int:
    """How many index words a memory has: what its ``length`` must say."""
    return split(db, row).length


def rebuild(db: apsw.Connection) -> None:
    """Makes all that the word index holds anew from the memories."""
    _leave_no_trace(db)
    _repair_lengths(db)
    db.execute("INSERT INTO words (words) VALUES ('rebuild')")
    db.execute("INSERT INTO grams (grams) VALUES ('rebuild')")
    db.execute("DELETE FROM term")
    with _counted_terms(db) as counted:
        db.execute(f"INSERT INTO term (t, df) {counted.select}", (LONGEST_TERM,))
    db.execute("INSERT INTO vocabulary (vocabulary) VALUES ('rebuild')")
    documents, total = _true_counters(db)
    _set_counters(db, {"documents": documents, "total_length": total})


def verify(db: apsw.Connection) -> list[str]:
    """What is wrong with the word index, in words; needs a write transaction."""
    problems = [
        f"the index '{table}' does not agree with the stored texts"
        for table in _TABLES
        if not _is_consistent(db, table)
    ]
    # A damaged index can stop its own listing of terms with the same error.
    if "the index 'words' does not agree with the stored texts" not in problems:
        with _counted_terms(db) as counted:
            wrong = counted.differences()
        if wrong:
            problems.append(f"{wrong:,} words are counted wrongly")
    stored = statistics(db, ())
    documents, total = _true_counters(db)
    if stored.documents != documents:
        problems.append(f"{stored.documents:,} memories are counted, {documents:,} are there")
    if round(stored.average_length * stored.documents) != total:
        problems.append("the total length of the memories is counted wrongly")
    return problems


def _count(rows: Iterable[Split]) -> tuple[Counter[str], int]:
    """How many of the rows hold each term, and how many index words they have."""
    frequencies: Counter[str] = Counter()
    length = 0
    for row in rows:
        length += row.length
        frequencies.update({term for term in (*row.text, *row.about) if len(term) <= LONGEST_TERM})
    return frequencies, length


def _add_terms(db: apsw.Connection, frequencies: Mapping[str, int]) -> None:
    counted = db.executemany(
        "INSERT INTO term (t, df) VALUES (?, ?)"
        " ON CONFLICT (t) DO UPDATE SET df = df + excluded.df RETURNING tid, t, df",
        frequencies.items(),
    )
    new = [(tid, term) for tid, term, df in counted if df == frequencies[term]]
    db.executemany("INSERT INTO vocabulary (rowid, t) VALUES (?, ?)", new)


def _remove_terms(db: apsw.Connection, frequencies: Mapping[str, int]) -> None:
    counted = db.executemany(
        "UPDATE term SET df = df - ? WHERE t = ? RETURNING tid, t, df",
        ((count, term) for term, count in frequencies.items()),
    )
    gone = [(tid, term) for tid, term, df in counted if df <= 0]
    db.executemany(
        "INSERT INTO vocabulary (vocabulary, rowid, t) VALUES ('delete', ?, ?)",
        gone,
    )
    db.executemany("DELETE FROM term WHERE tid = ?", ((tid,) for tid, _ in gone))


def _leave_no_trace(db: apsw.Connection) -> None:
    """Has FTS5 remove entries from its pages at once, not when segments are merged."""
    for table in _TABLES:
        if db.execute(f"SELECT v FROM {table}_config WHERE k = 'secure-delete'").get != 1:
            db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', 1)")


def _add_to_counters(db: apsw.Connection, **changes: int) -> None:
    db.executemany(
        "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name)"
        " DO UPDATE SET value = CAST(CAST(value AS INTEGER) + excluded.value AS TEXT)",
        ((name, str(change)) for name, change in changes.items()),
    )


def _set_counters(db: apsw.Connection, counters: Mapping[str, int]) -> None:
    db.executemany(
        "INSERT INTO meta (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        ((name, str(value)) for name, value in counters.items()),
    )


def _true_counters(db: apsw.Connection) -> tuple[int, int]:
    """Counted from the rows: memories, and the index words they are said to have."""
    documents, total = db.execute("SELECT count(*), total(length) FROM item").get
    return documents, int(total)


def _repair_lengths(db: apsw.Connection) -> None:
    wrong = []
    for rid, text, about, length in db.execute("SELECT rid, text, about, length FROM item"):
        true = measure(db, IndexRow(rid, text, about, None))
        if true != length:
            wrong.append((true, rid))
    db.executemany("UPDATE item SET length = ? WHERE rid = ?", wrong)


def _is_consistent(db: apsw.Connection, table: str) -> bool:
    """Whether FTS5 finds its table complete and equal to the rows it stands for."""
    try:
        db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError:
        return False
    return True


class _counted_terms:  # noqa: N801 - used like a function, as context managers are
    """The terms with their counts as the word index itself has them."""

    select = "SELECT term, doc FROM temp.counted_term WHERE length(term) <= ?"

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def __enter__(self) -> Self:
        self._db.execute(
            "CREATE VIRTUAL TABLE temp.counted_term USING fts5vocab ('main', 'words', 'row')"
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._db.execute("DROP TABLE temp.counted_term")

    def differences(self) -> int:
        """How many terms have another count in ``term``, or none."""
        wrong: int = self._db.execute(
            f"""
            SELECT count(DISTINCT term) FROM (
                SELECT * FROM ({self.select} EXCEPT SELECT t, df FROM term)
                UNION ALL
                SELECT * FROM (SELECT t AS term, df FROM term EXCEPT {self.select})
            )""",
            (LONGEST_TERM, LONGEST_TERM),
        ).get
        return wrong
