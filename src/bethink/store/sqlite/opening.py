"""Open a space: recognise the file, create it if it is new, migrate its schema."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

import apsw

from bethink.core.atomic_write import fsync_folder
from bethink.errors import NotFound, StoreDamaged, StoreError
from bethink.store.sqlite import schema
from bethink.store.sqlite.connection import (
    APPLICATION_ID,
    WAL_ERRORS,
    WRITE_ERRORS,
    SqliteConnections,
)
from bethink.store.sqlite.errors import translate_errors
from bethink.store.sqlite.files import (
    has_content,
    key_path,
    make_private_file,
    make_private_folder,
    wal_path,
)
from bethink.store.sqlite.lock import TIMEOUT_S, hold_lock

# What a new space consists of, by its migrations.
_EMPTY_SPACES: dict[tuple[schema.Migration, ...], bytes] = {}

# SQLite before these releases can lose commits when a write and a checkpoint meet in
# WAL mode; 3.52.0 was withdrawn.
_FIXED_VERSION = (3, 51, 3)
_FIXED_BRANCHES = {(3, 44): 6, (3, 50): 7}
_WITHDRAWN_VERSION = (3, 52, 0)


def is_safe_sqlite(release: str) -> bool:
    """Whether this SQLite release keeps committed writes in WAL mode."""
    numbers = tuple(int(part) for part in release.split("."))[:3]
    if numbers == _WITHDRAWN_VERSION:
        return False
    patch = _FIXED_BRANCHES.get((numbers[0], numbers[1]))
    return numbers >= _FIXED_VERSION or (patch is not None and numbers[2] >= patch)


def require_safe_sqlite(version: str) -> None:
    """Raise StoreError for a SQLite that may lose committed writes."""
    if not is_safe_sqlite(version):
        raise StoreError(
            f"SQLite {version} can lose committed writes (its WAL-reset bug)",
            remedy="pip install -U 'apsw>=3.51.3'",
        )


_RETRY_DELAYS_S = (0.01, 0.05, 0.1, 0.2)


def open_space(path: Path | None, *, create: bool) -> SqliteConnections:
    """Open a space and bring its schema to the version of this release.

    A file of another program is refused and left exactly as it was.
    """
    require_safe_sqlite(apsw.sqlite_lib_version())
    if path is not None:
        path = path.absolute()
        try:
            _require_no_device(path)
            _require_not_emptied(path)
            if not create and not has_content(path):
                raise NotFound(f"there is no space at {path}", remedy="bethink spaces lists them")
            make_private_folder(path.parent)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be opened: {(error.strerror or str(error)).lower()}",
                remedy="check that you own its folder",
            ) from error
    connections = SqliteConnections(path)
    try:
        with translate_errors(connections.name):
            _prepare_space(connections)
    except BaseException:
        connections.close()
        raise
    return connections


def _require_no_device(path: Path) -> None:
    """Raise StoreError for a device, pipe or socket: a new space would replace it."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise StoreError(
            f"{path} is no file; it was not changed", remedy="choose the path of a file"
        )


def _require_not_emptied(path: Path) -> None:
    """Raise StoreDamaged where the files next to it show that it held memories.

    SQLite would delete the log of an empty file, and with it the memories. The secret is made
    for a file that is complete; who removes a space by hand may leave it.
    """
    if has_content(path):
        return
    beside = {"log": wal_path(path)} | ({"secret": key_path(path)} if path.exists() else {})
    for what, left in beside.items():
        if has_content(left):
            raise StoreDamaged(
                f"{path} is empty or missing, although its {what} {left.name} is not",
                remedy=f"restore the file from a backup; the {what} was not changed",
            )


def _prepare_space(connections: SqliteConnections) -> None:
    path = connections.path
    if path is None:
        _create_schema(connections.for_thread())
        return
    if not has_content(path):
        with hold_lock(connections.lock, connections.name):
            # Another process may have created it while this one waited.
            if not has_content(path):
                _create_space(path)
    _require_own_file(path)
    found = _read_schema_version(connections, path)
    schema.require_supported_schema(found, connections.name)
    if connections.is_read_only and found == schema.SCHEMA_VERSION:
        return
    db = connections.for_thread()
    if found < schema.SCHEMA_VERSION or db.execute("PRAGMA journal_mode").get != "wal":
        with hold_lock(connections.lock, connections.name):
            schema.require_supported_schema(schema.schema_version(db), connections.name)
            db.execute("PRAGMA journal_mode = WAL")
            schema.migrate(db, path, schema.migrations())


