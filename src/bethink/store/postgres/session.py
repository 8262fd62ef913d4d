"""One transaction on a PostgreSQL server, used like a connection to SQLite.

The shared modules of the store call `execute`, `executemany` and a few methods of the SQLite
driver. Here they reach a server: each statement is translated once and then known, and what
will be asked next is sent with the same message and read ahead.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, cast

import apsw
import psycopg
from psycopg import pq
from psycopg.rows import tuple_row

from bethink.core.named_tuple import NamedTuple
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
    tables_written,
    type_of_empty,
    word_table,
    written,
)
from bethink.store.postgres.schema import SCHEMA, SPACE_ID, tables
from bethink.store.postgres.translate import NO_VIEW, Shape, Source, Statement, View, translate
from bethink.store.sql.ceiling import BELOW_CEILING, Hidden
from bethink.store.sql.connection import Row
from bethink.store.sql.dialect import BATCHES, STATEMENTS
from bethink.store.sql.search.lexical import SELECT_TERMS

Key = tuple[str, Row]  # a statement and its values, by which its rows are known
Each = Sequence[int | str]  # the values of a list, of which each has rows of its own
Cursor = psycopg.RawCursor[Row]
_READ_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(?:bethink\.)?(\w+)")
_COUNTER = re.compile(r"\bname = '(\w+)'")
_OF_EACH = re.compile(
    r"\s*SELECT .* FROM unnest\(\$(\d+)::\w+\[\]\) WITH ORDINALITY AS (\w+) \(value, key\) "
    r".* ORDER BY \2\.key\s*",
    re.DOTALL,
)


class Sent(NamedTuple):
    """A statement with its values; one that reads ahead, with what its rows are known by."""

    sql: str
    bound: list[object]
    key: Key | None = None
    each: Each = ()


@lru_cache(maxsize=1024)
def tables_read(sql: str) -> frozenset[str]:
    """Return the tables that a statement reads."""
    return frozenset(_READ_TABLE.findall(sql))


@lru_cache(maxsize=1024)
def counters_in(sql: str, tables: frozenset[str]) -> frozenset[str]:
    """Return the tables, for that of counters those that the statement names."""
    names = _COUNTER.findall(sql) if tables == {"meta"} else ()
    return frozenset(f"meta.{name}" for name in names) or tables


def _is_read(key: Key, written: frozenset[str]) -> bool:
    """Whether a statement reads what is written."""
    read = counters_in(key[0], tables_read(key[0]))
    if "meta" in written or "meta" in read:
        read, written = (frozenset(name.split(".")[0] for name in one) for one in (read, written))
    return not read.isdisjoint(written)


@lru_cache(maxsize=1024)
def of_each(sql: str) -> tuple[str, int]:
    """Return a query with the place in a list before each row, and the parameter of the list.

    Such a query can be answered for some values of the list at a time. "" and 0 for others.
    """
    match = _OF_EACH.fullmatch(sql)
    if match is None:
        return "", 0
    return f"SELECT {match[2]}.key, {sql.lstrip().removeprefix('SELECT ')}", int(match[1])


def send(connection: psycopg.Connection[Row], statements: Sequence[Sent]) -> list[Cursor]:
    """Send statements as one message; their rows come as bytes, vectors are half as long so."""
    cursors = [psycopg.RawCursor(connection, row_factory=tuple_row) for _ in statements]
    for cursor in cursors:
        cursor.format = pq.Format.BINARY
    if len(statements) == 1:
        cursors[0].execute(statements[0].sql.encode(), statements[0].bound)
        return cursors
    with connection.pipeline():
        for one, cursor in zip(statements, cursors, strict=True):
            cursor.execute(one.sql.encode(), one.bound or None)
    return cursors


class ReadAhead:
    """Rows read before they are asked for; they are kept until their tables are written."""

    def __init__(self) -> None:
        self._rows: dict[Key, list[Row]] = {}
        self._of_each: dict[Key, dict[int | str, list[Row]]] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def missing(self, key: Key, each: Each) -> list[int | str] | None:
        """Return the values whose rows are not known yet; None where nothing was read ahead."""
        known = self._of_each.get(key)
        return None if known is None else [v for v in dict.fromkeys(each) if v not in known]

    def find(self, key: Key, each: Each) -> list[Row] | None:
        """Return rows that were read ahead."""
        if not each:
            return self._rows.get(key)
        known = self._of_each[key]
        return [row for value in each for row in known[value]]

    def keep(self, sent: Sent, rows: list[Row]) -> None:
        if sent.key is None:
            return
        if not sent.each:
            self._rows[sent.key] = rows
            return
        known = self._of_each.setdefault(sent.key, {})
        known.update((value, []) for value in sent.each)
        for number, *row in rows:
            known[sent.each[number - 1]].append(tuple(row))

    def forget(self, tables: frozenset[str]) -> None:
        """Forget the rows of tables that are written."""
        for kept in (self._rows, self._of_each):
            for key in [key for key in kept if _is_read(key, tables)]:
                del kept[key]


def without_read(waiting: Sequence[Sent], tables: frozenset[str]) -> list[Sent]:
    """Return the statements that wait, without those that read ahead of these tables."""
    return [one for one in waiting if one.key is None or not _is_read(one.key, tables)]


Bound = Sequence[object] | words.WordQuery  # a list, or what is looked for in a word index
KnownRows = dict[Key, list[Row]]
# Begins a transaction with some statements; gives its connection and their answers.
Begin = Callable[["Session", list[Sent]], tuple[psycopg.Connection[Row], list[Cursor]]]
_MAX_WAITING = 100  # statements that are sent together
_MAX_KNOWN_ROWS = 64  # rows of one statement that are kept until the transaction ends
_MAX_LASTING_ROWS = 4_096  # and until the space changes
_GENERATION: Key = ("SELECT value FROM meta WHERE name = 'generation'", ())
_LASTING_TABLES = frozenset({"meta", "model", "chunk", "posting_new"})


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


class Lasting(NamedTuple):
    """What is known of a space as of a generation: rows, and which of them were asked for."""

    generation: list[Row]
    rows: KnownRows
    asked: set[Key]


def _lasts(key: Key) -> bool:
    """Whether a statement reads only counters, models and versions, which are few and asked often.

    Its rows are kept until the space changes, and so longer than one transaction. So are those
    of statements without values, which are few, too.
    """
    names = tables_read(key[0])
    return key != _GENERATION and (not key[1] or (bool(names) and names <= _LASTING_TABLES))


@lru_cache(maxsize=4096)
def _translated(sql: str, shapes: tuple[tuple[int, Shape], ...], view: View) -> Statement:
    return translate(parsed(sql).tree, dict(shapes), view)


class _Asked(NamedTuple):
    """A statement with its values, its lists, and what its rows are known by.

    With ``mark`` each value of a list has rows of its own: that list is ``each``.
    """

    key: Key
    statement: Statement
    values: Sequence[object]
    lists: Mapping[int, Bound] = MappingProxyType({})
    mark: int = 0
    each: Each = ()


class Session:
    """A transaction for one space. Not to be shared between threads.

    It begins with the first statement that is sent, in the same message.
    """

    def __init__(self, space_id: int, *, writes: bool, begin: Begin) -> None:
        self.connection: psycopg.Connection[Row] | None = None  # until something is sent
        self.space_id = space_id
        self.writes = writes
        self.distributed = False
        self.view = NO_VIEW
        self.hidden: Hidden = {}
        self._begin = begin
        self.changed: frozenset[str] = frozenset()  # the tables that have old rows now
        self._changes = self._total = 0
        self._will_change = False  # whether rows wait that are certain to change something
        self._known: KnownRows = {}
        self._lasting = Lasting([], {}, set())
        self._ahead = ReadAhead()
        self._waiting: list[Sent] = []

    @property
    def generation(self) -> list[Row]:
        """The row of the generation; it is read when the transaction begins."""
        self.begin()
        return self._known[_GENERATION]

    def begin(self) -> None:
        """Begin the transaction, if nothing was sent yet."""
        if self.connection is None:
            self._flush(begins=True)

    def remember(self, lasting: Lasting) -> None:
        """Remember the generation that was read, and what earlier transactions read as of it."""
        self._known[_GENERATION] = lasting.generation
        self._lasting = lasting

    def show(self, view: View, hidden: Hidden) -> None:
        """Show the tables as a view has them from now on."""
        self.view, self.hidden = view, hidden
        self._known = {_GENERATION: self._known[_GENERATION]}
        self._lasting = Lasting([], {}, set())

    def ask_again(self, before: Lasting) -> None:
        """Read with the next message what was asked of the space before it changed."""
        for sql, values in tuple(before.asked):
            self.read_ahead(sql, values)

    def keep_terms(self, rows: Iterable[Row]) -> None:
        """Keep rows of index terms that another query has read: term, frequency and number."""
        known = {row[0]: row for row in rows}
        numbered = [(number, *row) for number, row in enumerate(known.values(), 1)]
        self._ahead.keep(Sent("", [], (SELECT_TERMS, (None,)), list(known)), numbered)

    def read_ahead(self, sql: str, bindings: Sequence[object] = ()) -> None:
        """Read with the next message what will be asked for."""
        asked = self._asked(sql, tuple(bindings))
        if asked.mark and not asked.each:
            return
        kept: Container[Key] = {one.key for one in self._waiting if one.key and not one.each}
        if not asked.each and any(
            asked.key in one for one in (self._known, self._lasting.rows, self._ahead, kept)
        ):
            return
        known = self._ahead.missing(asked.key, asked.each)
        missing = asked.each if known is None else known
        if missing or not asked.each:
            self._waiting.append(self._sent(asked, list(dict.fromkeys(missing))))

    # The methods of SQLite's driver that the shared modules use

    def execute(self, sql: str, bindings: Sequence[object] = ()) -> Rows:
        values = tuple(bindings)
        found = self._run_special(sql, values)
        return self._run(sql, values) if found is None else found

    def _run_special(self, sql: str, bindings: Row) -> Rows | None:
        """Run a statement that no rule translates; None for any other."""
        found: Rows | None = None
        if sql == BELOW_CEILING:
            found = Rows([(1,)] if self.view is not NO_VIEW else [])
        elif "_config WHERE k = 'secure-delete'" in sql:
            found = Rows([(1,)])  # rows that are deleted leave no index entries to merge
        elif sql in STATEMENTS:
            found = self._run_own(sql, bindings)
            found = _with_native_keys(found) if " FROM chunk WHERE " in sql else found
        elif table := word_table(sql):
            found = self._maintain_words(table, sql)
        return found

    def _run_own(self, sql: str, bindings: Row) -> Rows:
        """Run what stands for a statement."""
        if not answers(STATEMENTS[sql]):
            return self.run(STATEMENTS[sql], bindings)
        asked = self._asked(sql, bindings)
        return self._run_once(asked) if not self.writes else self._run_asked(asked)

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

    def changes_anything(self) -> bool:
        """Whether a statement has changed a row, or will; if that is open, what waits is sent."""
        return self._will_change or bool(self._total or self.total_changes())

    def finish(self, end: str) -> str | None:
        """Send what waits with the end of the transaction; return what the server says to it."""
        self._waiting = [one for one in self._waiting if one.key is None]
        if self.connection is None and not self._waiting:
            return None
        cursor = self._flush(Sent(end, []))
        return cursor.statusmessage if cursor else None

    def txn_state(self, _: str = "main") -> int:
        return apsw.SQLITE_TXN_WRITE if self.writes else apsw.SQLITE_TXN_READ

    def fts5_tokenizer(self, name: str, arguments: Sequence[str]) -> Callable[..., Any]:
        """Return one of SQLite's tokenizers, which run in the client."""
        return words.fts5_tokenizer(name, arguments)

    # What they do here

    def run(self, sql: str, values: Sequence[object] = (), counters: Iterable[str] = ()) -> Rows:
        """Run a statement of PostgreSQL's own, with ``?1`` for values and ``:space``."""
        sent = self._sent(_Asked((sql, ()), written(sql), values))
        return self._send(sent, frozenset(f"meta.{name}" for name in counters))

    def _run(self, sql: str, bindings: Row) -> Rows:
        asked = self._asked(sql, bindings)
        if asked.mark and not asked.each:
            return Rows()
        if not asked.lists and not self.writes:
            return self._run_once(asked)
        return self._run_asked(asked)

    def _run_asked(self, asked: _Asked) -> Rows:
        found = self._read_before(asked)
        return self._send(self._sent(asked)) if found is None else Rows(found)

    def _asked(self, sql: str, bindings: Row) -> _Asked:
        """Return what a statement asks with its values."""
        if sql in STATEMENTS:
            return _Asked((sql, bindings), written(STATEMENTS[sql]), bindings)
        lists: dict[int, Bound] = {}
        shapes = []
        for mark, kind in parsed(sql).special.items():
            value = bindings[mark - 1]
            lists[mark], shape = as_list(value) if kind == "list" else as_query(value, kind)
            if kind == "list" and not lists[mark]:
                shape = Shape(type_of_empty(sql))
            shapes.append((mark, shape))
        statement = _translated(sql, tuple(shapes), self.view)
        query, parameter = of_each(statement.sql)
        mark = statement.sources[parameter - 1].mark if query else 0
        given = (tuple(lists[n]) if n in lists else one for n, one in enumerate(bindings, 1))
        key = tuple(None if n == mark else one for n, one in enumerate(given, 1))
        each = lists[mark] if mark else ()
        return _Asked((sql, key), statement, bindings, lists, mark, cast("Each", each))

    def _read_before(self, asked: _Asked) -> list[Row] | None:
        """Return rows that were read ahead, or are about to be; None where they were not."""
        waiting = [one for one in self._waiting if one.key == asked.key]
        missing = self._ahead.missing(asked.key, asked.each)
        if asked.each and missing is None and not waiting:
            return None
        if asked.each:
            coming = {value for one in waiting for value in one.each}
            unknown = list(dict.fromkeys(asked.each)) if missing is None else missing
            new = [value for value in unknown if value not in coming]
            if unknown:
                self._flush(*([self._sent(asked, new)] if new else ()))
        elif waiting:
            self._flush()
        return self._ahead.find(asked.key, asked.each)

    def _run_once(self, asked: _Asked) -> Rows:
        """Run a statement of a transaction that only reads; the same again has the same rows."""
        lasts = _lasts(asked.key)
        if lasts or asked.key == _GENERATION:
            self.begin()
        kept, most = self._known, _MAX_KNOWN_ROWS
        if lasts:
            kept, most = self._lasting.rows, _MAX_LASTING_ROWS
        known = kept.get(asked.key)
        if known is None:
            known = self._read_before(asked)
            if known is None:
                known = self._send(self._sent(asked)).fetchall()
            if len(known) <= most:
                kept[asked.key] = known
        if lasts and len(known) <= most:
            self._lasting.asked.add(asked.key)
        return Rows(known)

    def _sent(self, asked: _Asked, ahead: Each | None = None) -> Sent:
        """Return the message of a statement; with ``ahead`` its rows are kept, of these values."""
        statement, lists = asked.statement, dict(asked.lists)
        sql = statement.sql
        if ahead:
            lists[asked.mark] = ahead
            sql = of_each(sql)[0]
        bound = [
            storable(array_literal(value), writes=self.writes) if isinstance(value, list) else value
            for value in (self._value(one, asked.values, lists) for one in statement.sources)
        ]
        return Sent(sql, bound) if ahead is None else Sent(sql, bound, asked.key, ahead)

    def _send(self, sent: Sent, written_to: frozenset[str] = frozenset()) -> Rows:
        """Send a statement; one that only writes waits for the next whose outcome is asked for."""
        if self.writes and not reads(sent.sql):
            tables = tables_written(sent.sql)
            self._forget(written_to or counters_in(sent.sql, tables))
        if self.writes and not answers(sent.sql):
            self._waiting.append(sent)
            if len(self._waiting) >= _MAX_WAITING:
                self._flush()
            return Rows()
        cursor = self._flush(sent)
        return Rows(cursor.fetchall() if cursor else ())

    def _forget(self, tables: frozenset[str]) -> None:
        """Forget what was read ahead, or waits to be, of tables that are about to be written."""
        self._ahead.forget(tables)
        self._waiting = without_read(self._waiting, tables)

    def _flush(self, *also: Sent, begins: bool = False) -> Cursor | None:
        """Send the statements that wait, and one more, as one message; return its cursor."""
        sent = [*self._waiting, *also]
        if not sent and not begins:
            return None
        self._waiting = []
        cursors: list[Cursor] | None = None
        if self.connection is None:
            # What is written has to wait until it is known that the space is there.
            together = all(reads(one.sql) for one in sent)
            self.connection, begun = self._begin(self, sent if together else [])
            cursors = begun if together else None
        if cursors is None:
            whole = self.distributed
            told = [one._replace(sql=for_one_shard(one.sql)) if whole else one for one in sent]
            cursors = send(self.connection, told)
        for one, cursor in zip(sent, cursors, strict=True):
            if one.key is not None:
                rows = cursor.fetchall()
                self._ahead.keep(one, rows)
                if _lasts(one.key) and not one.each and len(rows) <= _MAX_LASTING_ROWS:
                    self._lasting.rows[one.key] = rows
            elif not reads(one.sql):
                self._changes = max(cursor.rowcount, 0)
                self._total += self._changes
                if self._changes:
                    self.changed |= tables_changed(one.sql)
            else:
                self._changes = 0
        return cursors[-1] if cursors else None

    def _value(
        self, source: Source, values: Sequence[object], lists: Mapping[int, Bound]
    ) -> object:
        if source.kind == "value":
            return storable(values[source.mark - 1], writes=self.writes)
        if source.kind == "space":
            return self.space_id
        if source.kind not in {"array", "grams"}:
            return self.hidden[source.kind][source.part]
        query = lists[source.mark]
        if not isinstance(query, words.WordQuery):
            return query
        group = query.groups[source.part]
        patterns = query.table == "grams"
        return words.trigram_patterns(group) if patterns else words.vocabulary_trigrams(group)

    def _insert_many(self, insert: Insert, rows: Sequence[Row]) -> Rows:
        self._will_change |= not re.search(r" WHERE |NOTHING", insert.conflict)
        columns = ", ".join((SPACE_ID, *insert.columns))
        kinds = tables()[insert.table].columns
        arrays = ", ".join(f"?{n}::{kinds[name]}[]" for n, name in enumerate(insert.given, 1))
        chosen = ", ".join(insert.constants.get(name, f"n.{name}") for name in insert.columns)
        values = [list(column) for column in zip(*rows, strict=True)]
        return self.run(
            f"INSERT INTO {SCHEMA}.{insert.table} ({columns}) SELECT :space, {chosen}"
            f" FROM unnest({arrays}) AS n ({', '.join(insert.given)}) {insert.conflict}",
            values,
            values[0] if insert.table == "meta" and insert.given[0] == "name" else (),
        )

    # The word index

    def _maintain_words(self, table: str, sql: str) -> Rows:
        """Carry out the special statements of SQLite's word tables."""
        if "'rebuild'" in sql:
            _rebuild_words(self, table)
        elif "'integrity-check'" in sql:
            _require_consistent(self, table)
        return Rows()

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


