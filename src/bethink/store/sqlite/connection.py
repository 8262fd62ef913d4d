"""Connections to one space, one for each thread; and those that see only a part of it."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

import apsw

from bethink.errors import NOT_SAVED, BethinkError, StoreBusy, StoreDamaged, StoreError
from bethink.store.sql.ceiling import HIDDEN_TABLES, Hidden, KnownWords, find_hidden, views
from bethink.store.sql.connection import (
    BUMP_GENERATION,
    HIGHEST,
    generation,
    open_transaction_error,
    select,
)
from bethink.store.sql.damage import LenientCursor, missing_counters, name_damage
from bethink.store.sql.journal_key import JournalKey, Secret, journal_keys
from bethink.store.sqlite import checkpoint
from bethink.store.sqlite.errors import translate_errors
from bethink.store.sqlite.files import KeyFile, backups, has_content, key_path, wal_path
from bethink.store.sqlite.lock import TIMEOUT_S, FileLock, ThreadLock, WriteLock, hold_lock

APPLICATION_ID = 0x52434C54  # "RCLT"

# The settings of every connection, as SQLite reports them once they are set.
PRAGMAS = {
    "synchronous": 2,  # FULL
    "foreign_keys": 1,
    "secure_delete": 1,
    "temp_store": 2,  # MEMORY
    "trusted_schema": 0,
    "cache_size": -2048,  # KiB; of every thread: a server has up to forty, which filled 8 MiB each
    "journal_size_limit": 4 * 2**20,  # what stays of the log once its content is in the file
    "wal_autocheckpoint": 2000,  # pages in the log from which a commit transfers it to the file
}
_STATEMENT_CACHE_SIZE = 250
_SET_PENDING_LOG = "UPDATE meta SET value = 'log' WHERE name = 'unscrubbed'"
_CLEAR_PENDING = "DELETE FROM meta WHERE name = 'unscrubbed'"
_SCRUB_ATTEMPTS = 5
_ATTEMPT_TIMEOUT_MS = 400
_READ_WRITE = apsw.SQLITE_OPEN_READWRITE
_READ_ONLY_URI = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_IMMUTABLE = "mode=ro&immutable=1"
# Errors of SQLite if no log can be created; the first two also mean a full disk.
WRITE_ERRORS = (apsw.IOError, apsw.FullError)
WAL_ERRORS = (*WRITE_ERRORS, apsw.CantOpenError, apsw.ReadOnlyError)

_memory_db_numbers = itertools.count(1)


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


def _loses_state(error: BaseException) -> bool:
    """Whether an error in a transaction may leave wrong state in the connection.

    FTS5 keeps parts of its index in memory; a read that failed halfway leaves them wrong,
    also after a rollback, and the next write would commit them.
    """
    return not isinstance(error, BethinkError) or isinstance(error.__cause__, apsw.Error)


def _require_bumped(db: apsw.Connection, name: str) -> None:
    """Raise StoreDamaged where a change would not be noticed: the row that counts them is lost."""
    if not db.changes():
        raise StoreDamaged(
            f"{name} is damaged: {missing_counters(db)}",
            remedy="bethink doctor --repair restores it",
        )


class SqliteConnections:
    """A pool of connections to one space's database, one per thread of this process."""

    ceiling = HIGHEST
    trusted = False
    is_view = False

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.journal_key = JournalKey(Secret.random()) if path is None else KeyFile(key_path(path))
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
        self._unwritable = ""
        self._was_unwritable = False
        # Connections that read the file without a log, with the file's state before.
        self._immutable = WeakKeyDictionary[apsw.Connection, tuple[int, ...]]()

    @property
    def name(self) -> str:
        """The file's name for messages."""
        return "the space in memory" if self.path is None else str(self.path)

    @property
    def base(self) -> SqliteConnections:
        """The connections to the same space that see everything: these."""
        return self

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

    @contextmanager
    def read_transaction(self) -> Iterator[apsw.Connection]:
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
        with translate_errors(self.name), hold_lock(self.lock, self.name, outcome=NOT_SAVED):
            db = self.for_thread()
            if not db.get_autocommit():
                raise open_transaction_error()
            if self.path is not None:
                checkpoint.bound_log(db, self.path)
            db.execute("BEGIN IMMEDIATE")
            try:
                before = db.total_changes()
                with name_damage(db, self.name):
                    yield db
                if db.total_changes() != before:
                    db.execute(BUMP_GENERATION)
                    if commit:
                        _require_bumped(db, self.name)
                db.execute("COMMIT" if commit else "ROLLBACK")
            except BaseException as error:
                self._leave(db, error)
                raise

    @contextmanager
    def open_snapshot(self) -> Iterator[apsw.Connection]:
        """Open a separate connection, so that the caller may write while reading."""
        with translate_errors(self.name):
            if self.path is None:
                with closing(apsw.Connection(":memory:")) as copy:
                    journal_keys[copy] = self.journal_key
                    with self.read_transaction() as db, copy.backup("main", db, "main") as work:
                        work.step()
                    self.hide(copy)
                    yield copy
                return
            db = self.connect()
            try:
                db.execute("BEGIN")
                # The snapshot begins with the first read, which is this one.
                with self.detect_concurrent_write(db):
                    db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
                    self.refresh(db)
                    yield db
            finally:
                self.disconnect(db)

    def hide(self, db: apsw.Connection) -> None:
        """Hide from another connection to the same content what these do not see: nothing."""

    def refresh(self, db: apsw.Connection) -> None:
        """Find again what is hidden: nothing."""

    def scrub(self) -> tuple[str, ...]:
        """Scrub after an erase is committed; return what remains, also where an error stops it.

        The erase itself cannot fail any more, so the caller gets its receipt. The next opening
        tries again.
        """
        try:
            return self.try_scrub()
        except StoreError as error:
            why = error.__cause__ or error.message
            return (f"free space and log of {self.name} ({why}); cleared at the next opening",)

    def try_scrub(
        self, *, timeout_s: float = TIMEOUT_S, attempts: int = _SCRUB_ATTEMPTS
    ) -> tuple[str, ...]:
        """Transfer and truncate the log, and clear the free part of pages; return what remains."""
        if self.path is None:
            with self.write_transaction() as db:
                db.execute(_CLEAR_PENDING)
            return ()
        with translate_errors(self.name):
            remaining = self._rebuild_unusual(timeout_s) or self._empty_log(
                self.path, timeout_s, attempts
            )
        return (*remaining, *(f"the copy {copy.name}" for copy in backups(self.path)))

    def _rebuild_unusual(self, timeout_s: float) -> tuple[str, ...]:
        """Rebuild a file whose pages cannot be cleared one by one; say what remains if it fails."""
        db = self.for_thread()
        with hold_lock(self.lock, self.name, timeout_s):
            if checkpoint.can_sweep(db) or select(db, checkpoint.SELECT_PENDING) != [("file",)]:
                return ()
            try:
                # In a file, not in memory, where a large space may not fit.
                db.execute("PRAGMA temp_store = FILE")
                db.execute("VACUUM")
            except apsw.FullError:
                return (f"free space in {self.name}: not enough disk space to rebuild it",)
            finally:
                db.execute("PRAGMA temp_store = MEMORY")
            db.execute(_SET_PENDING_LOG)
        return ()

    def _empty_log(self, path: Path, timeout_s: float, attempts: int) -> tuple[str, ...]:
        db = self.for_thread()
        for _ in range(attempts):
            # Released in between, so that others can write while a reader blocks it.
            with hold_lock(self.lock, self.name, timeout_s):
                if not checkpoint.empty_log(db, wait_ms=_ATTEMPT_TIMEOUT_MS):
                    continue
                if checkpoint.can_sweep(db):
                    checkpoint.clear_pages(path)
                    db.execute("PRAGMA shrink_memory")
                # It also makes all connections read their pages anew: none writes one back.
                db.execute(_CLEAR_PENDING)
                return ()
        return (f"the log {self.name}-wal: in use by a reader; cleared at the next opening",)

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


