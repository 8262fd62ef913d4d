"""One transaction on a PostgreSQL server, used like a connection to SQLite.

The shared modules of the store call `execute`, `executemany` and a few methods of the SQLite
driver. Here they reach a server: each statement is translated once and then known.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import apsw
import psycopg
from psycopg import pq
from psycopg.rows import tuple_row

from bethink.store.postgres import words
from bethink.store.postgres.bindings import (
    Insert,
    answers,
    array_literal,
    as_list,
    as_query,
    batch_delete,
    batch_insert,
    for_one_shard,
    parsed,
    reads,
    storable,
    tables_changed,
    type_of_empty,
    word_table,
    written,
)
from bethink.store.postgres.schema import SCHEMA, SPACE_ID, tables
from bethink.store.postgres.translate import (
    NO_VIEW,
    Shape,
    Source,
    Statement,
    View,
    translate,
)
from bethink.store.sql import history
from bethink.store.sql.ceiling import BELOW_CEILING
from bethink.store.sql.connection import Row
from bethink.store.sql.dialect import BATCHES, STATEMENTS
from bethink.store.sql.search.lexical import SELECT_FREQUENCIES, SELECT_TERM_IDS
from bethink.store.sql.search.terms import tokenizer
from bethink.store.sql.sql_functions import state_hash

Bound = Sequence[object] | words.WordQuery  # a list, or what is looked for in a word index
KnownRows = dict[tuple[str, Row], list[Row]]  # by the statement and its values
Hidden = Mapping[str, Sequence[Sequence[int | str]]]  # the columns of what a view hides, by table
_MAX_WAITING = 100  # statements that are sent together
_MAX_KNOWN_ROWS = 64  # rows of one statement that are kept until the transaction ends
_SELECT_GENERATION = "SELECT value FROM meta WHERE name = 'generation'"
_READ_TABLE = re.compile(r"\b(?:FROM|JOIN) (\w+)")
_LASTING_TABLES = frozenset({"meta", "model", "chunk", "posting_new"})
# What is asked of index terms, each from the same row: one of them is read once.
_TERM_VALUES = {SELECT_FREQUENCIES: 1, SELECT_TERM_IDS: 2}
_SELECT_TERMS = "SELECT t, df, tid FROM carray(?) AS w CROSS JOIN term ON t = w.value"
_STATE = "rid, content_hash, live_to, status, ended_by, state_hash"


class Rows:
    """The rows of a statement, with what our modules use of SQLite's cursor."""

    __slots__ = ("_left",)

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self._left = iter(rows)

    def __iter__(self) -> Iterator[Row]:
        return self._left

    def fetchall(self) -> list[Row]:
        """Return all rows that were not taken yet."""
        return list(self._left)

    @property
    def get(self) -> Any:
        values = [row[0] if len(row) == 1 else row for row in self._left]
        return None if not values else values[0] if len(values) == 1 else values


@lru_cache(maxsize=1024)
def _lasts(sql: str) -> bool:
    """Whether a statement reads only counters, models and versions, which are few and asked often.

    Its rows are kept until the space changes, and so longer than one transaction.
    """
    names = set(_READ_TABLE.findall(sql))
    return bool(names) and names <= _LASTING_TABLES


@lru_cache(maxsize=4096)
def _translated(sql: str, shapes: tuple[tuple[int, Shape], ...], view: ViewKey) -> Statement:
    return translate(parsed(sql).tree, dict(shapes), view.view)


def _new_cursor(connection: psycopg.Connection[Row]) -> psycopg.RawCursor[Row]:
    """Return a cursor whose rows come as bytes, not as text: vectors are half as long so."""
    cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
    cursor.format = pq.Format.BINARY
    return cursor


class ViewKey:
    """A view that statements are translated for, known by its identity."""

    def __init__(self, view: View) -> None:
        self.view = view


WITHOUT_VIEW = ViewKey(NO_VIEW)


