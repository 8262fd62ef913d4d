"""A PostgreSQL server: its pool of connections, shared in a process, and its errors as ours."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from psycopg import errors, pq
from psycopg.abc import Buffer
from psycopg.types.numeric import Int8Dumper, NumericBinaryLoader
from psycopg_pool import ConnectionPool, PoolTimeout

from bethink.errors import BethinkError, StoreError
from bethink.store.sql.connection import Row
from bethink.store.sql.errors import UNSTORABLE, ErrorRules
from bethink.store.url import shown_store

Connection = psycopg.Connection[Row]

LOCK_TIMEOUT_S = 30
POOL_SIZE = 16
_CONNECT_TIMEOUT_S = 10
_OPTIONS = {
    "autocommit": True,
    # No prepared statements: a pooler in between may give each transaction another session.
    "prepare_threshold": None,
    "connect_timeout": _CONNECT_TIMEOUT_S,
    "application_name": "bethink",
    "client_encoding": "UTF8",  # whatever the environment says
}
INIT_REMEDY = "bethink store init URL"
# On a coordinator of Citus: settings of a transaction are those of the other servers, too.
PROPAGATE = "SET LOCAL citus.propagate_set_commands = 'local'"
_SERVING_ROLE = """
    SELECT quote_ident(coalesce(
        (SELECT min(r.rolname::text) FROM pg_namespace AS n CROSS JOIN aclexplode(n.nspacl) AS a
         JOIN pg_roles AS r ON r.oid = a.grantee
         WHERE n.nspname = 'bethink' AND starts_with(r.rolname, 'bethink_serve')),
        ('bethink_serve_' || current_database())::name::text
    ))
"""


class _NumericLoader(NumericBinaryLoader):
    """Sums of whole numbers come as numeric; SQLite has them as whole numbers."""

    def load(self, data: Buffer) -> int | float:  # type: ignore[override]  # no Decimal
        number = super().load(data)
        text = f"{number:f}"  # 10000 comes as 1E+4
        return int(text) if text.lstrip("-").isdigit() else float(text)


@contextmanager
def needs_right(connection: Connection, problem: str, remedy: str) -> Iterator[None]:
    """Open a transaction that says what a superuser has to do where the role may not."""
    try:
        with connection.transaction():
            yield
    except errors.InsufficientPrivilege as error:
        raise StoreError(problem, remedy=f"as a superuser: {remedy}") from error


def configure(connection: Connection) -> None:
    """Set up a new connection: whole numbers are eight bytes, sums are numbers of Python."""
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_loader("numeric", _NumericLoader)


# What a coordinator says when it has lost one of the servers behind it.
OF_ANOTHER_SERVER = (
    errors.ConnectionException,
    errors.ConnectionFailure,
    errors.ConnectionDoesNotExist,
    errors.SqlclientUnableToEstablishSqlconnection,
)
_RULES = ErrorRules(Path(__file__).parent)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Translate errors of the driver to our own; ``name`` is the store's for messages."""
    try:
        yield
    except (psycopg.Error, PoolTimeout, *UNSTORABLE) as error:
        raise to_own_error(name, error) from error


def to_own_error(name: str, error: Exception) -> BethinkError:
    """Return our error for one of the driver, or of a value that it does not take."""
    text = " ".join(str(error).split())
    known = _RULES.apply(error, name=name, error=text, seconds=LOCK_TIMEOUT_S)
    return known or StoreError(f"{name} failed: {text}", remedy="bethink store status URL")


