"""The settings of a connection, the bounds of its log, and what a failed write leaves."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import apsw
import pytest

from bethink.errors import BethinkError, StoreBusy
from bethink.ports import TextSearch
from bethink.store.sqlite import SqliteStore, checkpoint, connection
from bethink.store.sqlite.connection import PRAGMAS
from bethink.store.sqlite.files import wal_path
from faulty_disk import Fault, faulty_disk
from records import NOW, record, scope
from rows import each_row


def open_store(path: Path) -> SqliteStore:
    return SqliteStore.open(path, space="test")


def healthy(store: SqliteStore) -> bool:
    return all(finding.ok for finding in store.admin.check())


@pytest.mark.parametrize("where", ["file", "memory"])
def test_every_pragma_is_set_on_every_connection(tmp_path: Path, where: str) -> None:
    """SQLite reports the value that was asked for, for each of them, in each thread."""
    path = tmp_path / "space.db" if where == "file" else None
    store = SqliteStore.open(path, space="test")
    found: list[dict[str, int]] = []

    def look() -> None:
        db = store._connections.for_thread()
        found.append({name: db.execute(f"PRAGMA {name}").get for name in PRAGMAS})

    look()
    other = threading.Thread(target=look)
    other.start()
    other.join()
    store.close()

    assert found == [PRAGMAS, PRAGMAS]
    assert PRAGMAS.keys() >= {"secure_delete", "trusted_schema", "journal_size_limit"}


def test_a_pragma_that_is_not_kept_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without one of its settings is not used."""
    monkeypatch.delitem(PRAGMAS, "synchronous")
    db = apsw.Connection(":memory:")
    db.execute("BEGIN")  # inside a transaction SQLite ignores some settings

    with pytest.raises(BethinkError, match="foreign_keys"):
        connection.set_pragmas(db)


@pytest.fixture
def small_log(monkeypatch: pytest.MonkeyPatch) -> int:
    """A limit for the log that a test can reach."""
    limit = 256 * 1024
    monkeypatch.setattr(checkpoint, "MAX_LOG_BYTES", limit)
    monkeypatch.setattr(checkpoint, "_LOG_WAIT_MS", 1)
    monkeypatch.setitem(PRAGMAS, "journal_size_limit", 64 * 1024)
    return limit


def test_the_log_is_bounded_while_somebody_reads(tmp_path: Path, small_log: int) -> None:
    """Writers are told to wait; once the reader is gone the log shrinks and writes go on."""
    path = tmp_path / "space.db"
    store = open_store(path)
    store.items.put([record("first")], actor="x", now=NOW)
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM item").get == 1

    refusals = []
    for n in range(300):
        try:
            store.items.put([record(f"i{n}", f"text {n} " * 20)], actor="x", now=NOW)
        except StoreBusy as error:
            refusals.append(error.message)
    largest = wal_path(path).stat().st_size
    count = store.admin.count()

    assert refusals
    assert all("nothing was saved" in message for message in refusals)
    assert count == 301 - len(refusals)
    assert largest < 2 * small_log  # one write more than the limit, at most
    reader.close()
    for n in range(3):
        store.items.put([record(f"later{n}")], actor="x", now=NOW)
    assert wal_path(path).stat().st_size <= PRAGMAS["journal_size_limit"] + 4096 * 64
    assert store.admin.count() == count + 3
    assert healthy(store)
    store.close()


def test_opening_waits_for_a_recovery(tmp_path: Path) -> None:
    """After a kill inside a checkpoint the file alone is no database; its log may be in use."""
    path = tmp_path / "space.db"
    crash_in_checkpoint(path)
    other = apsw.Connection(str(path))
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    opened: list[int | BaseException] = []

    def start() -> None:
        try:
            store = open_store(path)
            opened.append(store.admin.count())
            store.close()
        except BethinkError as error:
            opened.append(error)

    starting = threading.Thread(target=start)
    starting.start()
    starting.join(0.3)
    assert starting.is_alive()  # it waits, as every other access does
    other.close()
    starting.join()

    assert opened == [13]