class Session:
    """A transaction for one space. Not to be shared between threads."""

    def __init__(
        self,
        connection: psycopg.Connection[Row],
        space_id: int,
        *,
        writes: bool,
        distributed: bool = False,
    ) -> None:
        self.connection = connection
        self.space_id = space_id
        self.writes = writes
        self.distributed = distributed
        self.view = WITHOUT_VIEW
        self.generation: list[Row] = []
        self.hidden: Hidden = {}
        self._cursor = _new_cursor(connection)
        self.changed: frozenset[str] = frozenset()  # the tables that have old rows now
        self._changes = self._total = 0
        self._known: KnownRows = {}
        self._lasting: KnownRows = {}
        self._terms: dict[int | str, Row | None] = {}
        self._waiting: list[tuple[str, list[object]]] = []
        self._answer: psycopg.RawCursor[Row] | None = None

    def remember(self, generation: list[Row], lasting: KnownRows) -> None:
        """Remember the generation that was read, and what earlier transactions read as of it."""
        self.generation = self._known[_SELECT_GENERATION, ()] = generation
        self._lasting = lasting

    def show(self, view: ViewKey, hidden: Hidden) -> None:
        """Show the tables as a view has them from now on."""
        self.view, self.hidden = view, hidden
        self._known.clear()
        self._terms.clear()
        self._lasting = {}

    # The methods of SQLite's driver that the shared modules use

    def execute(self, sql: str, bindings: Sequence[object] = ()) -> Rows:
        values = tuple(bindings)
        found = self._run_special(sql, values)
        return self._run(sql, values) if found is None else found

    def _run_special(self, sql: str, bindings: Row) -> Rows | None:
        """Run a statement that no rule translates; None for any other."""
        found: Rows | None = None
        if sql == BELOW_CEILING:
            found = Rows([(1,)] if self.view is not WITHOUT_VIEW else [])
        elif "_config WHERE k = 'secure-delete'" in sql:
            found = Rows([(1,)])  # rows that are deleted leave no index entries to merge
        elif sql in STATEMENTS:
            found = self._run_own(STATEMENTS[sql], bindings)
            found = _with_native_keys(found) if " FROM chunk WHERE " in sql else found
        elif word_table(sql) or "temp.counted_term" in sql:
            found = self._maintain_words(word_table(sql), sql)
        elif sql == history.WRONG_STATES:
            rows = self._run(sql.split("WHERE", maxsplit=1)[0], ())
            found = Rows([row for row in rows if state_hash(row[3], row[0], *row[4:7]) != row[7]])
        elif parsed(sql).hashes_state:
            found = self._change_state(sql, bindings)
        return found

    def _run_own(self, texts: Sequence[str], bindings: Sequence[object]) -> Rows:
        """Run what stands for a statement; of several the rows that all changed are counted."""
        if len(texts) == 1:
            return self.run(texts[0], bindings)
        changed = 0
        for text in texts:
            self.run(text, bindings)
            changed += self.changes()
        self._changes = changed
        return Rows()

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> Rows:
        """Run a statement for each of the rows, at once where that is the same."""
        every = [tuple(row) for row in rows]
        if not every:
            return Rows()
        table = word_table(sql)
        if table:
            removes = "'delete'" in sql
            if table == "grams":
                self.write_grams(every, removes=removes)
            elif table == "vocabulary":
                self.write_vocabulary(every, removes=removes)
            return Rows()
        if sql in BATCHES:
            return self.run(BATCHES[sql], [list(column) for column in zip(*every, strict=True)])
        delete = batch_delete(sql)
        if delete:
            return self.run(delete, ([value for (value,) in every],))
        insert = batch_insert(sql)
        if insert is not None and (len(every) == 1 or not _changes_twice(insert, every)):
            return self._insert_many(insert, every)
        for row in every:
            self.execute(sql, row)
        return Rows()

    def changes(self) -> int:
        self._flush()
        return self._changes

    def total_changes(self) -> int:
        """Return how many rows all statements of this transaction changed."""
        self._flush()
        return self._total

    def finish(self) -> None:
        """Send what waits: the transaction is about to be committed."""
        self._flush()

    def txn_state(self, _: str = "main") -> int:
        return apsw.SQLITE_TXN_WRITE if self.writes else apsw.SQLITE_TXN_READ

    def fts5_tokenizer(self, name: str, arguments: Sequence[str]) -> Callable[..., Any]:
        """Return one of SQLite's tokenizers, which run in the client."""
        return words.fts5_tokenizer(name, arguments)

    # What they do here

    def run(self, sql: str, values: Sequence[object] = ()) -> Rows:
        """Run a statement of PostgreSQL's own, with ``?1`` for values and ``:space``."""
        return self._send(written(sql), values)

    def _run(self, sql: str, bindings: Row) -> Rows:
        special = parsed(sql).special
        if not special and not self.writes:
            return self._run_once(sql, bindings)
        if sql in _TERM_VALUES and not self.writes:
            return self._read_terms(as_list(bindings[0])[0], _TERM_VALUES[sql])
        values, shapes = bindings, []
        lists: dict[int, Bound] = {}
        for mark, kind in special.items():
            value = bindings[mark - 1]
            lists[mark], shape = as_list(value) if kind == "list" else as_query(value, kind)
            if kind == "list" and not lists[mark]:
                shape = Shape(type_of_empty(sql))
            shapes.append((mark, shape))
        return self._send(_translated(sql, tuple(shapes), self.view), values, lists)

    def _read_terms(self, terms: Sequence[int | str], place: int) -> Rows:
        """Return index terms, each with a value of its row."""
        known = self._terms
        missing = [term for term in terms if term not in known]
        if missing:
            known.update(dict.fromkeys(missing))
            rows = self._run(_SELECT_TERMS, (missing,))
            known.update((row[0], row) for row in rows)
        found = (known[term] for term in terms)
        return Rows([(row[0], row[place]) for row in found if row is not None])

    def _run_once(self, sql: str, values: Row) -> Rows:
        """Run a statement of a transaction that only reads; the same again has the same rows."""
        # Statements without values are few.
        lasts = sql != _SELECT_GENERATION and (not values or _lasts(sql))
        kept = self._lasting if lasts else self._known
        known = kept.get((sql, values))
        if known is None:
            known = self._send(_translated(sql, (), self.view), values).fetchall()
            if len(known) <= _MAX_KNOWN_ROWS:
                kept[sql, values] = known
        return Rows(known)

    def _send(
        self,
        statement: Statement,
        values: Sequence[object],
        lists: Mapping[int, Bound] | None = None,
    ) -> Rows:
        """Send a statement; one that only writes waits for the next whose outcome is asked for."""
        bound = [
            storable(array_literal(value), writes=self.writes) if isinstance(value, list) else value
            for value in (self._value(one, values, lists or {}) for one in statement.sources)
        ]
        sql = for_one_shard(statement.sql) if self.distributed else statement.sql
        if self.writes and not answers(sql):
            self._waiting.append((sql, bound))
            if len(self._waiting) >= _MAX_WAITING:
                self._flush()
            return Rows()
        self._flush(also=(sql, bound) if self._waiting else None)
        if self._answer is None:
            self._cursor.execute(sql.encode(), bound)
            self._answer = self._cursor
        cursor, self._answer = self._answer, None
        self._changes = 0 if reads(sql) else max(cursor.rowcount, 0)
        self._note_change(sql, self._changes)
        return Rows(cursor.fetchall())

    def _note_change(self, sql: str, rows: int) -> None:
        self._total += rows
        if rows:
            self.changed |= tables_changed(sql)

    def _flush(self, also: tuple[str, list[object]] | None = None) -> None:
        """Send the statements that wait, and one more, as one message."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        cursors = []
        with self.connection.pipeline():
            for sql, bound in (*waiting, *((also,) if also else ())):
                cursor = _new_cursor(self.connection)
                cursor.execute(sql.encode(), bound)
                cursors.append(cursor)
        for (sql, _), cursor in zip(waiting, cursors, strict=False):
            self._changes = max(cursor.rowcount, 0)
            self._note_change(sql, self._changes)
        self._answer = cursors[-1] if also else None

    def _value(
        self, source: Source, values: Sequence[object], lists: Mapping[int, Bound]
    ) -> object:
        if source.kind == "value":
            return storable(values[source.mark - 1], writes=self.writes)
        if source.kind == "space":
            return self.space_id
        if source.kind not in {"array", "rows", "grams"}:
            return self.hidden[source.kind][source.part]
        query = lists[source.mark]
        if not isinstance(query, words.WordQuery):
            return query
        if source.kind == "rows":
            return self._matching_rows(query)
        group = query.groups[source.part]
        is_pattern = query.column != "vocabulary"
        return words.trigram_patterns(group) if is_pattern else words.vocabulary_trigrams(group)

    def _change_state(self, sql: str, bindings: Row) -> Rows:
        """Run an update of revisions, and hash their new state.

        A row whose state is not what was stored keeps its hash: no write makes it sound.
        """
        where = sql[sql.index("WHERE") :]
        select = f"SELECT {_STATE} FROM item {where}"
        before = self._numbered(sql, select, bindings)
        sound = [row[0] for row in before if state_hash(row[1], row[0], *row[2:5]) == row[5]]
        self._run(sql, bindings)
        changed = self.changes()
        rids = "SELECT rid, content_hash, live_to, status, ended_by FROM item AS i"
        rows = self._run(f"{rids} WHERE i.rid IN (SELECT value FROM json_each(?))", (sound,))
        hashes = [(rid, state_hash(text, rid, *state)) for rid, text, *state in rows]
        self.run(
            f"""UPDATE {SCHEMA}.item SET state_hash = n.hash
            FROM unnest(?1::bigint[], ?2::bigint[]) AS n (rid, hash)
            WHERE item.space_id = :space AND item.rid = n.rid""",
            ([rid for rid, _ in hashes], [hashed for _, hashed in hashes]),
        )
        self._flush()
        self._changes = changed
        return Rows()

    def _numbered(self, sql: str, select: str, bindings: Row) -> Rows:
        """Run a part of a statement with its values; its marks keep their numbers."""
        if "?1" in sql:
            return self._run(select, bindings)
        skipped = sql[: sql.index("WHERE")].count("?")
        return self._run(select, bindings[skipped:])

    def _insert_many(self, insert: Insert, rows: Sequence[Row]) -> Rows:
        columns = ", ".join((SPACE_ID, *insert.columns))
        kinds = tables()[insert.table].columns
        arrays = ", ".join(f"?{n}::{kinds[name]}[]" for n, name in enumerate(insert.given, 1))
        chosen = ", ".join(insert.constants.get(name, f"n.{name}") for name in insert.columns)
        values = [list(column) for column in zip(*rows, strict=True)]
        return self.run(
            f"INSERT INTO {SCHEMA}.{insert.table} ({columns}) SELECT :space, {chosen}"
            f" FROM unnest({arrays}) AS n ({', '.join(insert.given)}) {insert.conflict}",
            values,
        )

    # The word index

    def _maintain_words(self, table: str, sql: str) -> Rows:
        """Carry out the special statements of SQLite's word tables."""
        from bethink.store.postgres import word_check  # rarely needed

        if "'rebuild'" in sql:
            word_check.rebuild(self, table)
        elif "'integrity-check'" in sql:
            word_check.require_consistent(self, table)
        elif sql.startswith("INSERT INTO term"):
            word_check.add_counted(self)
        elif sql.lstrip().startswith("SELECT"):
            return Rows([(word_check.count_differences(self),)])
        return Rows()

    def _matching_rows(self, query: words.WordQuery) -> list[int]:
        """Return the rows that hold any of a query's words, in the column it names."""
        rids = self._holding(query.terms())
        if query.column != "about" or not rids:
            return rids
        wanted = set(query.terms())
        stored = self._run("SELECT i.rid, i.about FROM json_each(?) AS w"
                           " CROSS JOIN item AS i ON i.rid = w.value", (rids,))  # fmt: skip
        tokens = tokenizer(self)
        return [rid for rid, about in stored if not wanted.isdisjoint(tokens(about))]

    def _holding(self, terms: Sequence[str]) -> list[int]:
        """Return the rows that hold any of the index terms, in order."""
        from bethink.store.sql.search.postings import rows_by_term  # NumPy

        tids = [tid for _, tid in self._run(SELECT_TERM_IDS, (list(terms),))]
        rows = rows_by_term(self, tids).values() if tids else ()
        return sorted({rid for one in rows for rid in one.tolist()})

    def write_grams(self, rows: Sequence[Row], *, removes: bool = False) -> None:
        """Add or remove the folded texts of revisions: row id, text and original."""
        if removes:
            self.run(
                f"DELETE FROM {SCHEMA}.gram WHERE space_id = :space AND rid = ANY (?1::bigint[])",
                ([rid for rid, _, _ in rows],),
            )
            return
        folded = [(rid, words.folded_text(text, original)) for rid, text, original in rows]
        if folded:
            self._insert_many(Insert("gram", ("rid", "folded")), folded)

    def write_vocabulary(self, rows: Sequence[Row], *, removes: bool = False) -> None:
        """Add or remove the trigrams of terms: tid and term."""
        grams = [(gram, tid) for tid, term in rows for gram in words.vocabulary_trigrams([term])]
        if removes:
            self.run(
                f"""DELETE FROM {SCHEMA}.term_gram
                USING unnest(?1::text[], ?2::bigint[]) AS n (gram, tid)
                WHERE term_gram.space_id = :space AND term_gram.gram = n.gram
                AND term_gram.tid = n.tid""",
                ([gram for gram, _ in grams], [tid for _, tid in grams]),
            )
        elif grams:
            self._insert_many(Insert("term_gram", ("gram", "tid")), grams)


def _changes_twice(insert: Insert, rows: Sequence[Row]) -> bool:
    """Whether rows have the same key, which one statement cannot change twice."""
    if "DO UPDATE" not in insert.conflict:
        return False
    key = [name for name in tables()[insert.table].key if name not in insert.constants]
    places = [insert.given.index(name) for name in key]
    return len({tuple(row[place] for place in places) for row in rows}) < len(rows)


def _with_native_keys(rows: Rows) -> Rows:
    """Return chunks with their keys as SQLite's file has them, the lowest byte first."""
    found = []
    for first, bits, keys in rows:
        numbers = array("q", bytes(keys))
        numbers.byteswap()
        found.append((first, bytes(bits), numbers.tobytes()))
    return Rows(found)
