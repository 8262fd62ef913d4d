"""What the store's logic needs of a database: transactions, statements, rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, cast

import apsw

from bethink.errors import StoreError

Row = tuple[Any, ...]
Bindings = Sequence[int | float | str | bytes | None]
HIGHEST = 3  # the highest classification there is: with this ceiling nothing is hidden
BUMP_GENERATION = (
    "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'generation'"
)


class Rows(Protocol):
    """The rows of a statement."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchall(self) -> list[Any]:
        """Return all rows."""

    @property
    def get(self) -> Any:
        """The rows, a row of one value as that value, and one row not as a list."""


class Database(Protocol):
    """A transaction of one space: what of SQLite's connection the store's logic uses."""

    def execute(self, statements: str, bindings: Bindings = ..., /) -> Rows:
        """Run a statement."""

    def executemany(self, statements: str, bindings: Iterable[Bindings], /) -> Rows:
        """Run a statement for each row of values."""

    def changes(self) -> int:
        """Return how many rows the last statement changed."""

    def total_changes(self) -> int:
        """Return how many rows all statements changed."""

    def txn_state(self, schema: str = ..., /) -> int:
        """Return whether the transaction writes, as SQLite says it."""

    def fts5_tokenizer(self, name: str, arguments: list[str], /) -> Callable[..., Any]:
        """Return one of SQLite's tokenizers."""


class Connections(Protocol):
    """The transactions of one space, or of what a reader may see of it."""

    ceiling: int
    trusted: bool
    is_view: bool

    @property
    def name(self) -> str:
        """The store's name for messages."""

    @property
    def base(self) -> Connections:
        """The connections to the same space that see everything."""

    def read_transaction(self) -> AbstractContextManager[Database]:
        """Open a transaction in which all statements see the same state of the store."""

    def write_transaction(self, *, commit: bool = True) -> AbstractContextManager[Database]:
        """Open a write transaction: all of it is committed or nothing."""

    def open_snapshot(self) -> AbstractContextManager[Database]:
        """Open a separate transaction, so that the caller may write while reading."""

    def scrub(self) -> tuple[str, ...]:
        """Remove what is left of deleted rows; return where something remains."""

    def close(self) -> None:
        """Release everything; may be called again."""


class _ListBinding(threading.local):
    """How lists are bound in a thread; a store on a server binds them in its own way."""

    make: Callable[[Any], Any] = staticmethod(apsw.carray)


_lists = _ListBinding()


def as_table(values: object) -> Any:
    """Bind strings (a tuple) or integers (an array) as the rows of ``carray(?)``.

    There must be at least one; one statement serves any number of them. A string with NUL
    cannot be bound and is no id or word of ours: it becomes one that matches nothing.
    """
    if isinstance(values, tuple) and "\0" in "".join(values):
        values = tuple("" if "\0" in value else value for value in values)
    return _lists.make(values)


@contextmanager
def list_binding(make: Callable[[Any], Any]) -> Iterator[None]:
    """While held, lists of this thread are bound by this function."""
    before, _lists.make = _lists.make, make
    try:
        yield
    finally:
        _lists.make = before


def open_transaction_error() -> StoreError:
    """Return the error of a write inside a transaction."""
    return StoreError(
        "nothing can be written while a snapshot or another write is open",
        remedy="write after it is closed",
    )


def select(db: Database, sql: str, values: Bindings = ()) -> list[Row]:
    """Return all rows of a query. The driver cannot tell its column types."""
    return db.execute(sql, values).fetchall()


def is_on_server(db: Database) -> bool:
    """Whether each statement waits for the network."""
    return hasattr(db, "read_ahead")


def read_ahead(db: Database, *queries: tuple[str, Any]) -> None:
    """Tell what will be asked, which a store on a server then reads with the next message."""
    ask: Callable[[str, Any], None] | None = getattr(db, "read_ahead", None)
    if ask is not None:
        for sql, values in queries:
            ask(sql, values)


def keep_terms(db: Database, rows: Iterable[Row]) -> None:
    """Tell a store on a server rows of index terms (term, frequency, number) that were read."""
    if is_on_server(db):
        cast("Any", db).keep_terms(rows)


def generation(db: Database) -> int:
    """Return how many transactions have written so far; 0 where rot has taken the count."""
    try:
        return int(db.execute("SELECT value FROM meta WHERE name = 'generation'").get or 0)
    except ValueError:
        return 0
