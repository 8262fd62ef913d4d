"""Connections to one space, one for each thread, and translation of SQLite errors."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import apsw

from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, BethinkError, Refused, StoreBusy, StoreDamaged, StoreError
from bethink.store.sqlite.db.checkpoint import (
    bound_log,
    list_unswept,
    transfer_if_long,
    watch_log,
)
from bethink.store.sqlite.db.damage import LenientCursor, missing_counters, name_damage
from bethink.store.sqlite.db.lock import (
    TIMEOUT_S,
    FileLock,
    JournalKey,
    ThreadLock,
    WriteLock,
    has_content,
    hold_lock,
    key_path,
    wal_path,
)
from bethink.store.sqlite.db.sql_functions import heat_band, state_hash

# Constraint failures caused by the caller's values; others would be defects of ours.
_CALLER_CONSTRAINTS = frozenset(
    {apsw.SQLITE_CONSTRAINT_CHECK, apsw.SQLITE_CONSTRAINT_DATATYPE, apsw.SQLITE_CONSTRAINT_NOTNULL}
)

# What SQLite says of a file whose tables are not defined as a migration of ours defines them.
_WRONG_SCHEMA = ("database schema", "no such ", "has no column")


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Translate apsw errors to our own; ``name`` is the file's name for messages."""
    try:
        yield
    except apsw.Error as error:
        raise _to_own_error(name, error) from error
    except UnicodeEncodeError as error:
        bad = error.object[error.start : error.end]
        raise BadText(f"{bad!a} is a lone surrogate and cannot be stored") from error
    except OverflowError as error:
        raise Refused(f"a number does not fit into the store: {error}") from error


class _ErrorRule(NamedTuple):
    """Which of our errors some driver errors become."""

    errors: tuple[type[apsw.Error], ...]
    error_type: type[BethinkError]
    message: str
    remedy: str


_RULES = (
    _ErrorRule(
        (apsw.BusyError, apsw.LockedError, apsw.ProtocolError),
        StoreBusy,
        "{name} is locked by another program",
        "close the other program, then try again",
    ),
    _ErrorRule(
        (apsw.CorruptError, apsw.NotADBError, apsw.FormatError),
        StoreDamaged,
        "{name} is damaged: {error}",
        "bethink doctor shows what can be repaired",
    ),
    _ErrorRule(
        (apsw.FullError,),
        StoreError,
        "{name} could not be written, the disk is full; nothing was saved",
        "free some space and try again",
    ),
    _ErrorRule(
        (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError),
        StoreError,
        "{name} cannot be written: {error}",
        "check the permissions of the file and its folder",
    ),
    _ErrorRule(
        (apsw.CantOpenError,),
        StoreError,
        "{name} cannot be opened: {error}",
        "check that it is a file and that you own its folder",
    ),
    _ErrorRule(
        (apsw.IOError,),
        StoreError,
        "{name} could not be read or written: {error}; nothing was saved",
        "check the disk, then run bethink doctor",
    ),
    _ErrorRule(
        (apsw.TooBigError,),
        Refused,
        "a value is too large for the store",
        "split it into smaller parts",
    ),
    _ErrorRule(
        (apsw.ConnectionClosedError, apsw.CursorClosedError),
        StoreError,
        "{name} was closed",
        "open it again",
    ),
    _ErrorRule(
        (apsw.ThreadingViolationError,),
        StoreError,
        "{name} is still in use by another thread",
        "close it when that is done",
    ),
)


def _to_own_error(name: str, error: apsw.Error) -> BethinkError:
    if getattr(error, "extendedresult", 0) in _CALLER_CONSTRAINTS:
        return Refused(f"a value is out of range: {error}")
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_TRIGGER:
        # The only trigger is the one of a space that was moved away.
        return StoreError(
            f"{name} can only be read: {str(error).removeprefix('ConstraintError: ')}",
            remedy="name the store it was moved to, with --store or bethink config set store",
        )
    if any(words in str(error) for words in _WRONG_SCHEMA):
        return StoreDamaged(
            f"{name} is damaged: {error}; it was not changed", remedy="restore it from a backup"
        )
    for rule in _RULES:
        if isinstance(error, rule.errors):
            return rule.error_type(rule.message.format(name=name, error=error), remedy=rule.remedy)
    return StoreError(f"{name} failed: {error}")


APPLICATION_ID = 0x52434C54  # "RCLT"

