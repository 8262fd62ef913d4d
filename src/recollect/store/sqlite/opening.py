"""Opening a space: recognise the file, make it if it is new, bring it up to date."""

from __future__ import annotations

import time
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
from recollect.whole_file import sync_folder

_LOOKS_AGAIN_AFTER_S = (0.01, 0.05, 0.1, 0.2)


def open_space(path: Path | None, *, create: bool) -> Connections:
    """Connections to a space whose schema is the one this version knows.

    A file that is not ours is refused and left exactly as it was.
    """
    require_safe_engine(apsw.sqlite_lib_version())
    if path is not None:
        path = path.absolute()
        if not create and not _has_content(path):
            raise NotFound(f"there is no space at {path}", remedy="recollect spaces lists them")
        make_folder(path.parent)
    connections = Connections(path)
    try:
        with translated(connections.name):
            _make_ready(connections)
    except BaseException:
        connections.close()
        raise
    return connections


def _make_ready(connections: Connections) -> None:
    path = connections.path
    if path is None:
        migrate(connections.mine(), None, migrations())
        return
    if not _has_content(path):
        with holding(connections.lock, connections.name):
            # Others may have waited for the lock to do the same.
            if not _has_content(path):
                _create(path)
    _recognise(path)
    db = connections.mine()
    found = schema_version(db)
    require_known(found, connections.name)
    if found < SCHEMA_VERSION or db.execute("PRAGMA journal_mode").get != "wal":
        with holding(connections.lock, connections.name):
            require_known(schema_version(db), connections.name)
            db.execute("PRAGMA journal_mode = WAL")
            migrate(db, path, migrations())


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _create(path: Path) -> None:
    """Makes the file beside its place and moves it there when it is complete, so that
    nobody ever meets half a space."""
    log = _log_of(path)
    if _has_content(log):
        # SQLite would throw the log of an empty file away, and with it the memories.
        raise StoreDamaged(
            f"{path} is empty or missing, although its log {log.name} is not",
            remedy="put the file back from a backup; the log was left as it is",
        )
    unfinished = path.with_name(f"{path.name}.new")
    for rest in ("", "-wal", "-shm", "-journal"):
        unfinished.with_name(unfinished.name + rest).unlink(missing_ok=True)
    make_file(unfinished)
    db = apsw.Connection(str(unfinished), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
        db.execute("PRAGMA journal_mode = WAL")
        migrate(db, None, migrations())
        # Closing would do the same, but keep silent about a full disk.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()
    unfinished.replace(path)
    sync_folder(path.parent)


def _recognise(path: Path) -> None:
    """Refuses a file that is not one of our spaces, without touching it.

    Reads through SQLite: a handle of our own, once closed, would drop the locks that
    other connections of this process hold on the file. ``immutable`` makes it look
    at the file alone and leave no log beside it. It takes no lock either, so that it may
    meet the file while another process writes its log into it: then it looks again.
    """
    for wait_s in (*_LOOKS_AGAIN_AFTER_S, None):
        try:
            found = _application_of(path)
            break
        except (apsw.NotADBError, apsw.CorruptError) as error:
            if wait_s is None:
                raise StoreDamaged(
                    f"{path} is not a database", remedy="choose another file; it was left as it is"
                ) from error
            time.sleep(wait_s)
    if found != APPLICATION_ID:
        raise StoreDamaged(
            f"{path} is a database of another program",
            remedy="choose another file; it was left as it is",
        )


def _application_of(path: Path) -> int:
    try:
        return _look_at(path, "mode=ro&immutable=1")
    except (apsw.NotADBError, apsw.CorruptError):
        if not _has_content(_log_of(path)):
            raise
        # A process killed while it wrote its log into the file leaves one that is whole
        # only together with that log.
        return _look_at(path, "mode=ro")


def _look_at(path: Path, how: str) -> int:
    uri = f"{path.as_uri()}?{how}"
    db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        return int(db.execute("PRAGMA application_id").get)
    finally:
        db.close()


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