# What the pool logs has a named error of ours; without a handler Python prints it to stderr.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Server:
    """The connections of this process to one database; `close` counts its users down."""

    _known: dict[tuple[str, int], Server] = {}  # noqa: RUF012 - shared on purpose
    _guard = threading.Lock()

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = shown_store(url)
        self.process = os.getpid()
        self.distributed = False
        self.role = ""
        self._users = 0
        self._ending = ThreadPoolExecutor(POOL_SIZE, "bethink-end")
        self._lent = 0
        self.pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            kwargs=dict(_OPTIONS),
            min_size=0,
            max_size=POOL_SIZE,
            timeout=LOCK_TIMEOUT_S,
            configure=configure,
            open=False,
            name="bethink",
        )

    @classmethod
    def use(cls, url: str) -> Server:
        """Return the server of a URL, connecting for its first user.

        Nobody waits for a server that another URL names: of two that connect to the same at
        once one gives its connections back.
        """
        key = (url, os.getpid())
        with cls._guard:
            if known := cls._known.get(key):
                known._users += 1
                return known
        made = cls._connected(url)
        with cls._guard:
            server = cls._known.setdefault(key, made)
            server._users += 1
        if server is not made:
            made.pool.close()
        return server

    @classmethod
    def _connected(cls, url: str) -> Server:
        server = cls(url)
        with translate_errors(server.name):
            # The pool only says that it timed out; this says why.
            with connect(url) as connection:
                server.distributed = is_distributed(connection)
                server.role = serving_role(connection)
            server.pool.open()
        return server

    def release(self) -> None:
        """Give the server back; the last user closes the connections."""
        with self._guard:
            self._users -= 1
            if self._users:
                return
            self._known.pop((self.url, self.process), None)
        if self.process == os.getpid():
            self._ending.shutdown()
            self.pool.close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection; one that broke is not used again."""
        if self.process != os.getpid():
            raise StoreError(
                f"{self.name} was opened before the process was forked",
                remedy="open it again in the new process",
            )
        with ExitStack() as stack:
            connection = self._take(stack)
            self._count(1)
            stack.callback(self._count, -1)
            yield connection

    def end_later(self, connection: Connection, lent: ExitStack) -> None:
        """End a transaction that only reads, and take its connection back, without waiting."""
        try:
            self._ending.submit(_end_reading, connection, lent)
        except RuntimeError:  # the last user has closed it meanwhile, or the process ends
            _end_reading(connection, lent)

    @property
    def lent(self) -> int:
        """How many connections are in use."""
        return self._lent

    def _count(self, change: int) -> None:
        with self._guard:
            self._lent += change

    def _take(self, stack: ExitStack) -> Connection:
        """Take a connection of the pool or, where it has none although it could, a new one.

        The pool waits longer and longer before it tries again to reach a server that was away.
        """
        try:
            return stack.enter_context(self.pool.connection())
        except PoolTimeout:
            if self._lent >= self.pool.max_size:
                raise
            return stack.enter_context(connect(self.url))  # or says why there is none


def _end_reading(connection: Connection, lent: ExitStack) -> None:
    with lent:
        try:
            connection.execute("COMMIT")
        except psycopg.Error:
            connection.close()


def connect(url: str) -> Connection:
    """Open a connection of its own."""
    connection = psycopg.connect(url, **_OPTIONS)  # type: ignore[arg-type]  # the driver's kwargs
    configure(connection)
    return connection


def is_broken(connection: Connection) -> bool:
    """Whether a connection can no longer be used."""
    return connection.closed or connection.pgconn.status != pq.ConnStatus.OK


def is_distributed(connection: Connection) -> bool:
    """Whether the tables of a database are distributed over several servers."""
    if read_value(connection, "SELECT to_regclass('pg_catalog.pg_dist_partition')") is None:
        return False
    sql = "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = to_regclass('bethink.space')"
    return bool(read_value(connection, sql))


def serving_role(connection: Connection) -> str:
    """Return the role, quoted, whose rights all transactions have: the one with the schema's.

    Roles belong to the whole server; so each database has its own, at first named after it.
    """
    return str(read_value(connection, _SERVING_ROLE))


def read_value(connection: Connection, sql: str, values: Row = ()) -> int | str | None:
    """Return the first value of the first row of a query; None where there is no row."""
    row = connection.execute(sql, values or None).fetchone()
    return row[0] if row else None