# The settings of every connection, as SQLite reports them once they are set.
PRAGMAS = {
    "synchronous": 2,  # FULL
    "foreign_keys": 1,
    "recursive_triggers": 1,  # else a row that another replaces would not be counted out
    "secure_delete": 1,
    "temp_store": 2,  # MEMORY
    "trusted_schema": 0,
    "cache_size": -8192,  # KiB
    "journal_size_limit": 4 * 2**20,  # what stays of the log once its content is in the file
}
_STATEMENT_CACHE_SIZE = 250
_READ_WRITE = apsw.SQLITE_OPEN_READWRITE
_READ_ONLY_URI = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_IMMUTABLE = "mode=ro&immutable=1"
# Errors of SQLite if no log can be created; the first two also mean a full disk.
WRITE_ERRORS = (apsw.IOError, apsw.FullError)
WAL_ERRORS = (*WRITE_ERRORS, apsw.CantOpenError, apsw.ReadOnlyError)
_BUMP_GENERATION = "UPDATE meta SET value = value + 1 WHERE name = 'generation'"
Row = tuple[Any, ...]
Bindings = Sequence[int | float | str | bytes | None]

_memory_db_numbers = itertools.count(1)
# The journal's key of each connection's space.
journal_keys = WeakKeyDictionary[apsw.Connection, JournalKey]()


def set_pragmas(db: apsw.Connection) -> None:
    """Set each pragma and read it back.

    One by one: a script of statements stops at the first that returns a row.
    """
    for name, value in PRAGMAS.items():
        db.execute(f"PRAGMA {name} = {value}").fetchall()
        found = db.execute(f"PRAGMA {name}").get
        if found != value:
            raise StoreError(
                f"SQLite keeps {name} at {found}, but it must be {value}",
                remedy="pip install -U apsw",
            )


def add_functions(db: apsw.Connection) -> None:
    """Add the SQL functions that our statements use."""
    db.create_scalar_function("heat_band", heat_band, 5, deterministic=True)
    db.create_scalar_function("hash_state", state_hash, 5, deterministic=True)


def _loses_state(error: BaseException) -> bool:
    """Whether an error in a transaction may leave wrong state in the connection.

    FTS5 keeps parts of its index in memory; a read that failed halfway leaves them wrong,
    also after a rollback, and the next write would commit them.
    """
    return not isinstance(error, BethinkError) or isinstance(error.__cause__, apsw.Error)


class _OpenTransaction:
    """Reading inside a transaction that the calling thread has begun; costs next to nothing."""

    __slots__ = ("_connections", "_db")

    def __init__(self, connections: Connections) -> None:
        self._connections, self._db = connections, connections.for_thread()

    def __enter__(self) -> apsw.Connection:
        return self._db

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            name = self._connections.name
            with translate_errors(name), name_damage(self._db, name):
                raise error


def _require_bumped(db: apsw.Connection, name: str) -> None:
    """Raise StoreDamaged where a change would not be noticed: the row that counts them is lost."""
    if not db.changes():
        raise StoreDamaged(
            f"{name} is damaged: {missing_counters(db)}",
            remedy="bethink doctor --repair restores it",
        )


