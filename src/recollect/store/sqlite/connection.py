"""Connections to one space: one for each thread, set up alike, closed together."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import apsw

from recollect.errors import StoreBusy, StoreError
from recollect.store.sqlite.files import has_content, log_of
from recollect.store.sqlite.lock import TIMEOUT_S, FileLock, ThreadLock, WriteLock, holding
from recollect.store.sqlite.translate import translated
from recollect.store.sqlite.warmth import heat_band

APPLICATION_ID = 0x52434C54  # "RCLT"

_PRAGMAS = """
PRAGMA synchronous=FULL;
PRAGMA foreign_keys=ON;
PRAGMA secure_delete=ON;
PRAGMA temp_store=MEMORY;
PRAGMA trusted_schema=OFF;
PRAGMA cache_size=-8192;
PRAGMA journal_size_limit=16777216;
"""
_STATEMENTS = 250
_WRITABLE = apsw.SQLITE_OPEN_READWRITE
# What SQLite says where no log can be made beside a file, the first two of a full disk.
FAILED_WRITE = (apsw.IOError, apsw.FullError)
NO_LOG = (*FAILED_WRITE, apsw.CantOpenError, apsw.ReadOnlyError)
_GENERATION = "UPDATE meta SET value = value + 1 WHERE name = 'generation'"
Row = tuple[Any, ...]
Bindings = Sequence[int | float | str | bytes | None]

_numbers = itertools.count(1)

# SQLite before these releases can lose commits when a write and a checkpoint meet in
# WAL mode; 3.52.0 was withdrawn.
_FIXED = (3, 51, 3)
_FIXED_BRANCHES = {(3, 44): 6, (3, 50): 7}
_WITHDRAWN = (3, 52, 0)


def is_safe_engine(version: str) -> bool:
    """Whether this release of SQLite keeps what it has committed in WAL mode."""
    numbers = tuple(int(part) for part in version.split("."))[:3]
    if numbers == _WITHDRAWN:
        return False
    patch = _FIXED_BRANCHES.get((numbers[0], numbers[1]))
    return numbers >= _FIXED or (patch is not None and numbers[2] >= patch)


def require_safe_engine(version: str) -> None:
    """Refuses to work with a SQLite that may lose what it has committed."""
    if not is_safe_engine(version):
        raise StoreError(
            f"SQLite {version} can lose committed writes (its WAL-reset bug)",
            remedy="pip install -U 'apsw>=3.51.3'",
        )


class Connections:
    """The way to one space's database, for all threads of this process."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lock: WriteLock
        if path is None:
            # Shared by name within the process; gone with its last connection.
            self._target = f"file:/recollect-{os.getpid()}-{next(_numbers)}?vfs=memdb"
            self._flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
            self._flags |= apsw.SQLITE_OPEN_URI
            self.lock = ThreadLock()
        else:
            self._target = str(path)
            self._flags = _WRITABLE
            self.lock = FileLock(path.with_name(f"{path.name}.lock"))
        self._process = os.getpid()
        self._local = threading.local()
        self._guard = threading.Lock()
        self._open: list[tuple[threading.Thread | None, apsw.Connection]] = []
        self._closed = False
        self._unwritable = ""
        self._was_unwritable = False
        # Those that look at the file alone, and how it was before they did.
        self._alone = WeakKeyDictionary[apsw.Connection, tuple[int, ...]]()

    @property
    def name(self) -> str:
        """The file as people know it."""
        return "the space in memory" if self.path is None else str(self.path)

    @property
    def is_read_only(self) -> bool:
        """Whether the file can only be looked at, see `only_read`."""
        return bool(self._unwritable)

    def only_read(self, why: str) -> None:
        """The file alone is looked at, and no log is made beside it, until one can be made."""
        self._unwritable = why
        self._was_unwritable = True
        with self._guard:
            for _, db in self._open:
                db.close()
            self._open = []
            self._local = threading.local()

    def mine(self) -> apsw.Connection:
        """The connection of the calling thread."""
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.name} was opened before the process was forked",
                remedy="open it again in the new process",
            )
        db: apsw.Connection | None = getattr(self._local, "db", None)
        is_free = self._was_unwritable and db is not None and db.get_autocommit()
        if db is not None and is_free and db.readonly("main"):
            # It would show pages of before, or none of a log that others have begun since.
            self.disconnect(db)
            db = self._local.db = None
        if db is None:
            db = self._local.db = self.connect(threading.current_thread())
        return db

    def _look_again(self) -> None:
        """Finds out whether the file can be written by now, and if not, how it is read: with
        the log that somebody else has made, else by itself."""
        assert self.path is not None
        try:
            with closing(apsw.Connection(str(self.path), flags=_WRITABLE)) as trial:
                # Only the write lock's holder may move the log into the file.
                trial.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                trial.set_busy_timeout(int(TIMEOUT_S * 1000))
                trial.execute("PRAGMA user_version").fetchall()
                if not trial.readonly("main"):
                    self._unwritable = ""
            self._target, self._flags = str(self.path), _WRITABLE
        except NO_LOG:
            if has_content(log_of(self.path)):
                raise
            self._target = f"{self.path.as_uri()}?mode=ro&immutable=1"
            self._flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

    @contextmanager
    def undisturbed(self, db: apsw.Connection) -> Iterator[None]:
        """Lets nothing out that was read while somebody else wrote to the file, where no lock
        keeps them from it: what cannot be written here may be another's to write."""
        try:
            yield
        except (apsw.Error, StoreError) as error:
            self._require_undisturbed(db, error)
            raise
        self._require_undisturbed(db)

    def _require_undisturbed(self, db: apsw.Connection, error: Exception | None = None) -> None:
        if db in self._alone and self._alone[db] != self._state():
            told = f"{self.name} was written while it was read"
            raise StoreBusy(told, remedy="try again") from error

    def _state(self) -> tuple[int, ...]:
        """What is another one whenever the file was written."""
        assert self.path is not None
        try:
            found = self.path.stat()
        except OSError:
            return ()  # what is wrong with it SQLite says
        return found.st_ino, found.st_size, found.st_mtime_ns

    def connect(self, owner: threading.Thread | None = None) -> apsw.Connection:
        """A further connection, closed with the others or with the thread it is for."""
        with translated(self.name), self._guard:
            if self._closed:
                raise StoreError(f"{self.name} was closed", remedy="open it again")
            state: tuple[int, ...] = ()
            if self._unwritable:
                state = self._state()
                self._look_again()
            db = apsw.Connection(self._target, flags=self._flags, statementcachesize=_STATEMENTS)
            db.set_busy_timeout(int(TIMEOUT_S * 1000))
            db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            db.execute(_PRAGMAS)
            db.create_scalar_function("heat_band", heat_band, 5, deterministic=True)
            if state and db.open_flags & apsw.SQLITE_OPEN_URI:
                self._alone[db] = state
            self._open.append((owner, db))
            # After opening, so that a dead thread's is never the last: the last one
            # to close moves the log into the file, which needs the write lock.
            self._close_those_of_dead_threads()
        return db

    def disconnect(self, db: apsw.Connection) -> None:
        """Closes one connection that `connect` gave."""
        with translated(self.name), self._guard:
            self._open = [(owner, other) for owner, other in self._open if other is not db]
            db.close()

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """A connection on which all statements see the same state of the store."""
        if self.path is None:
            # In memory readers would block writers at commit, and the other way round.
            with holding(self.lock, self.name), self._snapshot() as db:
                yield db
        else:
            with self._snapshot() as db:
                yield db

    @contextmanager
    def _snapshot(self) -> Iterator[apsw.Connection]:
        with translated(self.name):
            db = self.mine()
            if not db.get_autocommit():
                yield db
                return
            db.execute("BEGIN")
            try:
                with self.undisturbed(db):
                    yield db
            finally:
                if not db.get_autocommit():
                    db.execute("COMMIT")

    @contextmanager
    def writing(self, *, keep: bool = True) -> Iterator[apsw.Connection]:
        """A connection inside a transaction that writes: all of it happens or nothing.

        When this is left without an error, what was written survives a crash. Without
        ``keep`` nothing is written after all.
        """
        self._require_writable()
        with translated(self.name), holding(self.lock, self.name):
            db = self.mine()
            if not db.get_autocommit():
                raise StoreError(
                    "nothing can be written while a snapshot is held or a write is under way",
                    remedy="write after it",
                )
            db.execute("BEGIN IMMEDIATE")
            try:
                before = db.total_changes()
                yield db
                if db.total_changes() != before:
                    db.execute(_GENERATION)
                db.execute("COMMIT" if keep else "ROLLBACK")
            except BaseException:
                # Some errors (a full disk) have already undone the transaction.
                if not db.get_autocommit():
                    db.execute("ROLLBACK")
                raise

    def _require_writable(self) -> None:
        if self._unwritable:
            self.mine()  # looks again
        if self._unwritable:
            raise StoreError(
                f"{self.name} cannot be written, {self._unwritable}; nothing was saved",
                remedy="free some space, or make it writable, then try again",
            )

    def close(self) -> None:
        """Closes every thread's connection; harmless when repeated."""
        with translated(self.name), self._guard:
            self._closed = True
            if not self._open or os.getpid() != self._process:
                return
            locked = not self._unwritable and self._try_lock()
            try:
                while self._open:
                    _, db = self._open[-1]
                    if not locked:
                        # Somebody is writing: they move the log into the file later.
                        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                    db.close()
                    self._open.pop()
            finally:
                if locked:
                    self.lock.release()

    def _try_lock(self) -> bool:
        if self.path is not None and not self.path.parent.exists():
            return False
        try:
            return self.lock.acquire(0)
        except StoreError:
            return False  # a file system that is read-only: there is nothing to move either

    def _close_those_of_dead_threads(self) -> None:
        living = []
        for owner, db in self._open:
            if owner is None or owner.is_alive():
                living.append((owner, db))
            else:
                db.close()
        self._open = living


def select(db: apsw.Connection, sql: str, values: Bindings = ()) -> list[Row]:
    """All rows of a query. The driver cannot say which types its columns have."""
    return db.execute(sql, values).fetchall()


def generation(db: apsw.Connection) -> int:
    """How many transactions have written so far."""
    return int(db.execute("SELECT value FROM meta WHERE name = 'generation'").get)
