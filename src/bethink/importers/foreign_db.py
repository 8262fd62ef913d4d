"""Read another program's SQLite database without leaving a trace in it.

It is opened read-only, never migrated and never trusted: only plain tables are read,
cells that are too large are not loaded, and invalid UTF-8 is not text. No lock is held
while rows are imported.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from bethink.core.json_values import parse_strict_json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, Refused, StoreBusy, TooLarge
from bethink.importers.streams import read_text_file

MAGIC = b"SQLite format 3\x00"
MAX_CELL_BYTES = 4 * 1024 * 1024
_BUSY_TIMEOUT_MS = 5_000
_SAFE_PRAGMAS = "PRAGMA query_only=ON; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON"
_SELECT_TABLES = """
    SELECT CAST(name AS BLOB) FROM sqlite_schema
    WHERE type = 'table' AND sql LIKE 'create table%'
"""
_SELECT_COLUMNS = "SELECT CAST(name AS BLOB) FROM pragma_table_info(?)"
_ROW_ID_NAMES = ("rowid", "_rowid_", "oid")  # names of the row id; a column may use one of them
_IS_WITHOUT_ROWID = "SELECT max(wr) FROM pragma_table_list WHERE name = ?"


class ForeignRow(NamedTuple):
    """One row: its cells by column, as bytes, or why one is not read.

    ``refused`` is why the row is not: a column that was asked for by its name is too large.
    """

    where: str
    cells: Mapping[str, bytes | Refused | None]
    refused: Refused | None = None

    def text(self, column: str) -> str:
        """Return the cell as stripped text; empty where there is none."""
        cell = self.cells.get(column)
        if cell is None:
            return ""
        if isinstance(cell, Refused):
            raise cell
        try:
            return cell.decode().strip()
        except UnicodeDecodeError as error:
            raise BadText(f"{column} is not UTF-8 at byte {error.start + 1}") from error

    def text_or_refusal(self, column: str) -> str | Refused:
        """Return the cell as stripped text, or why it cannot be read."""
        try:
            return self.text(column)
        except Refused as refused:
            return refused

    def first(self, *columns: str) -> str:
        """Return the first of these cells that is not empty, with invalid characters replaced."""
        cells = (self.cells.get(column) for column in columns)
        texts = (cell.decode("utf-8", "replace") for cell in cells if isinstance(cell, bytes))
        return next(filter(None, texts), "")

    def number(self, column: str) -> float | None:
        """Return the cell as a number, or None."""
        cell = self.cells.get(column)
        try:
            return float(cell if isinstance(cell, bytes) else b"")
        except ValueError:
            return None


class ForeignDb:
    """A foreign database that is open for reading."""

    def __init__(self, db: apsw.Connection, name: str) -> None:
        self._db = db
        self._name = name

    def tables(self) -> dict[str, frozenset[str]]:
        """Return its plain tables and their columns."""
        with _translate_errors(self._name):
            return {
                name: frozenset(self._names(_SELECT_COLUMNS, name))
                for name in self._names(_SELECT_TABLES)
            }

    def _names(self, sql: str, *of: str) -> list[str]:
        """Return names of tables or columns; those that are not UTF-8 are left out."""
        found = (row[0] for row in self._db.execute(sql, of))
        names = (name.decode("utf-8", "replace") for name in found if isinstance(name, bytes))
        return [name for name in names if "\ufffd" not in name]

    def require(self, remedy: str, **required: Sequence[str]) -> None:
        """Raise Refused if tables or columns are missing; ``remedy`` names the supported ones."""
        tables = self.tables()
        for table, columns in required.items():
            if table not in tables:
                raise Refused(f"{self._name} has no table {table}", remedy=remedy)
            for column in columns:
                if column not in tables[table]:
                    raise Refused(f"{self._name}: {table} has no column {column}", remedy=remedy)

    def count(self, *tables: str) -> int:
        """Return how many rows these tables have; missing tables count 0."""
        there = self.tables()
        with _translate_errors(self._name):
            return sum(
                int(self._db.execute(f"SELECT count(*) FROM {_quote_identifier(table)}").get)  # noqa: S608
                for table in tables
                if table in there
            )

    def rows(self, table: str, names: Sequence[str], order: Sequence[str]) -> Iterator[ForeignRow]:
        """Yield the rows of a table, if it exists, with those of the columns that it has.

        Without names it is all of them; then one that is too large does not refuse the row.
        """
        columns = self.tables().get(table, frozenset())
        present = [column for column in names or sorted(columns) if column in columns]
        if not present:
            return
        quoted = [_quote_identifier(column) for column in present]
        # The size of a cell is told without loading it; of one that is too large it stands for it.
        cells = ", ".join(
            f"iif(octet_length({name}) <= {MAX_CELL_BYTES}, CAST({name} AS BLOB),"
            f" octet_length({name}))"
            for name in quoted
        )
        sorting = ", ".join(_quote_identifier(column) for column in order if column in columns)
        # Only quoted column names vary in this statement.
        select_sql = f"SELECT {cells} FROM {_quote_identifier(table)}"  # noqa: S608
        with _translate_errors(self._name):
            for number, found in self._select_each(table, select_sql, sorting, columns):
                read = dict(zip(present, map(_cell, found), strict=True))
                spoiling = (cell for cell in read.values() if names and isinstance(cell, Refused))
                yield ForeignRow(f"row {number} of {table}", read, next(spoiling, None))

    def _select_each(
        self, table: str, select_sql: str, sorting: str, columns: frozenset[str]
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Select each row, numbered from 1, one statement per row id.

        A row may take long to be imported. While a statement is open between two rows, the
        program that owns the database could not write.
        """
        sql = f" ORDER BY {sorting}" if sorting else ""
        own = next((name for name in _ROW_ID_NAMES if name not in columns), None)
        if own is None or self._db.execute(_IS_WITHOUT_ROWID, (table,)).get:
            yield from enumerate(self._db.execute(select_sql + sql).fetchall(), start=1)
            return
        ids, damage = self._row_ids(f"SELECT {own} FROM {_quote_identifier(table)}{sql}")  # noqa: S608
        for number, row_id in enumerate(ids, start=1):
            for row in self._db.execute(f"{select_sql} WHERE {own} = ?", (row_id,)).fetchall():
                yield number, row
        if damage is not None:
            raise damage

    def _row_ids(self, sql: str) -> tuple[array[int], apsw.Error | None]:
        """Return the row ids, and the error that stopped reading more of them."""
        ids = array("q")
        try:
            for (row_id,) in self._db.execute(sql):
                ids.append(row_id)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return ids, error
        return ids, None