def crash_in_checkpoint(path: Path) -> None:
    """Leave a space whose first page is newer than the rest of its file."""
    with_log = path.with_name("live.db")
    store = open_store(with_log)
    store.items.put([record("first")], actor="x", now=NOW)
    store.close()
    store = open_store(with_log)
    for n in range(12):
        words = " ".join(f"word{n}x{k}" for k in range(120))
        store.items.put([record(f"i{n}", words)], actor="x", now=NOW)
    content, log = bytearray(with_log.read_bytes()), wal_path(with_log).read_bytes()
    store.close()
    size = int.from_bytes(log[8:12])
    frames = range(32, len(log) - size - 23, size + 24)
    first_page = [at for at in frames if int.from_bytes(log[at : at + 4]) == 1][-1]
    content[:size] = log[first_page + 24 : first_page + 24 + size]
    path.write_bytes(content)
    wal_path(path).write_bytes(log)


@each_row("step", range(1, 40, 3))
def test_a_failed_read_in_a_write_leaves_nothing_behind(tmp_path: Path, step: int) -> None:
    """The write is refused; the next one, on the same connection, commits a right index."""
    path = tmp_path / "space.db"
    base = open_store(path)
    base.items.put(
        [record(f"i{n}", f"memory number {n} about tea cup{n}") for n in range(40)],
        actor="x",
        now=NOW,
    )
    base.close()
    with faulty_disk() as disk:
        store = open_store(path)
        disk.fault = Fault("read", step)
        with pytest.raises(BethinkError):
            write_from_disk(store)
        disk.fault = None
        store.items.put([record("again", "written again about tea")], actor="x", now=NOW)
        found = store.search.text(TextSearch("again"), scope()).matches
        assert [match.item.id for match in found] == ["again"]
        assert healthy(store)
        store.close()


def write_from_disk(store: SqliteStore) -> None:
    """Write until many pages have been read."""
    for n in range(20):
        store.items.put([record(f"n{n}", f"new{n} words about tea")], actor="x", now=NOW)
        store._connections.for_thread().release_memory()


def test_a_failed_read_outside_a_write_leaves_nothing_behind(tmp_path: Path) -> None:
    """The search fails in words, and the next one finds everything."""
    path = tmp_path / "space.db"
    base = open_store(path)
    base.items.put([record(f"i{n}", f"tea number {n}") for n in range(40)], actor="x", now=NOW)
    base.close()
    failed = 0
    with faulty_disk() as disk:
        for step in range(1, 60):
            store = open_store(path)
            disk.fault = Fault("read", step)
            try:
                store.search.text(TextSearch("tea"), scope())
            except BethinkError:
                failed += 1
            done = not disk.fault.fired
            disk.fault = None
            assert len(store.search.text(TextSearch("tea"), scope()).matches) == 40
            store.close()
            if done:
                break
    assert failed


@pytest.mark.parametrize("times", ["mtime", "all"])
def test_a_write_during_an_immutable_read_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: str
) -> None:
    """Whatever the file's times say: they may be coarse, and can be set."""
    path = tmp_path / "space.db"
    store = open_store(path)
    store.items.put([record("a", "tea")], actor="x", now=NOW)
    store.close()
    store = open_store(path)
    connections = store._connections

    def stay_read_only() -> None:
        connections._target = f"{path.as_uri()}?mode=ro&immutable=1"
        connections._flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

    monkeypatch.setattr(connections, "_retry_writable", stay_read_only)
    connections.set_read_only("a test says so")
    before = path.stat()
    if times == "all":
        monkeypatch.setattr(Path, "stat", lambda self, **_: before)

    def read_while_others_write() -> None:
        with store.snapshot():
            assert store.admin.count() == 1
            monkeypatch.undo()
            other = open_store(path)
            other.activity.note_use(["a"], NOW)
            other.close()
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            if times == "all":
                monkeypatch.setattr(Path, "stat", lambda self, **_: before)

    with pytest.raises(StoreBusy, match="was written while it was read"):
        read_while_others_write()
    monkeypatch.undo()
    store.close()
