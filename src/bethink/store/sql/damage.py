"""What rot makes of a file: reading in spite of it, and telling which values are none."""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

import apsw

from bethink import model
from bethink.core.json_values import Json
from bethink.core.toml import parse_toml
from bethink.errors import StoreDamaged
from bethink.store.sql.connection import Bindings, Database, Row
from bethink.store.sql.sql_functions import FIRST_MS, LAST_MS

_ROW_STATEMENTS = ("SELECT", "WITH", "VALUES")
_NO_ROW = object()
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_execute, _next = apsw.Cursor.execute, apsw.Cursor.__next__.__get__
_get: Any = apsw.Cursor.get.__get__


class LenientCursor(apsw.Cursor):
    """A cursor that also reads text which is not UTF-8: its wrong bytes become U+FFFD.

    One rotten byte must not make a whole table unreadable; whether a row is what was
    stored, its hash tells. The driver itself raises UnicodeDecodeError; then the statement
    is run again with its texts as bytes.
    """

    __slots__ = ("_run",)

    def execute(self, statements: str, bindings: Any = (), **options: Any) -> apsw.Cursor:
        """Run a statement, and remember it."""
        self._run = (statements, bindings)
        return _execute(self, statements, bindings, **options)

    def fetchall(self) -> list[Any]:
        try:
            # Not the driver's own, which would take the generator of `__iter__`.
            return list(iter(_next(self), _NO_ROW))
        except UnicodeDecodeError:
            return list(self._read_again())

    @property
    def get(self) -> Any:
        try:
            return _get(self)
        except UnicodeDecodeError:
            rows: list[Any] = list(self._read_again())
            values = [row[0] for row in rows] if len(rows[0]) == 1 else rows
            return values[0] if len(values) == 1 else values

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override] # a generator costs less
        given = 0
        try:
            for row in iter(super().__next__, _NO_ROW):
                given += 1
                yield row
        except UnicodeDecodeError:
            yield from itertools.islice(self._read_again(), given, None)

    def _read_again(self) -> Iterator[Row]:
        """Yield all rows, with the text in them decoded leniently."""
        sql, bindings = self._run
        if not sql.lstrip().upper().startswith(_ROW_STATEMENTS):
            raise StoreDamaged("a text in the file is not UTF-8", remedy=REPAIR_REMEDY)
        columns = len(apsw.Cursor(self.connection).execute(sql, bindings).get_description())
        names = [f"c{number}" for number in range(columns)]
        parts = (
            f"typeof({c}) = 'text', iif(typeof({c}) = 'text', CAST({c} AS BLOB), {c})"
            for c in names
        )
        again = f"WITH q ({', '.join(names)}) AS ({sql}) SELECT {', '.join(parts)} FROM q"
        for row in apsw.Cursor(self.connection).execute(again, bindings):
            pairs = zip(row[::2], row[1::2], strict=True)
            yield tuple(decode_leniently(value) if text else value for text, value in pairs)


def decode_leniently(value: bytes) -> str:
    """Decode UTF-8; a wrong byte becomes U+FFFD."""
    return value.decode("utf-8", "replace")


# The connections that met rows which cannot be read, until the next query for them.
_unreadable = WeakSet[Database]()


def select_readable(
    db: Database,
    sql: str,
    rows: Any,
    values: Bindings = (),
    *,
    bind: Callable[[Any], Any],
    first: Bindings = (),
) -> list[Row]:
    """Return the rows of a query of which one value is a table of ids, made by ``bind``.

    It stands after the values in ``first``. Those on broken pages are left out, one by one,
    and `met_unreadable` tells of them.
    """
    try:
        return db.execute(sql, (*first, bind(rows), *values)).fetchall()
    except apsw.CorruptError:
        _unreadable.add(db)
        middle = len(rows) // 2
        if not middle:
            # With no memory ever used: usage is in another table.
            unused = "LEFT JOIN (SELECT * FROM usage LIMIT 0) AS u"
            without = sql.replace("LEFT JOIN usage AS u", unused)
            if without == sql:
                return []
            return select_readable(db, without, rows, values, bind=bind, first=first)
        halves = (rows[:middle], rows[middle:])
        read = (select_readable(db, sql, half, values, bind=bind, first=first) for half in halves)
        return [row for some in read for row in some]


