"""Opening a space: recognise the file, make it if it is new, bring it up to date."""

from __future__ import annotations

from pathlib import Path

import apsw

from recollect.errors import NotFound, StoreDamaged
from recollect.store.sqlite.connection import APPLICATION_ID, Connections, require_safe_engine
from recollect.store.sqlite.files import make_file, make_folder
from recollect.store.sqlite.lock import holding
from recollect.store.sqlite.migrate import (
    SCHEMA_VERSION,
    migrate,
    migrations,
    require_known,
    schema_version,
)
from recollect.store.sqlite.translate import translated


def open_space(path: Path | None, *, create: bool) -> Connections:
    """Connections to a space whose schema is the one this version knows.

    A file that is not ours is refused and left exactly as it was.
    """
    require_safe_engine(apsw.sqlite_lib_version())
    if path is not None:
        path = path.absolute()
        if not path.exists() and not create:
            raise NotFound(f"there is no space at {path}", remedy="recollect spaces lists them")
        make_folder(path.parent)
    connections = Connections(path)
    try:
        with translated(connections.name):
            _bring_up_to_date(connections)
    except BaseException:
        connections.close()
        raise
    return connections


def _bring_up_to_date(connections: Connections) -> None:
    path = connections.path
    if path is not None and _has_content(path):
        _recognise(path)
        found = schema_version(connections.mine())
        require_known(found, connections.name)
        if found == SCHEMA_VERSION:
            return
    with holding(connections.lock, connections.name):
        if path is not None:
            _make(path)
        db = connections.mine()
        if path is not None:
            _set_up(db)
        # Another process may have done it, or a newer one more, while we waited.
        require_known(schema_version(db), connections.name)
        migrate(db, path, migrations())


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _make(path: Path) -> None:
    if make_file(path) or _has_content(path):
        if _has_content(path):
            _recognise(path)
        return
    log = path.with_name(f"{path.name}-wal")
    if _has_content(log):
        # SQLite would throw the log of an empty file away, and with it the memories.
        raise StoreDamaged(
            f"{path} is empty although its log {log.name} is not",
            remedy="put the file back from a backup; both were left as they are",
        )


def _set_up(db: apsw.Connection) -> None:
    # The id goes in before the log exists, so that the file itself always tells whose
    # it is; afterwards both are there already and nothing is written.
    if db.execute("PRAGMA application_id").get != APPLICATION_ID:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
    if db.execute("PRAGMA journal_mode").get != "wal":
        db.execute("PRAGMA journal_mode = WAL")


def _recognise(path: Path) -> None:
    """Refuses a file that is not one of our spaces, without touching it.

    Reads through SQLite: a handle of our own, once closed, would drop the locks that
    other connections of this process hold on the file. ``immutable`` makes it look
    at the file alone and leave no log beside it.
    """
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    try:
        db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            found = db.execute("PRAGMA application_id").get
        finally:
            db.close()
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreDamaged(
            f"{path} is not a database", remedy="choose another file; it was left as it is"
        ) from error
    if found != APPLICATION_ID:
        raise StoreDamaged(
            f"{path} is a database of another program",
            remedy="choose another file; it was left as it is",
        )
