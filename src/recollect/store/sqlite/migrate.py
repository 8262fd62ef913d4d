"""Brings a file to the schema this version knows, one numbered step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.errors import SchemaTooNew
from recollect.store.sqlite.files import make_file

SCHEMA_VERSION = 2
_FOLDER = Path(__file__).parent / "migrations"


class Migration(NamedTuple):
    """The SQL that leads from schema ``version - 1`` to ``version``."""

    version: int
    sql: str


def migrations(folder: Path = _FOLDER) -> tuple[Migration, ...]:
    """All steps, in order, from the numbered files."""
    files = sorted(folder.glob("[0-9]*.sql"))
    return tuple(Migration(int(file.stem), file.read_text(encoding="utf-8")) for file in files)


def schema_version(db: apsw.Connection) -> int:
    """The schema the file has; 0 for a new one."""
    return int(db.execute("PRAGMA user_version").get)


def require_known(found: int, name: str, known: int = SCHEMA_VERSION) -> None:
    """Refuses a file that a newer Recollect has changed."""
    if found > known:
        raise SchemaTooNew(
            f"{name} was written by a newer Recollect (schema {found}, this one knows {known})",
            remedy="pip install -U recollect",
        )


def migrate(db: apsw.Connection, path: Path | None, steps: Sequence[Migration]) -> Path | None:
    """Takes the steps that are missing; needs the write lock. Gives the copy it made.

    Each step is one transaction with its version number, so that a crash leaves the
    file at one version or the next. A file with memories is copied first.
    """
    found = schema_version(db)
    missing = [step for step in steps if step.version > found]
    if not missing:
        return None
    copy = _copy(db, path, found) if path is not None and found > 0 else None
    for step in missing:
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute(step.sql)
            db.execute(f"PRAGMA user_version = {step.version:d}")
            db.execute("COMMIT")
        except BaseException:
            if not db.get_autocommit():
                db.execute("ROLLBACK")
            raise
    return copy


def copies(path: Path) -> list[Path]:
    """The copies of this file made before migrations."""
    return sorted(path.parent.glob(f"{_literal(path.name)}.v*.bak"))


def _copy(db: apsw.Connection, path: Path, version: int) -> Path:
    copy = path.with_name(f"{path.name}.v{version}.bak")
    unfinished = path.with_name(f"{copy.name}.part")
    unfinished.unlink(missing_ok=True)
    # SQLite copies into an empty file that is there, and so keeps its mode.
    make_file(unfinished)
    db.execute("VACUUM INTO ?", (str(unfinished),))
    unfinished.replace(copy)
    return copy


def _literal(name: str) -> str:
    """The name as a glob pattern that means only itself."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