def _create_schema(db: apsw.Connection) -> None:
    """Make the pages of an empty space once in a process; copy them into each: far faster."""
    steps = schema.migrations()
    with closing(apsw.Connection(":memory:")) as source:
        if (empty := _EMPTY_SPACES.get(steps)) is None:
            schema.migrate(source, None, steps)
            _EMPTY_SPACES[steps] = source.serialize("main")
        else:
            source.deserialize("main", empty)
        with db.backup("main", source, "main") as copy:
            copy.step()


def _read_schema_version(connections: SqliteConnections, path: Path) -> int:
    """Return the file's schema version; open it read-only where it cannot be written.

    That is where no log can be created next to it (a full disk, a read-only file system)
    and none is needed.
    """
    try:
        with translate_errors(connections.name):
            return schema.schema_version(connections.for_thread())
    except StoreError as error:
        why = _unwritable_reason(path.parent)
        if not why and isinstance(error.__cause__, WRITE_ERRORS):
            why = str(error.__cause__)
        if not why or not isinstance(error.__cause__, WAL_ERRORS) or has_content(wal_path(path)):
            raise
        connections.set_read_only(why)
    found = schema.schema_version(connections.for_thread())
    if found < schema.SCHEMA_VERSION:
        raise StoreError(
            f"{path} needs a migration, but cannot be written",
            remedy="free some space, or make it writable",
        )
    return found


def _unwritable_reason(folder: Path) -> str:
    """Return why a folder cannot be written, where the system says so; else ""."""
    if not hasattr(os, "statvfs"):
        return ""
    file_system = os.statvfs(folder)
    if file_system.f_flag & os.ST_RDONLY:
        return "its file system is read-only"
    if file_system.f_bavail == 0:
        return "the disk is full"
    return "" if os.access(folder, os.W_OK) else "its folder is not writable"


def _create_space(path: Path) -> None:
    """Create the file under a temporary name and rename it when it is complete.

    The rename is atomic, so that no process sees half a space.
    """
    _require_not_emptied(path)
    unfinished = path.with_name(f"{path.name}.new")
    for rest in ("", "-wal", "-shm", "-journal"):
        unfinished.with_name(unfinished.name + rest).unlink(missing_ok=True)
    make_private_file(unfinished)
    with closing(apsw.Connection(str(unfinished), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
        _create_schema(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
        db.execute("PRAGMA journal_mode = WAL")
        # Closing would do the same, but not report a full disk.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    unfinished.replace(path)
    fsync_folder(path.parent)


def _require_own_file(path: Path) -> None:
    """Raise StoreDamaged for a file that is not a space, without touching it.

    Reads through SQLite: a handle of our own, once closed, would drop the locks that other
    connections of this process hold on the file. ``immutable`` makes SQLite read the file
    alone and create no log. It takes no lock either, so it may read the file while another
    process checkpoints; then it retries.
    """
    for wait_s in (*_RETRY_DELAYS_S, None):
        try:
            found = _application_id(path)
            break
        except (apsw.NotADBError, apsw.CorruptError) as error:
            if wait_s is None:
                raise _unreadable_error(path) from error
            time.sleep(wait_s)
    if found != APPLICATION_ID:
        raise StoreDamaged(
            f"{path} is a database of another program",
            remedy="choose another file; this one was not changed",
        )


def _unreadable_error(path: Path) -> StoreDamaged:
    """Say why SQLite reads nothing of a file: it is none of its own, or was cut off."""
    whole = _stated_size(path)
    size = path.stat().st_size
    if size >= whole:
        return StoreDamaged(
            f"{path} is not a database", remedy="choose another file; this one was not changed"
        )
    return StoreDamaged(
        f"{path} is cut off: {size:,} of {whole:,} bytes are there; it was not changed",
        remedy="restore it from a backup; or save the rest: copy it,"
        f" truncate -s {whole} COPY, bethink export with the copy",
    )


def _stated_size(path: Path) -> int:
    """Return how many bytes a database should have by its header; 0 where it is none."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        return 0
    page = int.from_bytes(header[16:18], "big")
    return (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")


def _application_id(path: Path) -> int:
    try:
        return _read_application_id(path, "mode=ro&immutable=1")
    except (apsw.NotADBError, apsw.CorruptError):
        if not has_content(wal_path(path)):
            raise
        # A process killed during a checkpoint leaves a file that is complete only
        # together with its log.
        return _read_application_id(path, "mode=ro")


def _read_application_id(path: Path, options: str) -> int:
    uri = f"{path.as_uri()}?{options}"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(uri, flags=flags)) as db:
        # Another process may be recovering the log after a crash.
        db.set_busy_timeout(int(TIMEOUT_S * 1000))
        return int(db.execute("PRAGMA application_id").get)
