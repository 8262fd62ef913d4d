"""Move a space between a file and a server: row by row, verified, resumable.

The rows of both stores are the same, so they are copied as they are, a page at a time in the
order of their keys; indexes of words and sign bits are made anew. Whoever reads the source may
go on; its write lock is held until the target was compared with it. Then the source refuses
writes, and only then the target can be opened. A move that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import apsw
import numpy as np
import psycopg

from bethink.core.atomic_write import fsync_folder
from bethink.errors import Refused, StoreDamaged, StoreError
from bethink.ports import Progress
from bethink.store.postgres.db import opening
from bethink.store.postgres.db.connections import ARRIVING, LEFT, SERVING_ROLE, PgConnections
from bethink.store.postgres.db.schema import SCHEMA, SPACE_ID, tables
from bethink.store.postgres.db.server import shown_url
from bethink.store.postgres.db.session import Session
from bethink.store.sqlite.db import history
from bethink.store.sqlite.db import opening as files
from bethink.store.sqlite.db.connection import Connections, generation, select
from bethink.store.sqlite.db.lock import FileLock, has_content, hold_lock, key_path, wal_path
from bethink.store.sqlite.search import vector_index

_PAGE = 1_000
_MADE_ANEW = frozenset({"space", "meta", "gram", "term_gram", "chunk", "chunk_slot", "event"})
_KEYS = {"file_snapshot": ("path",)}
_COMPUTED = frozenset({"edit_hash", "path_hash"})
# What a store says of itself, and not of its memories.
_OWN_META = frozenset(
    {"generation", "journal", "journal_keys", "swept", "unswept", "unscrubbed", "moving"}
)
_SET_META = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
_MOVED_TRIGGER = "moved_away"
Row = tuple[Any, ...]


class Moved(NamedTuple):
    """A finished move: rows by table, and whether it went on with an earlier one."""

    rows: dict[str, int]
    resumed: bool
    already: bool = False


class Place(Protocol):
    """Where a space is, or is moved to."""

    name: str

    def has_space(self) -> bool:
        """Whether a space is there that can be used."""
        ...

    def has_left(self) -> bool:
        """Whether a space is there that was moved to another place."""
        ...

    def open_source(self) -> Connections:
        """Open the space to be read, whether it has left or not."""
        ...

    def open_target(self, *, anew: bool) -> Connections:
        """Open what is to become the space; begin again if ``anew``."""
        ...

    def leave(self, db: apsw.Connection, to: str) -> None:
        """Refuse writes from now on, in the caller's transaction."""
        ...

    def arrive(self, connections: Connections) -> None:
        """Make the space that was opened as a target usable; close it."""
        ...