def as_bytes(stored: object) -> bytes:
    """Return a stored blob; none where rot has made it something else."""
    return stored if isinstance(stored, bytes) else b""


def met_unreadable(db: Database, *, forget: bool = True) -> bool:
    """Whether any rows could not be read since the last call."""
    met = db in _unreadable
    if forget:
        _unreadable.discard(db)
    return met


EXPORT_REMEDY = "bethink doctor; then bethink export, and import it into a new space"
REPAIR_REMEDY = f"bethink doctor --repair; if that changes nothing: {EXPORT_REMEDY}"
# What code raises that meets a value which no column of its kind can hold.
VALUE_ERRORS = (
    *(TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError),
    struct.error,
)


@contextmanager
def name_damage(db: apsw.Connection, name: str) -> Iterator[None]:
    """Raise StoreDamaged where an error in the block comes from values that rot has made.

    Code trusts the types of its columns. What breaks that trust is looked for only when
    something has failed; in a space without damage the error is ours and stays as it is.
    """
    try:
        yield
    except UnicodeEncodeError:
        raise  # a text of the caller
    except VALUE_ERRORS as error:
        wrong = find_damage(db)
        if not wrong:
            raise
        raise StoreDamaged(f"{name} is damaged: {wrong}", remedy=EXPORT_REMEDY) from error


def find_damage(db: apsw.Connection) -> str:
    """Describe the first value or page that no program of ours has written; "" if none."""
    try:
        found = str(db.execute("PRAGMA main.integrity_check(1)").get)
        if found != "ok":
            return found
        return missing_counters(db) or next(unsound_values(db), "")
    except apsw.Error as error:
        return str(error)


MAX_TERM_ID = 2**32 - 1  # what a posting list holds


@cache
def sound_values() -> dict[str, str]:
    """Return by table the SQL that holds for every row, beyond what the schema says."""
    tables = parse_toml(Path(__file__).with_name("sound_values.toml").read_text("utf-8"))
    return {name: " AND ".join(_conditions(table)) for name, table in tables.items()}


def _conditions(table: Json) -> Iterator[str]:
    if "holds" in table:
        yield f"({table['holds'].strip()})"
    for name in table.get("lists", ()):
        yield f"json_valid({name}) AND json_type({name}) = 'array'"
    for name in table.get("times", ()):
        yield f"coalesce({name}, 0) BETWEEN {FIRST_MS} AND {LAST_MS}"
    for name in table.get("finite", ()):
        yield f"abs({name}) <= {sys.float_info.max!r}"
    for name, allowed in table.get("choices", {}).items():
        yield f"{name} IN ({', '.join(map(repr, getattr(model, allowed)))})"
    if table.get("classified"):
        yield "classification BETWEEN 0 AND 3"


_COUNTERS = ("entities", "generation", "journal", "packed")  # of every space
_SELECT_COUNTERS = "SELECT name FROM main.meta WHERE name IN (?, ?, ?, ?)"


def missing_counters(db: Database) -> str:
    """Name the counters that every space has and this one lacks; "" if it has all."""
    found = {row[0] for row in db.execute(_SELECT_COUNTERS, _COUNTERS)}
    missing = [repr(name) for name in _COUNTERS if name not in found]
    return f"rows of 'meta' are missing: {', '.join(missing)}" if missing else ""


def unsound_values(db: Database, *, without: str = "") -> Iterator[str]:
    """Yield which tables have rows that no program of ours has written."""
    for table, condition in sound_values().items():
        if table != without:
            sql = f"SELECT count(*) FROM main.{table} WHERE NOT coalesce(({condition}), 0)"
            if count := db.execute(sql).get:
                yield f"{count:,} rows of '{table}' have values that are none"
