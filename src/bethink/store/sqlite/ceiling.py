"""Connections to a file that see nothing above a classification, or nothing untrusted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import apsw

from bethink.store.sql.ceiling import HIDDEN_TABLES, Hidden, KnownWords, find_hidden, views
from bethink.store.sql.connection import open_transaction_error
from bethink.store.sqlite.connection import SqliteConnections

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
