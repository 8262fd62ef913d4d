"""Transactions of one space on a PostgreSQL server, one at a time for each thread."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial

import psycopg
from psycopg import sql

from bethink.errors import NotFound, StoreError
from bethink.store.postgres.bindings import Lists
from bethink.store.postgres.distribution import vacuum_shards
from bethink.store.postgres.schema import SCHEMA, SPACE_SETTING
from bethink.store.postgres.server import (
    LOCK_TIMEOUT_S,
    OF_ANOTHER_SERVER,
    PROPAGATE,
    Connection,
    Server,
    is_broken,
    is_distributed,
    translate_errors,
)
from bethink.store.postgres.session import Cursor, Lasting, Sent, Session, send
from bethink.store.postgres.translate import NO_VIEW, View, parse
from bethink.store.sql.ceiling import HIDDEN_TABLES, Hidden, KnownWords, find_hidden, views
from bethink.store.sql.connection import (
    BUMP_GENERATION,
    HIGHEST,
    Database,
    Row,
    list_binding,
    open_transaction_error,
)
from bethink.store.sql.dialect import PARTS

BACKUPS = (
    "the server's freed pages, write-ahead log and backups keep bytes of what was erased until"
    " they are written over or expire"
)
_NOT_VACUUMED = "deleted rows stay in the server's files until it vacuums them"
_SEEN_ON_SHARD = (
    "deleted rows that an older transaction on the space's server still sees stay in its files"
    " until it vacuums again"
)
_STILL_SEEN = re.compile(r"(\d+) are dead but not yet removable")


def vacuum(server: Server, space_id: int, changed: Collection[str]) -> tuple[str, ...]:
    """Remove deleted rows and their index entries from tables; say what remains.

    A table that is locked, or whose deleted rows an older transaction still sees, keeps them.
    """
    if server.distributed:
        return _vacuum_shards(server, space_id)
    names = ", ".join(f"{SCHEMA}.{name}" for name in sorted(changed) if name != "space")
    left: list[bool] = []

    def hear(diagnostic: psycopg.errors.Diagnostic) -> None:
        left.append(_leaves_rows(diagnostic))

    try:
        with server.connection() as connection:
            connection.add_notice_handler(hear)
            try:
                # As the role that connected, which inherits the right: outside of a transaction
                # a role that is set would stay with a session that a pooler gives to others.
                connection.execute(f"VACUUM (VERBOSE, INDEX_CLEANUP ON, SKIP_LOCKED) {names}")
            finally:
                connection.remove_notice_handler(hear)
    except psycopg.Error:
        return (_NOT_VACUUMED,)
    return (_NOT_VACUUMED,) if any(left) else ()


def _vacuum_shards(server: Server, space_id: int) -> tuple[str, ...]:
    """Vacuum the tables of the space; the server does not report what is left."""
    try:
        with server.connection() as connection:
            done = vacuum_shards(connection, space_id, "INDEX_CLEANUP ON")
    except psycopg.Error:
        done = False
    return (_SEEN_ON_SHARD,) if done else (_NOT_VACUUMED,)


def _leaves_rows(diagnostic: psycopg.errors.Diagnostic) -> bool:
    """Whether a message of the vacuum says that rows were left."""
    if diagnostic.severity_nonlocalized == "WARNING":
        return True
    counts = _STILL_SEEN.findall(diagnostic.message_detail or diagnostic.message_primary or "")
    return any(int(count) for count in counts)


_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# What the row of a space has after its name while the space is moved, and when it has left.
ARRIVING = " (being moved here)"
LEFT = " (moved away)"


def space_id_of(name: str) -> int:
    """Return the id of a space: made from its name, so that no server has to give it."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


