"""The schema of the file: its migrations, its version, and what rot made of its definitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw

from bethink.core.named_tuple import NamedTuple
from bethink.errors import SchemaTooNew, how_to_update
from bethink.store.sql.connection import Database
from bethink.store.sql.sql_functions import state_hash
from bethink.store.sqlite.files import make_private_file

SCHEMA_VERSION = 11
_VERSION_WITH_POSTINGS, _VERSION_WITHOUT_WORDS = 6, 11
_MIGRATIONS_FOLDER = Path(__file__).parent / "migrations"


class Migration(NamedTuple):
    """The SQL that leads from schema ``version - 1`` to ``version``."""

    version: int
    sql: str


def migrations(folder: Path = _MIGRATIONS_FOLDER) -> tuple[Migration, ...]:
    """Return all migrations, in order, from the numbered files."""
    files = sorted(folder.glob("[0-9]*.sql"))
    return tuple(Migration(int(file.stem), file.read_text(encoding="utf-8")) for file in files)


def schema_version(db: Database) -> int:
    """Return the schema version of the file; 0 for a new one."""
    return int(db.execute("PRAGMA user_version").get)


def require_supported_schema(found: int, name: str, known: int = SCHEMA_VERSION) -> None:
    """Raise SchemaTooNew for a file that a newer version has changed."""
    if found > known:
        raise SchemaTooNew(
            f"{name} was written by a newer Bethink (schema {found}, this one knows {known})",
            remedy=how_to_update(),
        )


def migrate(db: apsw.Connection, path: Path | None, steps: Sequence[Migration]) -> Path | None:
    """Run the missing migrations under the write lock; return the backup it made.

    Each step is one transaction with its version number, so that a crash leaves the file at
    one version or the next. A file with memories is copied first.
    """
    found = schema_version(db)
    missing = [step for step in steps if step.version > found]
    if not missing:
        return None
    copy = _backup(db, path, found) if path is not None and found > 0 else None
    db.create_scalar_function("hash_state", state_hash, 5, deterministic=True)
    if 0 < found < _VERSION_WITHOUT_WORDS:
        _renew_words(db)
    for step in missing:
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute(step.sql)
            if step.version == _VERSION_WITH_POSTINGS:
                _make_postings(db)
            db.execute(f"PRAGMA user_version = {step.version:d}")
            db.execute("COMMIT")
        except BaseException:
            if not db.get_autocommit():
                db.execute("ROLLBACK")
            raise
    return copy


def _make_postings(db: apsw.Connection) -> None:
    if db.execute("SELECT EXISTS (SELECT 1 FROM item)").get:
        # start-up time: only a migration needs it
        from bethink.store.sql.search.word_index import rebuild_postings

        rebuild_postings(db)


def _renew_words(db: apsw.Connection) -> None:
    """Make damaged settings of the old index anew, so that migrations can write and drop it."""
    try:
        db.execute("SELECT count(*) FROM words_config; SELECT 1 FROM words LIMIT 0").fetchall()
    except (apsw.CorruptError, apsw.SQLError):
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.execute(
            "BEGIN IMMEDIATE; PRAGMA writable_schema = ON; DELETE FROM sqlite_schema"
            " WHERE name = 'words_config'; PRAGMA writable_schema = RESET;"
            " CREATE TABLE words_config (k PRIMARY KEY, v) WITHOUT ROWID;"
            " INSERT INTO words_config VALUES ('version', 4); COMMIT; VACUUM"
        )
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


def _backup(db: apsw.Connection, path: Path, version: int) -> Path:
    copy = path.with_name(f"{path.name}.v{version}.bak")
    unfinished = path.with_name(f"{copy.name}.part")
    unfinished.unlink(missing_ok=True)
    # SQLite copies into the existing empty file, and so keeps its mode.
    make_private_file(unfinished)
    try:
        db.execute("VACUUM INTO ?", (str(unfinished),))
    except apsw.CorruptError:  # page by page, as they are
        other = apsw.Connection(str(unfinished))
        with other.backup("main", db, "main") as pages:
            pages.step()
        other.close()
    unfinished.replace(copy)
    return copy