_STATE = "".join(
    f"CREATE TEMP TABLE {table} ({columns}, PRIMARY KEY ({columns.split()[0]})) WITHOUT ROWID;"
    for table, columns in HIDDEN_TABLES.items()
)
_SELECT_GENERATION = "SELECT value FROM main.meta WHERE name = 'generation'"


class CeilingConnections(SqliteConnections):
    """Connections to a space that read nothing above a classification.

    With ``trusted`` they read no memory of trust 0 either.
    """

    def __init__(self, base: SqliteConnections, ceiling: int, *, trusted: bool = False) -> None:
        self.__dict__.update(base.__dict__)
        self._base, self.ceiling, self.trusted = base, ceiling, trusted
        self.is_view = True
        self._local = threading.local()
        self._guard = threading.Lock()
        self._open = []
        self._immutable = WeakKeyDictionary()
        # The generation, and what was hidden in it: the last that was found, and for each
        # connection what its tables hold.
        self._found: tuple[str, Hidden] = ("", {})
        self._seen = WeakKeyDictionary[apsw.Connection, tuple[str, Hidden]]()
        self._words: KnownWords = {}

    @property
    def base(self) -> SqliteConnections:
        return self._base

    def connect(self, owner: threading.Thread | None = None) -> apsw.Connection:
        """Open a further connection with its views."""
        db = super().connect(owner)
        self._add_views(db)
        return db

    def hide(self, db: apsw.Connection) -> None:
        """Hide what is above the ceiling from another connection to the same content."""
        self._add_views(db)
        self.refresh(db)

    def _add_views(self, db: apsw.Connection) -> None:
        db.execute(_STATE)
        db.execute(views(int(self.ceiling), int(self.trusted)))

    @contextmanager
    def _snapshot(self) -> Iterator[apsw.Connection]:
        with super()._snapshot() as db:
            self.refresh(db)
            yield db

    @contextmanager
    def write_transaction(self, *, commit: bool = True) -> Iterator[apsw.Connection]:
        """Open a write transaction, which sees everything."""
        db = getattr(self._local, "db", None)
        if db is not None and not db.get_autocommit():
            raise open_transaction_error()
        with self.base.write_transaction(commit=commit) as writing:
            yield writing

    def refresh(self, db: apsw.Connection) -> None:
        """Find again what is hidden, if the store has changed since."""
        generation = str(db.execute(_SELECT_GENERATION).get)
        seen, before = self._seen.get(db, ("", {}))
        if seen == generation:
            return
        found, hidden = self._found
        if found != generation:
            hidden = find_hidden(db, self.ceiling, trusted=self.trusted, words=self._words)
            self._found = (generation, hidden)
        for table, columns in hidden.items():
            if columns == before.get(table):
                continue  # as after most writes
            db.execute(f"DELETE FROM temp.{table}")
            if len(columns) > 1:
                rows = zip(*columns, strict=True)
                db.executemany(f"INSERT INTO temp.{table} VALUES (?, ?)", rows)
            elif columns[0]:
                values = json.dumps(columns[0])
                db.execute(f"INSERT INTO temp.{table} SELECT value FROM json_each(?)", (values,))
        self._seen[db] = (generation, hidden)

    def _leave(self, db: apsw.Connection, error: BaseException) -> None:
        """Roll back the transaction that failed, and with it what its tables hold."""
        self._seen.pop(db, None)
        super()._leave(db, error)