class PgConnections:
    """The transactions of one space; each thread has one at a time."""

    ceiling = HIGHEST
    trusted = False
    is_view = False

    def __init__(self, server: Server, space: str, *, state: str = "") -> None:
        self.server = server
        self.space = space
        self.row_name = space + state
        self.space_id = space_id_of(space)
        self._local = threading.local()
        self._closed = False
        self._lasting = Lasting([], {}, set())
        self._wrote = False

    @property
    def name(self) -> str:
        return f"the space {self.space} of {self.server.name}"

    @property
    def base(self) -> PgConnections:
        """The connections to the same space that see everything: these."""
        return self

    @contextmanager
    def read_transaction(self) -> Iterator[Database]:
        session: Session | None = getattr(self._local, "session", None)
        if session is not None:
            yield session
            return
        reading: Session | None = getattr(self._of_thread, "reading", None)
        opened = self._transaction(writes=False) if reading is None else self._join(reading)
        with translate_errors(self.name), opened as session:
            self._prepare(session)
            yield session

    @property
    def _of_thread(self) -> threading.local:
        """What the views of a space share in a thread: the transaction in which they read."""
        return self._local

    @contextmanager
    def _join(self, reading: Session) -> Iterator[Session]:
        """Read in the transaction of another view: the same moment, and no second connection."""
        session = Session(self.space_id, writes=False, begin=_is_begun)
        session.distributed = reading.distributed
        session.remember(self._lasting_of(reading.generation))
        session.connection = reading.connection
        self._local.session = session
        try:
            yield session
        finally:
            self._local.session = None

    @contextmanager
    def write_transaction(self, *, commit: bool = True) -> Iterator[Database]:
        """Open a write transaction: all of it is committed or nothing.

        When the block ends without an error, what was written survives a crash of the server.
        """
        if getattr(self._local, "session", None) is not None:
            raise open_transaction_error()
        with translate_errors(self.name), self._transaction(writes=True, commit=commit) as session:
            yield session
            if session.changes_anything():
                session.execute(BUMP_GENERATION)

    @contextmanager
    def _transaction(
        self, *, writes: bool, commit: bool = True, binds: bool = True
    ) -> Iterator[Session]:
        with ExitStack() as stack:
            lent = stack.enter_context(ExitStack())
            begin = partial(self._begin, lent)
            session = Session(self.space_id, writes=writes, begin=begin)
            session.distributed = self.server.distributed
            if self._wrote and not writes:
                self._wrote = False
                session.ask_again(self._lasting)
            self._local.session = session
            if binds:
                stack.enter_context(list_binding(Lists))
            if binds and not writes:
                self._of_thread.reading = session
                stack.callback(setattr, self._of_thread, "reading", None)
            try:
                yield session
            except BaseException as error:
                self._local.session = None
                connection = session.connection
                if connection is not None:
                    _roll_back(connection)
                if connection is not None and writes and _is_lost(error, connection):
                    raise StoreError(
                        f"{self.name} was lost while it was written; nothing was saved",
                        remedy="try again",
                    ) from error
                raise
            self._local.session = None
            if not writes:
                if session.connection is not None:
                    self.server.end_later(session.connection, lent.pop_all())
                return
            _end(session, self.name, commit=commit)
            if commit:
                self._local.changed = session.changed
                self._wrote = True

    def _lasting_of(self, generation: list[Row]) -> Lasting:
        """Return what is known of the space as of a generation, nothing for a new one."""
        known = self._lasting
        if known.generation != generation:
            known = self._lasting = Lasting(generation, {}, set())
        return known

    def _begin(
        self, stack: ExitStack, session: Session, also: list[Sent]
    ) -> tuple[Connection, list[Cursor]]:
        """Begin a transaction; a connection that died while it was idle is replaced.

        Nothing has happened yet, so that another may do the same.
        """
        if self._closed:
            raise StoreError(f"{self.name} was closed", remedy="open it again")
        for left in range(self.server.pool.max_size, -1, -1):  # all of them may have died
            connection = stack.enter_context(self.server.connection())
            known = self.server.distributed  # another thread may find out meanwhile
            try:
                rows, answers = self._run_beginning(connection, also, writes=session.writes)
            except psycopg.OperationalError:
                if not left or not is_broken(connection):
                    raise
                stack.close()
                continue
            if not rows and left and not known and self._became_distributed(connection):
                stack.close()
                continue
            session.distributed = self.server.distributed
            if not session.writes:
                before = self._lasting
                session.remember(self._lasting_of(rows))
                if self._lasting is not before and not also:
                    session.ask_again(before)
            elif not rows:
                _roll_back(connection)
                raise NotFound(
                    f"{self.name} does not exist, or was moved away",
                    remedy="bethink spaces lists them",
                )
            return connection, answers
        raise AssertionError

    def _run_beginning(
        self, connection: Connection, also: list[Sent], *, writes: bool
    ) -> tuple[list[Row], list[Cursor]]:
        """Begin a transaction with one message; return the rows of its own last statement."""
        parts = self._beginning(writes=writes)
        if not also and not self.server.distributed:
            return _last_result(connection.execute("; ".join(parts))), []
        # Each by itself: a coordinator repeats on other servers the whole text of a setting.
        parts[1:1] = [PROPAGATE] if self.server.distributed else []
        cursors = send(connection, [*(Sent(part, []) for part in parts), *also])
        return cursors[len(parts) - 1].fetchall(), cursors[len(parts) :]

    def _became_distributed(self, connection: Connection) -> bool:
        """Whether nothing was found because the tables were distributed since they were opened."""
        _roll_back(connection)
        self.server.distributed = is_distributed(connection)
        if not self.server.distributed:
            self._run_beginning(connection, [], writes=False)
        return self.server.distributed

    def _beginning(self, *, writes: bool) -> list[str]:
        """Return the statements that begin a transaction; all settings end with it."""
        parts = [
            _BEGIN_WRITE if writes else _BEGIN_READ,
            f"SET LOCAL ROLE {self.server.role}",
            f"SET LOCAL {SPACE_SETTING} = '{self.space_id:d}'",
        ]
        if not writes:
            of_space = f"space_id = {self.space_id:d} AND name = 'generation'"
            parts.append(f"SELECT value FROM {SCHEMA}.meta WHERE {of_space}")
        else:
            # The row of the space is the lock of its writers. By its name, too: a space that
            # was moved away has another one.
            name = sql.Literal(self.row_name).as_string(None)
            of_space = f"space_id = {self.space_id:d} AND name = {name}"
            parts += (
                f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'",
                f"SELECT 1 FROM {SCHEMA}.space WHERE {of_space} FOR UPDATE",
            )
        return parts

    def _prepare(self, session: Session) -> None:
        """Make a session ready to be read."""

    @contextmanager
    def open_snapshot(self) -> Iterator[Database]:
        """Open a separate transaction, so that the caller may write while reading.

        Its statements bind no lists: between two of them the caller may use another store.
        """
        before = getattr(self._local, "session", None)
        self._local.session = None
        try:
            with (
                translate_errors(self.name),
                self._transaction(writes=False, binds=False) as session,
            ):
                self._local.session = before
                session.begin()  # what is written from now on is not of this moment
                self._prepare(session)
                yield session
        finally:
            self._local.session = before

    def scrub(self) -> tuple[str, ...]:
        """Vacuum the rows away that this thread's last write has deleted; say what remains."""
        changed: frozenset[str] = self._local.changed
        with self.write_transaction() as db:
            db.execute("DELETE FROM meta WHERE name = 'unscrubbed'")
        return (*vacuum(self.server, self.space_id, changed), BACKUPS)

    def close(self) -> None:
        """Release the server; may be called again."""
        if not self._closed:
            self._closed = True
            self.server.release()


