"""Opening a space: recognise the file, make it if it is new, bring it up to date."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from recollect.errors import NotFound, StoreDamaged, StoreError
from recollect.store.sqlite.connection import (
    APPLICATION_ID,
    FAILED_WRITE,
    NO_LOG,
    Connections,
    require_safe_engine,
)
from recollect.store.sqlite.files import has_content, log_of, make_file, make_folder
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
        with _named(path):
            is_there = has_content(path)
            if not create and not is_there:
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


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """What the system has against a path, as an error of ours."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} cannot be opened: {(error.strerror or str(error)).lower()}",
            remedy="check that its folder is yours",
        ) from error


def _make_ready(connections: Connections) -> None:
    path = connections.path
    if path is None:
        migrate(connections.mine(), None, migrations())
        return
    if not has_content(path):
        with holding(connections.lock, connections.name):
            # Others may have waited for the lock to do the same.
            if not has_content(path):
                _create(path)
    _recognise(path)
    found = _first_look(connections, path)
    require_known(found, connections.name)
    if connections.is_read_only and found == SCHEMA_VERSION:
        return
    db = connections.mine()
    if found < SCHEMA_VERSION or db.execute("PRAGMA journal_mode").get != "wal":
        with holding(connections.lock, connections.name):
            require_known(schema_version(db), connections.name)
            db.execute("PRAGMA journal_mode = WAL")
            migrate(db, path, migrations())


def _first_look(connections: Connections, path: Path) -> int:
    """The file's schema. Where no log can be made beside it (a full disk, a file system that
    is read-only) and none is needed, the file is opened for reading alone."""
    try:
        with translated(connections.name):
            return schema_version(connections.mine())
    except StoreError as error:
        why = _hindrance(path.parent)
        if not why and isinstance(error.__cause__, FAILED_WRITE):
            why = str(error.__cause__)
        if not why or not isinstance(error.__cause__, NO_LOG) or has_content(log_of(path)):
            raise
        connections.only_read(why)
    found = schema_version(connections.mine())
    if found < SCHEMA_VERSION:
        raise StoreError(
            f"{path} must be brought up to date, and cannot be written",
            remedy="free some space, or make it writable",
        )
    return found


def _hindrance(folder: Path) -> str:
    """Why nothing can be written to a folder, where the system says so."""
    if not hasattr(os, "statvfs"):
        return ""
    room = os.statvfs(folder)
    if room.f_flag & os.ST_RDONLY:
        return "its file system is read-only"
    if room.f_bavail == 0:
        return "the disk is full"
    return "" if os.access(folder, os.W_OK) else "its folder may not be written"


def _create(path: Path) -> None:
    """Makes the file beside its place and moves it there when it is complete, so that
    nobody ever meets half a space."""
    log = log_of(path)
    if has_content(log):
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
        if not has_content(log_of(path)):
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