def _cell(found: bytes | int | None) -> bytes | Refused | None:
    """Return a cell, or why it is not read where its size was found."""
    if isinstance(found, int):
        return TooLarge("a cell", limit=MAX_CELL_BYTES, actual=found)
    return found


class ForeignRecords:
    """Tables of JSON records, read like a database: lists, or one file per record.

    A record's fields are its cells. ``folder`` has a folder of JSON files for each table.
    """

    def __init__(
        self, name: str, tables: Mapping[str, Sequence[object]], folder: Path | None = None
    ) -> None:
        self._name = name
        self._tables = tables
        self._folder = folder

    def count(self, *tables: str) -> int:
        """Return how many records these tables have."""
        return sum(1 for table in tables for _ in self._records(table))

    def rows(self, table: str, names: Sequence[str], order: Sequence[str]) -> Iterator[ForeignRow]:
        """Yield the records of a table, with those of the columns that they have."""
        records = list(self._records(table))
        records.sort(key=lambda pair: [str(pair[1].get(name)) for name in order]
                     if isinstance(pair[1], dict) else [])  # fmt: skip
        for where, record in records:
            if isinstance(record, Refused):
                yield ForeignRow(where, {}, record)
                continue
            whole = record if "data" in record else {**record, "data": record}
            yield ForeignRow(where, {name: _json_cell(whole.get(name)) for name in names or whole})

    def _records(self, table: str) -> Iterator[tuple[str, dict[str, object] | Refused]]:
        for number, record in enumerate(self._tables.get(table, ()), start=1):
            yield f"{table} {number}", _record_or_refusal(record)
        for path in sorted((self._folder / table).glob("*.json")) if self._folder else ():
            yield f"{table}/{path.name}", _read_record(path)


def _read_record(path: Path) -> dict[str, object] | Refused:
    """Read the record of a file, which may be wrapped with its kind and version."""
    text = read_text_file(path)
    if isinstance(text, Refused):
        return text
    try:
        found = parse_strict_json(text)
    except Refused as refused:
        return refused
    return _record_or_refusal(found.get("record", found) if isinstance(found, dict) else None)


def _record_or_refusal(record: object) -> dict[str, object] | Refused:
    return record if isinstance(record, dict) else Refused("the record is not a JSON object")


def _json_cell(value: object) -> bytes | None:
    """Return a JSON value as a database would give it: text as it is, the rest as JSON."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


@contextmanager
def open_foreign(path: Path) -> Iterator[ForeignDb]:
    """Open the database of that file without disturbing a program that writes to it."""
    with _safe_copy(path) as place:
        with _translate_errors(path.name):
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            db = apsw.Connection(_sqlite_uri(place), flags=flags)
        try:
            with _translate_errors(path.name):
                db.set_busy_timeout(_BUSY_TIMEOUT_MS)
                db.execute(_SAFE_PRAGMAS)
                db.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018
            yield ForeignDb(db, path.name)
        finally:
            db.close()


@contextmanager
def _safe_copy(path: Path) -> Iterator[Path]:
    """Yield the file to read: a copy where it has a log that no program has open.

    SQLite would otherwise create another file next to it to read the two together.
    """
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if not _is_wal_mode(path) or not log.exists() or index.exists():
        yield path
        return
    with TemporaryDirectory(prefix="bethink-import-") as folder:
        for source in (path, log):
            copyfile(source, Path(folder) / source.name)
        yield Path(folder) / path.name


def is_database(path: Path) -> bool:
    """Whether the file is a SQLite database, by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _sqlite_uri(path: Path) -> str:
    """Return the URI by which SQLite opens the file.

    For a database in WAL mode that no program has open, SQLite would create files next to
    it; with ``immutable`` it creates none.
    """
    still = _is_wal_mode(path) and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}?{'immutable=1' if still else 'mode=ro'}"


def _is_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    """Translate SQLite errors to one sentence."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy(f"{name} is in use by another program", remedy="try again") from error
    except apsw.Error as error:
        raise Refused(
            f"{name} cannot be read: {error}",
            remedy="if the other program is running, close it and try again",
        ) from error
