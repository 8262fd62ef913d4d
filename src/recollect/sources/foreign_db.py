"""Reads a SQLite database that belongs to another program, and leaves no trace in it.

Read-only, never brought up to date, and never trusted: only plain tables are read, cells
that are too large are not loaded, and what is no text is no text. No lock is held while
what was read is taken in.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import apsw

from recollect.errors import BadText, Refused, StoreBusy, TooLarge
from recollect.ingest.strict_json import strict_json

MAGIC = b"SQLite format 3\x00"
CELL_BYTES = 4 * 1024 * 1024
_WAIT_MS = 5_000
_CAUTIOUSLY = "PRAGMA query_only=ON; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON"
_TABLES = """
    SELECT CAST(name AS BLOB) FROM sqlite_schema
    WHERE type = 'table' AND sql LIKE 'create table%'
"""
_COLUMNS = "SELECT CAST(name AS BLOB) FROM pragma_table_info(?)"
_ROW_IDS = ("rowid", "_rowid_", "oid")  # names of the same; a column may have taken one
_HAS_NO_IDS = "SELECT max(wr) FROM pragma_table_list WHERE name = ?"


class Row(NamedTuple):
    """One row: its cells by column, as bytes; ``refused`` where one of them is too large."""

    where: str
    cells: Mapping[str, bytes | None]
    refused: Refused | None = None

    def text(self, column: str) -> str:
        """The cell as text, without blanks around it; empty where there is none."""
        cell = self.cells.get(column)
        if cell is None:
            return ""
        try:
            return cell.decode().strip()
        except UnicodeDecodeError as error:
            raise BadText(f"{column} is not UTF-8 at byte {error.start + 1}") from error

    def number(self, column: str) -> float | None:
        """The cell as a number, where it is one."""
        try:
            return float(self.cells.get(column) or b"")
        except ValueError:
            return None

    def json(self, column: str) -> Any:
        """The value of a cell that holds JSON; None where there is none, or no JSON."""
        if not self.cells.get(column):
            return None
        try:
            return strict_json(self.text(column))
        except Refused:
            return None


class ForeignDb:
    """A database that is open for reading."""

    def __init__(self, db: apsw.Connection, name: str) -> None:
        self._db = db
        self._name = name

    def tables(self) -> dict[str, frozenset[str]]:
        """Its plain tables and their columns."""
        with _reading(self._name):
            return {name: frozenset(self._names(_COLUMNS, name)) for name in self._names(_TABLES)}

    def _names(self, sql: str, *of: str) -> list[str]:
        """Names of tables or columns; one that is no text is none that we look for."""
        found = (row[0] for row in self._db.execute(sql, of))
        names = (name.decode("utf-8", "replace") for name in found if isinstance(name, bytes))
        return [name for name in names if "\ufffd" not in name]

    def require(self, told: str, **wanted: Sequence[str]) -> None:
        """Refuses a database that lacks tables or columns; ``told`` says which are known."""
        tables = self.tables()
        for table, columns in wanted.items():
            if table not in tables:
                raise Refused(f"{self._name} has no table {table}", remedy=told)
            for column in columns:
                if column not in tables[table]:
                    raise Refused(f"{self._name}: {table} has no column {column}", remedy=told)

    def count(self, *tables: str) -> int:
        """How many rows these tables have, those that are not there left out."""
        there = self.tables()
        with _reading(self._name):
            return sum(
                int(self._db.execute(f"SELECT count(*) FROM {_quoted(table)}").get)  # noqa: S608
                for table in tables
                if table in there
            )

    def rows(self, table: str, wanted: Sequence[str], order: Sequence[str]) -> Iterator[Row]:
        """The rows of a table, as far as it is there, with those of the columns that it has."""
        columns = self.tables().get(table, frozenset())
        present = [column for column in wanted if column in columns]
        if not present:
            return
        sizes = ", ".join(f"ifnull(octet_length({_quoted(one)}), 0)" for one in present)
        cells = ", ".join(
            f"CASE WHEN octet_length({_quoted(one)}) <= {CELL_BYTES} "
            f"THEN CAST({_quoted(one)} AS BLOB) END"
            for one in present
        )
        sorting = ", ".join(_quoted(one) for one in order if one in columns)
        # Names of columns are quoted, and those that were asked for; nothing else varies.
        told = f"SELECT max(0, {sizes}), {cells} FROM {_quoted(table)}"  # noqa: S608
        with _reading(self._name):
            for number, (largest, *found) in self._each(table, told, sorting, columns):
                where = f"row {number} of {table}"
                refused = (
                    TooLarge("a cell", limit=CELL_BYTES, actual=largest)
                    if largest > CELL_BYTES
                    else None
                )
                yield Row(where, dict(zip(present, found, strict=True)), refused)

    def _each(
        self, table: str, told: str, sorting: str, columns: frozenset[str]
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """What is told of each row, by its number from 1; one at a time, each by its id.

        A row may take long to be taken in. While a statement stands between two rows, the
        program that the database belongs to could not write.
        """
        sql = f" ORDER BY {sorting}" if sorting else ""
        own = next((name for name in _ROW_IDS if name not in columns), None)
        if own is None or self._db.execute(_HAS_NO_IDS, (table,)).get:
            yield from enumerate(self._db.execute(told + sql).fetchall(), start=1)
            return
        ids, damage = self._ids(f"SELECT {own} FROM {_quoted(table)}{sql}")  # noqa: S608
        for number, row_id in enumerate(ids, start=1):
            for row in self._db.execute(f"{told} WHERE {own} = ?", (row_id,)).fetchall():
                yield number, row
        if damage is not None:
            raise damage

    def _ids(self, sql: str) -> tuple[array[int], apsw.Error | None]:
        """The ids of rows, and what kept us from reading more of them."""
        ids = array("q")
        try:
            for (row_id,) in self._db.execute(sql):
                ids.append(row_id)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return ids, error
        return ids, None


@contextmanager
def open_foreign(path: Path) -> Iterator[ForeignDb]:
    """The database of that file. A program that is writing to it is not disturbed."""
    with _undisturbed(path) as place:
        with _reading(path.name):
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            db = apsw.Connection(_address(place), flags=flags)
        try:
            with _reading(path.name):
                db.set_busy_timeout(_WAIT_MS)
                db.execute(_CAUTIOUSLY)
                db.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018
            yield ForeignDb(db, path.name)
        finally:
            db.close()


@contextmanager
def _undisturbed(path: Path) -> Iterator[Path]:
    """The file to read: a copy where its program was cut off, or it came from elsewhere.

    Then a log lies beside it that nobody has open, and SQLite would leave another file
    there to read the two together.
    """
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if not _keeps_wal(path) or not log.exists() or index.exists():
        yield path
        return
    with TemporaryDirectory(prefix="recollect-import-") as folder:
        for one in (path, log):
            copyfile(one, Path(folder) / one.name)
        yield Path(folder) / path.name


def is_database(path: Path) -> bool:
    """Whether the file is one, by how it begins."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _address(path: Path) -> str:
    """The file as SQLite is told of it.

    Of a database in WAL mode that nobody has open, SQLite would make the files beside it to
    read it; told that it does not change, it makes none.
    """
    still = _keeps_wal(path) and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}?{'immutable=1' if still else 'mode=ro'}"


def _keeps_wal(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Says in a sentence what SQLite could not do."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy(f"{name} is in use by another program", remedy="try again") from error
    except apsw.Error as error:
        raise Refused(
            f"{name} cannot be read: {error}",
            remedy="if the other program is running, close it and try again",
        ) from error
