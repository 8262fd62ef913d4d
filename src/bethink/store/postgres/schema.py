"""The tables of the PostgreSQL schema: their columns and keys, read from the migrations."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from bethink.core.named_tuple import NamedTuple

SCHEMA = "bethink"
SPACE_ID = "space_id"
SPACE_SETTING = "bethink.space"
_MIGRATIONS_FOLDER = Path(__file__).parent / "migrations"
_TABLE = re.compile(r"CREATE TABLE bethink\.(\w+) \(\n(.*?)\n\);", re.DOTALL)
# Columns that the server computes are no columns to write.
_COLUMN = re.compile(
    r"^    ([a-z]\w*) (bigint|integer|double precision|bytea|text)\b(?!.*GENERATED)", re.MULTILINE
)
_KEY = re.compile(r"PRIMARY KEY \(([^)]*)\)")
_DROPPED = re.compile(r"DROP TABLE bethink\.(\w+);")
_NEW_COLUMN = re.compile(
    r"ALTER TABLE bethink\.(\w+)\s+ADD COLUMN (\w+) (bigint|integer|double precision|bytea|text)\b"
    r"(?![^;]*GENERATED)"
)
_NEW_KEY = re.compile(r"ALTER TABLE bethink\.(\w+)\s+ADD PRIMARY KEY \(([^)]*)\)")


class Migration(NamedTuple):
    """The SQL that leads from schema ``version - 1`` to ``version``."""

    version: int
    sql: str


class Table(NamedTuple):
    """A table: what is written into it, with types, and its key, without the space's id."""

    columns: dict[str, str]
    key: tuple[str, ...]


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all migrations, in order, from the numbered files."""
    files = sorted(_MIGRATIONS_FOLDER.glob("[0-9]*.sql"))
    return tuple(Migration(int(file.stem), file.read_text(encoding="utf-8")) for file in files)


@cache
def tables() -> dict[str, Table]:
    """Return every table that holds rows of spaces."""
    found = {}
    for migration in migrations():
        for name, body in _TABLE.findall(migration.sql):
            columns = {name: kind for name, kind in _COLUMN.findall(body) if name != SPACE_ID}
            match = _KEY.search(body)
            found[name] = Table(columns, _key(match[1]) if match else ())
        for name in _DROPPED.findall(migration.sql):
            del found[name]
        for name, column, kind in _NEW_COLUMN.findall(migration.sql):
            found[name].columns[column] = kind
        for name, key in _NEW_KEY.findall(migration.sql):
            found[name] = found[name]._replace(key=_key(key))
    return found


def _key(columns: str) -> tuple[str, ...]:
    return tuple(name for name in columns.split(", ") if name != SPACE_ID)