class Connections:
    """A pool of connections to one space's database, one per thread of this process."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.journal_key = JournalKey(None if path is None else key_path(path))
        self.lock: WriteLock
        if path is None:
            # Shared by name within the process; removed with its last connection.
            self._target = f"file:/bethink-{os.getpid()}-{next(_memory_db_numbers)}?vfs=memdb"
            self._flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
            self._flags |= apsw.SQLITE_OPEN_URI
            self.lock = ThreadLock()
        else:
            self._target = str(path)
            self._flags = _READ_WRITE
            self.lock = FileLock(path.with_name(f"{path.name}.lock"))
        self._process = os.getpid()
        self._local = threading.local()
        self._guard = threading.Lock()
        self._open: list[tuple[threading.Thread | None, apsw.Connection]] = []
        self._closed = False
        self._has_written = False
        self._unwritable = ""
        self._was_unwritable = False
        # Connections that read the file without a log, with the file's state before.
        self._immutable = WeakKeyDictionary[apsw.Connection, tuple[int, ...]]()

    @property
    def name(self) -> str:
        """The file's name for messages."""
        return "the space in memory" if self.path is None else str(self.path)

    @property
    def is_read_only(self) -> bool:
        """Whether the file can only be read, see `set_read_only`."""
        return bool(self._unwritable)

    def set_read_only(self, reason: str) -> None:
        """Read only the database file, without creating a log, until one can be created."""
        self._unwritable = reason
        self._was_unwritable = True
        with self._guard:
            for _, db in self._open:
                db.close()
            self._open = []
            self._local = threading.local()

    def for_thread(self) -> apsw.Connection:
        """Return the connection of the calling thread."""
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.name} was opened before the process was forked",
                remedy="open it again in the new process",
            )
        db: apsw.Connection | None = getattr(self._local, "db", None)
        is_free = self._was_unwritable and db is not None and db.get_autocommit()
        if db is not None and is_free and db.readonly("main"):
            # It would show outdated pages, or miss a log that another process began.
            self.disconnect(db)
            db = self._local.db = None
        if db is None:
            db = self._local.db = self.connect(threading.current_thread())
        return db

    def _retry_writable(self) -> None:
        """Check whether the file is writable now and, if not, choose how to read it.

        It is read with a log that another process has made, else as an immutable file.
        """
        assert self.path is not None
        try:
            with closing(apsw.Connection(str(self.path), flags=_READ_WRITE)) as trial:
                # Only the holder of the write lock may checkpoint.
                trial.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                trial.set_busy_timeout(int(TIMEOUT_S * 1000))
                trial.execute("PRAGMA user_version").fetchall()
                if not trial.readonly("main"):
                    self._unwritable = ""
            self._target, self._flags = str(self.path), _READ_WRITE
        except WAL_ERRORS:
            if has_content(wal_path(self.path)):
                raise
            self._target = f"{self.path.as_uri()}?{_IMMUTABLE}"
            self._flags = _READ_ONLY_URI

    @contextmanager
    def detect_concurrent_write(self, db: apsw.Connection) -> Iterator[None]:
        """Raise StoreBusy if another process wrote the file during the block.

        A file that cannot be written here has no lock to keep other writers away.
        """
        try:
            yield
        except (apsw.Error, StoreError) as error:
            self._require_unchanged(db, error)
            raise
        self._require_unchanged(db)

    def _require_unchanged(self, db: apsw.Connection, error: Exception | None = None) -> None:
        if db in self._immutable and self._immutable[db] != self._file_state():
            message = f"{self.name} was written while it was read"
            raise StoreBusy(message, remedy="try again") from error

    def _file_state(self) -> tuple[int, ...]:
        """Return a value that changes whenever the file is written.

        Its times may stay the same: file systems count in steps, and the time of the last
        change can be set. So the number of transactions is part of it.
        """
        assert self.path is not None
        try:
            found = self.path.stat()
            uri = f"{self.path.as_uri()}?{_IMMUTABLE}"
            with closing(apsw.Connection(uri, flags=_READ_ONLY_URI)) as db:
                transactions = generation(db)
        except (OSError, apsw.Error):
            return ()  # SQLite reports the error where it matters
        times = (found.st_mtime_ns, found.st_ctime_ns)
        return found.st_ino, found.st_size, *times, transactions

    def connect(self, owner: threading.Thread | None = None) -> apsw.Connection:
        """Open a further connection, closed with the others or with its owner thread."""
        with translate_errors(self.name), self._guard:
            if self._closed:
                raise StoreError(f"{self.name} was closed", remedy="open it again")
            state: tuple[int, ...] = ()
            if self._unwritable:
                state = self._file_state()
                self._retry_writable()
            db = apsw.Connection(
                self._target, flags=self._flags, statementcachesize=_STATEMENT_CACHE_SIZE
            )
            db.set_busy_timeout(int(TIMEOUT_S * 1000))
            db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            db.cursor_factory = LenientCursor
            set_pragmas(db)
            add_functions(db)
            watch_log(db)
            journal_keys[db] = self.journal_key
            if state and db.open_flags & apsw.SQLITE_OPEN_URI:
                self._immutable[db] = state
            self._open.append((owner, db))
            # After opening, so that a dead thread's connection is never the last one: the
            # last to close checkpoints, which needs the write lock.
            self._close_dead_threads()
        return db

    def disconnect(self, db: apsw.Connection) -> None:
        """Close one connection that `connect` returned."""
        with translate_errors(self.name), self._guard:
            self._open = [(owner, other) for owner, other in self._open if other is not db]
            db.close()

    def read_transaction(self) -> AbstractContextManager[apsw.Connection]:
        """Open a transaction in which all statements see the same state of the store."""
        # A recall reads some forty times inside its snapshot.
        return _OpenTransaction(self) if self._is_reading() else self._begin_reading()

    def _is_reading(self) -> bool:
        """Whether the calling thread has a transaction open, in a file."""
        db: apsw.Connection | None = getattr(self._local, "db", None)
        try:
            return self.path is not None and db is not None and not db.get_autocommit()
        except apsw.Error:
            return False  # it was closed, as beginning to read will say

    @contextmanager
    def _begin_reading(self) -> Iterator[apsw.Connection]:
        if self.path is None:
            # In memory, readers would block writers at commit, and vice versa.
            with hold_lock(self.lock, self.name), self._snapshot() as db:
                yield db
        else:
            with self._snapshot() as db:
                yield db

    @contextmanager
    def _snapshot(self) -> Iterator[apsw.Connection]:
        with translate_errors(self.name):
            db = self.for_thread()
            if not db.get_autocommit():
                with name_damage(db, self.name):
                    yield db
                return
            db.execute("BEGIN")
            try:
                with self.detect_concurrent_write(db), name_damage(db, self.name):
                    yield db
                self._end_reading(db)
            except BaseException as error:
                self._leave(db, error)
                raise

    def _end_reading(self, db: apsw.Connection) -> None:
        """End a transaction in which nothing was written."""
        try:
            if not db.get_autocommit():
                db.execute("COMMIT")
        except apsw.CorruptError as error:
            # Some statement met a broken page, which its caller has reported or done without.
            self._leave(db, error)

    @contextmanager
    def write_transaction(self, *, commit: bool = True) -> Iterator[apsw.Connection]:
        """Open a write transaction: all of it is committed or nothing.

        When the block ends without an error, what was written survives a crash. Without
        ``commit`` it is rolled back.
        """
        self._require_writable()
        with translate_errors(self.name), hold_lock(self.lock, self.name):
            db = self.for_thread()
            if not db.get_autocommit():
                raise StoreError(
                    "nothing can be written while a snapshot or another write is open",
                    remedy="write after it is closed",
                )
            if self.path is not None:
                bound_log(db, self.path)
            db.execute("BEGIN IMMEDIATE")
            try:
                before = db.total_changes()
                with name_damage(db, self.name):
                    yield db
                if db.total_changes() != before:
                    db.execute(_BUMP_GENERATION)
                    if commit:
                        _require_bumped(db, self.name)
                db.execute("COMMIT" if commit else "ROLLBACK")
            except BaseException as error:
                self._leave(db, error)
                raise
            self._has_written = True
            if self.path is not None:
                transfer_if_long(db, self.path)

    def _leave(self, db: apsw.Connection, error: BaseException) -> None:
        """Roll back the transaction that failed, and forget what the connection knows of it."""
        try:
            # Some errors (a full disk) have already rolled back the transaction.
            if not db.get_autocommit():
                db.execute("ROLLBACK")
        finally:
            if _loses_state(error):
                self._discard(db)

    def _discard(self, db: apsw.Connection) -> None:
        """Close the connection of the calling thread, which gets a new one when it needs it."""
        if self.path is None:
            # A database in memory goes with its last connection.
            self._local.db = self.connect(threading.current_thread())
        else:
            self._local.db = None
            # Only the holder of the write lock may checkpoint.
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        with self._guard:
            self._open = [(owner, other) for owner, other in self._open if other is not db]
        db.close(True)

    def _require_writable(self) -> None:
        if self._unwritable:
            self.for_thread()  # tries again
        if self._unwritable:
            raise StoreError(
                f"{self.name} cannot be written, {self._unwritable}; nothing was saved",
                remedy="free some space, or make it writable, then try again",
            )

    def close(self) -> None:
        """Close every thread's connection; may be called again."""
        with translate_errors(self.name), self._guard:
            self._closed = True
            if not self._open or os.getpid() != self._process:
                return
            locked = not self._unwritable and self._try_lock()
            try:
                if locked and self._has_written and self.path is not None:
                    list_unswept(self._open[-1][1], self.path)
                while self._open:
                    _, db = self._open[-1]
                    if not locked:
                        # Another process is writing: it checkpoints later.
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
            return False  # a read-only file system: there is nothing to checkpoint

    def _close_dead_threads(self) -> None:
        alive = []
        for owner, db in self._open:
            if owner is None or owner.is_alive():
                alive.append((owner, db))
            else:
                db.close()
        self._open = alive


class _ListBinding(threading.local):
    """How lists are bound in a thread; a store on a server binds them in its own way."""

    make: Callable[[Any], Any] = staticmethod(apsw.carray)


_lists = _ListBinding()


def bind_list(values: Any) -> Any:
    """Bind strings (a tuple) or integers (an array) as the rows of ``carray(?)``."""
    return _lists.make(values)


@contextmanager
def list_binding(make: Callable[[Any], Any]) -> Iterator[None]:
    """While held, lists of this thread are bound by this function."""
    before, _lists.make = _lists.make, make
    try:
        yield
    finally:
        _lists.make = before


def select(db: apsw.Connection, sql: str, values: Bindings = ()) -> list[Row]:
    """Return all rows of a query. The driver cannot tell its column types."""
    return db.execute(sql, values).fetchall()


def generation(db: apsw.Connection) -> int:
    """Return how many transactions have written so far; 0 where rot has taken the count."""
    try:
        return int(db.execute("SELECT value FROM meta WHERE name = 'generation'").get or 0)
    except ValueError:
        return 0
