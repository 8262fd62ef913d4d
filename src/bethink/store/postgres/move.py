"""Move a space between a file and a server: row by row, verified, resumable.

The rows of both stores are the same, so they are copied as they are, a page at a time in the
order of their keys; indexes of words and sign bits are made anew. Readers of the source may
go on; its write lock is held until the target was compared with it. Then the source refuses
writes, and only then the target can be opened. A move that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import cast

from bethink.core.atomic_write import fsync_folder
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused, StoreDamaged, StoreError
from bethink.ports import Progress
from bethink.store.postgres import opening
from bethink.store.postgres.connections import ARRIVING, LEFT, PgConnections
from bethink.store.postgres.distribution import vacuum_shards
from bethink.store.postgres.schema import SCHEMA, SPACE_ID, tables
from bethink.store.postgres.session import Session
from bethink.store.sql import history
from bethink.store.sql.connection import Connections, Database, Row, generation, select
from bethink.store.sql.search import vector_index
from bethink.store.sqlite import opening as files
from bethink.store.sqlite.files import has_content, key_path, wal_path
from bethink.store.sqlite.lock import FileLock, hold_lock
from bethink.store.sqlite.repair import MOVED_TRIGGER
from bethink.store.url import shown_store

_PAGE = 1_000
_MADE_ANEW = frozenset({"space", "meta", "gram", "term_gram", "chunk", "chunk_slot", "event"})
_KEYS = {"file_snapshot": ("path",)}
# What a store says of itself, and not of its memories.
_OWN_META = frozenset(
    {"generation", "journal", "journal_keys", "swept", "unswept", "unscrubbed", "moving"}
)
_SET_META = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"

Pages = Iterable[Sequence[Row]]


class Moved(NamedTuple):
    """A finished move: rows by table, and whether it went on with an earlier one."""

    rows: dict[str, int]
    resumed: bool
    already: bool = False


class InFile:
    """A space in a file: where it is, or is moved to."""

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
        sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
        with closing(self.open_source()) as connections, connections.read_transaction() as db:
            return bool(db.execute(sql, (MOVED_TRIGGER,)).get)

    def open_source(self) -> Connections:
        """Open the space to be read, whether it has left or not."""
        return files.open_space(self.path, create=False)

    def open_target(self, *, anew: bool) -> Connections:
        """Open the file that is to become the space; begin again if ``anew``."""
        if anew:
            _remove_file(self._arriving)
        return files.open_space(self._arriving, create=True)

    def leave(self, db: Database, to: str) -> None:
        """Refuse writes from now on, also of programs that have the file open."""
        message = f"it was moved to {to}".replace("'", "''")
        db.execute(
            f"CREATE TRIGGER IF NOT EXISTS {MOVED_TRIGGER} BEFORE UPDATE ON meta"
            f" WHEN new.name = 'generation' BEGIN SELECT RAISE(ABORT, '{message}'); END"
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
        self.name = f"{shown_store(url)}"

    def _state(self) -> str | None:
        known = opening.known_name(self.url, self.space)
        return None if known is None else known.removeprefix(self.space)

    def has_space(self) -> bool:
        return self._state() == ""

    def has_left(self) -> bool:
        return self._state() == LEFT

    def open_source(self) -> Connections:
        state = LEFT if self.has_left() else ""
        return opening.open_space(self.url, self.space, create=False, state=state)

    def open_target(self, *, anew: bool) -> Connections:
        """Open the rows that are to become the space; begin again if ``anew``."""
        state = self._state()
        if state == LEFT or (anew and state is not None):
            opening.remove_space(self.url, self.space)
        return opening.open_space(self.url, self.space, create=True, state=ARRIVING)

    def leave(self, db: Database, to: str) -> None:
        """Refuse writes from now on: writers look for the row by its name."""
        del to  # the name has no room for it
        _rename(db, self.space + LEFT)

    def arrive(self, connections: Connections) -> None:
        """Give the row its name; the server learns how many rows there are."""
        _analyse(cast("PgConnections", connections))
        with connections.write_transaction() as db:
            _rename(db, self.space)
        connections.close()


Place = InFile | OnServer  # where a space is, or is moved to


def _rename(db: Database, name: str) -> None:
    session = cast("Session", db)
    session.run(f"UPDATE {SCHEMA}.space SET name = ?1 WHERE {SPACE_ID} = :space", (name,))
    session.changes()  # sent


def _analyse(connections: PgConnections) -> None:
    """Tell the planner about the new rows; where the role may not, the server does it later."""
    names = ", ".join(f"{SCHEMA}.{name}" for name in tables())
    with connections.server.connection() as connection:
        if connections.server.distributed:
            vacuum_shards(connection, connections.space_id, "ANALYZE")
            return
        # As the role that connected, which inherits the right: a role that is set outside of a
        # transaction would stay with a session that a pooler gives to others. What the role
        # may not vacuum is left out with a warning.
        connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {names}")


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
    with closing(source.open_source()) as opened, ExitStack() as at_end:
        with opened.write_transaction() as reading:
            arriving, resumed = _begin(source, target, reading)
            at_end.callback(arriving.close)
            copy = _Copy(reading, arriving, progress)
            copy.run()
            rows = copy.verify()
            if not has_left:
                source.leave(reading, target.name)
        target.arrive(arriving)
    return Moved(rows, resumed)


def _begin(source: Place, target: Place, reading: Database) -> tuple[Connections, bool]:
    """Open the target; one that was begun from this state of the source goes on."""
    state = f"{source.name} {generation(reading)} {history.journal_head(reading)}"
    with ExitStack() as unless_used:
        begun = target.open_target(anew=False)
        unless_used.callback(begun.close)
        with begun.read_transaction() as db:
            known = db.execute("SELECT value FROM meta WHERE name = 'moving'").get
        if known == state:
            unless_used.pop_all()
            return begun, True
    with ExitStack() as unless_used:
        fresh = target.open_target(anew=True)
        unless_used.callback(fresh.close)
        with fresh.write_transaction() as db:
            db.execute(_SET_META, ("moving", state))
        unless_used.pop_all()
    return fresh, False


class _Table(NamedTuple):
    """A table that is copied row by row: its columns, and the key that orders its rows."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def page(self, db: Database, after: Row, size: int = _PAGE) -> list[Row]:
        """Return rows in the order of the key, from the one after a key on."""
        columns, key = ", ".join(self.columns), ", ".join(self.key)
        where = f"WHERE ({key}) > ({', '.join('?' * len(self.key))})" if after else ""
        sql = f"SELECT {columns} FROM {self.name} {where} ORDER BY {key} LIMIT {size:d}"
        return select(db, sql, after)

    def last(self, db: Database) -> Row:
        """Return the greatest key; nothing where there are no rows."""
        key, falling = ", ".join(self.key), ", ".join(f"{name} DESC" for name in self.key)
        rows = select(db, f"SELECT {key} FROM {self.name} ORDER BY {falling} LIMIT 1")
        return rows[0] if rows else ()

    def rows(self, db: Database, after: Row = ()) -> Iterator[list[Row]]:
        """Yield all rows, a page at a time."""
        places = [self.columns.index(name) for name in self.key]
        while page := self.page(db, after):
            yield page
            after = tuple(page[-1][place] for place in places)

    def insert(self, connections: Connections, rows: Sequence[Row]) -> None:
        """Add rows, in a transaction of their own."""
        marks = ", ".join("?" * len(self.columns))
        sql = f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({marks})"
        with connections.write_transaction() as db:
            db.executemany(sql, rows)

    def count(self, db: Database) -> int:
        return int(db.execute(f"SELECT count(*) FROM {self.name}").get)