class InFile:
    """A space in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.name = str(self.path)
        self._arriving = self.path.with_name(f"{self.path.name}.moving")

    def has_space(self) -> bool:
        """Whether a space is there that can be used."""
        return has_content(self.path) and not self.has_left()

    def has_left(self) -> bool:
        """Whether a space is there that was moved to another place."""
        if not has_content(self.path):
            return False
        connections = files.open_space(self.path, create=False)
        try:
            with connections.read_transaction() as db:
                sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
                return bool(db.execute(sql, (_MOVED_TRIGGER,)).get)
        finally:
            connections.close()

    def open_source(self) -> Connections:
        """Open the space to be read, whether it has left or not."""
        return files.open_space(self.path, create=False)

    def open_target(self, *, anew: bool) -> Connections:
        """Open the file that is to become the space; begin again if ``anew``."""
        if anew:
            _remove_file(self._arriving)
        return files.open_space(self._arriving, create=True)

    def leave(self, db: apsw.Connection, to: str) -> None:
        """Refuse writes from now on, also of programs that have the file open."""
        told = f"it was moved to {to}".replace("'", "''")
        db.execute(
            f"CREATE TRIGGER IF NOT EXISTS {_MOVED_TRIGGER} BEFORE UPDATE ON meta"
            f" WHEN new.name = 'generation' BEGIN SELECT RAISE(ABORT, '{told}'); END"
        )

    def arrive(self, connections: Connections) -> None:
        """Put the file in its place; a copy that an earlier move left there goes."""
        connections.close()
        if has_content(wal_path(self._arriving)):
            raise StoreError(f"{self._arriving} is still in use", remedy="run the command again")
        with hold_lock(FileLock(self.path.with_name(f"{self.path.name}.lock")), self.name):
            _remove_file(self.path)
            self._arriving.replace(self.path)
            fsync_folder(self.path.parent)
        _remove_file(self._arriving)


def _remove_file(path: Path) -> None:
    """Remove a space's file, its logs and the secret of its journal."""
    for suffix in ("", "-wal", "-shm", ".lock" if path.suffix == ".moving" else "-journal"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    key_path(path).unlink(missing_ok=True)


class OnServer:
    """A space on a server. Its row there says by its name whether it arrives or has left."""

    def __init__(self, url: str, space: str) -> None:
        self.url = url
        self.space = space
        self.name = f"{shown_url(url)}"

    def _state(self) -> str | None:
        known = opening.known_name(self.url, self.space)
        return None if known is None else known.removeprefix(self.space)

    def has_space(self) -> bool:
        """Whether a space is there that can be used."""
        return self._state() == ""

    def has_left(self) -> bool:
        """Whether a space is there that was moved to another place."""
        return self._state() == LEFT

    def open_source(self) -> Connections:
        """Open the space to be read, whether it has left or not."""
        state = LEFT if self.has_left() else ""
        return opening.open_space(self.url, self.space, create=False, state=state)

    def open_target(self, *, anew: bool) -> Connections:
        """Open the rows that are to become the space; begin again if ``anew``."""
        state = self._state()
        if state == LEFT or (anew and state is not None):
            opening.remove_space(self.url, self.space)
        return opening.open_space(self.url, self.space, create=True, state=ARRIVING)

    def leave(self, db: apsw.Connection, to: str) -> None:
        """Refuse writes from now on: writers look for the row by its name."""
        del to  # the name has no room for it
        _rename(db, self.space + LEFT)

    def arrive(self, connections: Connections) -> None:
        """Give the row its name; the server learns how many rows there are."""
        _analyse(cast("PgConnections", connections))
        with connections.write_transaction() as db:
            _rename(db, self.space)
        connections.close()


def _rename(db: apsw.Connection, name: str) -> None:
    session = cast("Session", db)
    session.run(f"UPDATE {SCHEMA}.space SET name = ?1 WHERE {SPACE_ID} = :space", (name,))
    session.finish()


def _analyse(connections: PgConnections) -> None:
    """Tell the planner about the new rows; where the role may not, the server does it later."""
    names = ", ".join(f"{SCHEMA}.{name}" for name in tables())
    with connections.server.connection() as connection:
        try:
            connection.execute(f"SET ROLE {SERVING_ROLE}")
            connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {names}")
        except psycopg.errors.InsufficientPrivilege:
            return
        finally:
            connection.execute("RESET ROLE")


def move_space(source: Place, target: Place, progress: Progress | None = None) -> Moved:
    """Move a space; the source stays, and can only be read from then on."""
    has_left = source.has_left()
    if target.has_space():
        if has_left:
            return Moved({}, resumed=False, already=True)
        raise Refused(
            f"there is a space of this name at {target.name} already",
            remedy="remove it there first, or move to another store",
        )
    opened = source.open_source()
    try:
        with opened.write_transaction() as reading:
            copy = _Copy(reading, progress)
            arriving, resumed = _begin(source, target, reading)
            try:
                copy.run(arriving)
                rows = copy.verify(arriving, source.name)
            except BaseException:
                arriving.close()
                raise
            if not has_left:
                source.leave(reading, target.name)
                _count_as_read(reading)
        target.arrive(arriving)
    finally:
        opened.close()
    return Moved(rows, resumed)
