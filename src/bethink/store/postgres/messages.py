"""What a transaction sends with one message, and the rows it has read ahead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import psycopg
from psycopg import pq
from psycopg.rows import tuple_row

from bethink.core.named_tuple import NamedTuple
from bethink.store.sql.connection import Row

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