_TEXT_BATCH = 500
_SELECT_TEXTS = "SELECT rid, text, original FROM item AS i WHERE i.rid > ? ORDER BY i.rid LIMIT ?"
_SELECT_GRAMS = "SELECT i.rid, i.folded FROM gram AS i WHERE i.rid > ? ORDER BY i.rid LIMIT ?"


def _rebuild_words(session: Session, table: str) -> None:
    """Rebuild what stands for one of SQLite's word tables."""
    if table == "grams":
        session.execute("DELETE FROM gram")
        for rows in _batches_of(session, _SELECT_TEXTS):
            session.write_grams(rows)
    elif table == "vocabulary":
        session.execute("DELETE FROM term_gram")
        session.write_vocabulary(session.execute("SELECT tid, t FROM term").fetchall())


def _require_consistent(session: Session, table: str) -> None:
    """Raise the error of SQLite where a word index does not match what it is made from."""
    if table == "grams" and not _are_grams_right(session):
        raise apsw.CorruptError("the folded texts do not match the memories")
    if table == "vocabulary" and not _is_vocabulary_right(session):
        raise apsw.CorruptError("the trigrams do not match the vocabulary")


def _are_grams_right(session: Session) -> bool:
    stored: dict[int, str] = dict(
        row for rows in _batches_of(session, _SELECT_GRAMS) for row in rows
    )
    for rows in _batches_of(session, _SELECT_TEXTS):
        for rid, text, original in rows:
            if stored.pop(rid, None) != words.folded_text(text, original):
                return False
    return not stored


def _is_vocabulary_right(session: Session) -> bool:
    stored: dict[int, set[str]] = {}
    for gram, tid in session.execute("SELECT g.gram, g.tid FROM term_gram AS g"):
        stored.setdefault(tid, set()).add(gram)
    terms = session.execute("SELECT tid, t FROM term").fetchall()
    expected = {tid: set(words.vocabulary_trigrams([term])) for tid, term in terms}
    return stored == {tid: grams for tid, grams in expected.items() if grams}


def _batches_of(session: Session, sql: str) -> Iterator[list[Row]]:
    last = -1
    while rows := session.execute(sql, (last, _TEXT_BATCH)).fetchall():
        yield rows
        last = rows[-1][0]