def _is_begun(_: Session, __: list[Sent]) -> tuple[Connection, list[Cursor]]:
    raise AssertionError


def _last_result(cursor: psycopg.Cursor[Row]) -> list[Row]:
    """Return the rows of the last of several statements."""
    while cursor.nextset():
        pass
    return cursor.fetchall()


def _is_lost(error: BaseException, connection: Connection) -> bool:
    """Whether the server went away, and with it what was not committed."""
    return isinstance(error, psycopg.OperationalError) and is_broken(connection)


def _roll_back(connection: Connection) -> None:
    """Roll back what failed; a connection that cannot is closed, and the server does it."""
    try:
        connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()


def _end(session: Session, name: str, *, commit: bool) -> None:
    """Send what waits with the end of a transaction that writes."""
    try:
        said = session.finish("COMMIT" if commit else "ROLLBACK")
    except psycopg.Error as error:
        connection = session.connection
        if connection is None:
            raise
        lost = _is_lost(error, connection) or isinstance(error, OF_ANOTHER_SERVER)
        if not lost:
            _roll_back(connection)
        elif commit:
            raise StoreError(
                f"{name} was lost while it saved; whether it was saved is not known",
                remedy="repeat the write with the same key: it is stored once",
            ) from error
        raise
    if commit and said == "ROLLBACK":
        raise StoreError(
            f"{name} did not save: an error before was passed over", remedy="try again"
        )


_VIEW = re.compile(r"CREATE TEMP VIEW (\w+) AS (.*?);\n", re.DOTALL)


@lru_cache(maxsize=16)
def ceiling_view(ceiling: int, *, trusted: bool) -> View:
    """Return the tables as the views of the SQLite store show them."""
    sql = views(int(ceiling), int(trusted))
    for old, new in PARTS.items():
        sql = sql.replace(old, new)
    return View({name: parse(body) for name, body in _VIEW.findall(sql)}, HIDDEN_TABLES)


class PgCeiling(PgConnections):
    """Transactions of a space that read nothing above a classification, or nothing untrusted.

    What is hidden is found when the store has changed, and sent with each statement that needs
    it: a transaction that only reads can make no table.
    """

    def __init__(self, base: PgConnections, ceiling: int, *, trusted: bool = False) -> None:
        super().__init__(base.server, base.space)
        self._base, self.ceiling, self.trusted = base, ceiling, trusted
        self.is_view = True
        self._view = NO_VIEW
        self._state: tuple[str, Hidden] = ("", {})
        self._words: KnownWords = {}

    @property
    def base(self) -> PgConnections:
        return self._base

    @property
    def _of_thread(self) -> threading.local:
        return self.base._of_thread

    @contextmanager
    def write_transaction(self, *, commit: bool = True) -> Iterator[Database]:
        """Open a write transaction, which sees everything."""
        if getattr(self._local, "session", None) is not None:
            raise open_transaction_error()
        with self.base.write_transaction(commit=commit) as writing:
            yield writing

    def _prepare(self, session: Session) -> None:
        generation = str(session.execute("SELECT value FROM meta WHERE name = 'generation'").get)
        if self._view is NO_VIEW:
            self._view = ceiling_view(self.ceiling, trusted=self.trusted)
        if self._state[0] != generation:
            found = find_hidden(session, self.ceiling, trusted=self.trusted, words=self._words)
            self._state = (generation, found)
        session.show(self._view, self._state[1])

    def close(self) -> None:
        """Nothing: the base releases the server."""
        self._closed = True
