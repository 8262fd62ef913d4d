"""Spaces as an earlier version made them, for tests of migrations."""

from __future__ import annotations

from pathlib import Path

import apsw

from bethink.store.sqlite.connection import APPLICATION_ID
from bethink.store.sqlite.schema import migrate, migrations

_TABLES = "SELECT name FROM {}.sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'"
_NEWER = ("packed", "swept", "unswept")  # names in meta that came with this schema:
_WITH_NEWER = 6
_WITHOUT_WORDS = 11


def bring_back(path: Path, version: int) -> None:
    """Give a closed space the schema of an earlier version, with all that this one held."""
    old = path.with_name(f"{path.name}.old")
    db = apsw.Connection(str(old))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA journal_mode = WAL").fetchall()
    migrate(db, None, migrations()[:version])
    db.execute("ATTACH ? AS new", (str(path),))
    kept = {name for (name,) in db.execute(_TABLES.format("new"))}
    for table in [name for (name,) in db.execute(_TABLES.format("main")) if name in kept]:
        columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
        db.execute(f"INSERT OR REPLACE INTO main.{table} ({columns})"
                   f" SELECT {columns} FROM new.{table}")  # fmt: skip
    if version < _WITH_NEWER:
        db.executemany("DELETE FROM main.meta WHERE name = ?", [(name,) for name in _NEWER])
    older = ("words",) if version < _WITHOUT_WORDS else ()
    for table in (*older, "grams", "vocabulary"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
    db.execute("DETACH new")
    db.close()
    old.chmod(0o600)
    old.replace(path)