def copied_tables() -> list[_Table]:
    """Return the tables that are copied as they are; what others refer to comes first."""
    return [_table(name) for name in tables() if name not in _MADE_ANEW]


def _table(name: str) -> _Table:
    found = tables()[name]
    return _Table(name, tuple(found.columns), _KEYS.get(name, found.key))


class _Copy:
    """One copy of a space: what is read, what is written, and how far it is."""

    def __init__(self, reading: Database, arriving: Connections, progress: Progress | None) -> None:
        self._reading, self._arriving, self._progress = reading, arriving, progress
        self._tables = (*copied_tables(), _table("event"))
        self._counts = {table.name: table.count(reading) for table in self._tables}
        self._done = 0

    def _advance(self, rows: int) -> None:
        self._done += rows
        if self._progress is not None:
            self._progress(self._done, 2 * sum(self._counts.values()))

    def _pages(self, table: _Table, after: Row = ()) -> Iterator[list[Row]]:
        """Yield what the target is to hold: rows as they are, the journal without a secret."""
        if table.name != "event":
            yield from table.rows(self._reading, after)
            return
        known = after[0] if after else 0
        lines = (_ordered(table, line) for line in self._lines() if line.seq > known)
        while page := list(islice(lines, _PAGE)):
            yield page

    def _lines(self) -> Iterator[history.ChainedLine]:
        """Yield the journal, checked and chained without the secret of a file."""
        for line in history.exported_lines(self._reading):
            if line.chain == history.BROKEN:
                raise StoreDamaged(
                    f"the journal is broken at line {line.seq}; nothing was moved",
                    remedy="bethink doctor shows what is wrong; bethink export saves the rest",
                )
            yield line

    def run(self) -> None:
        """Copy what the target lacks, and make its indexes."""
        for table in self._tables:
            with self._arriving.read_transaction() as db:
                after, known = table.last(db), table.count(db)
            self._advance(known)
            for page in self._pages(table, after):
                table.insert(self._arriving, page)
                self._advance(len(page))
        with self._arriving.write_transaction() as db:
            for name in ("grams", "vocabulary"):
                db.execute(f"INSERT INTO {name} ({name}) VALUES ('rebuild')")
            vector_index.write_chunks(db)
            head = next((f"{seq}:{code}" for seq, code in select(db, history.LAST_LINE)), "0:")
            # Never back: the target counts its own transactions, too.
            counted = max(generation(self._reading), generation(db))
            own = [("journal", head), ("generation", f"{counted}")]
            db.executemany(_SET_META, [*_meta(self._reading), *own])

    def verify(self) -> dict[str, int]:
        """Compare all rows by count and hash; return the counts."""
        with self._arriving.read_transaction() as db:
            for table in self._tables:
                self._compare(table.name, self._pages(table), table.rows(db))
            self._compare("meta", [_meta(self._reading)], [_meta(db)])
        return self._counts

    def _compare(self, name: str, read: Pages, made: Pages) -> None:
        read_hash, read_count = _digest(read)
        made_hash, made_count = _digest(made)
        if (read_hash, read_count) != (made_hash, made_count):
            raise StoreError(
                f"the copy differs from the source: {name} has {made_count:,} rows of"
                f" {read_count:,}, or other content; the source stays in use",
                remedy="run the command again; it begins anew after a change of the source",
            )
        self._advance(read_count if name in self._counts else 0)


def _meta(db: Database) -> list[Row]:
    """Return what the counters and settings of a space are, without those of its store."""
    rows = select(db, "SELECT name, value FROM meta ORDER BY name")
    return [row for row in rows if row[0] not in _OWN_META]


def _ordered(table: _Table, line: history.ChainedLine) -> Row:
    values = line._asdict()
    return tuple(values[name] for name in table.columns)


def _digest(pages: Pages) -> tuple[str, int]:
    """Return a hash over rows in their order, and their count."""
    hashed, count = hashlib.sha256(), 0
    for page in pages:
        for row in page:
            hashed.update(repr(row).encode("utf-8", "surrogatepass"))
        count += len(page)
    return hashed.hexdigest(), count
