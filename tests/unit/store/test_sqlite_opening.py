"""Opening a space: what is made, what is refused, what is left alone."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from bethink.errors import NotFound, SchemaTooNew, StoreDamaged, StoreError
from bethink.store.sqlite import SqliteStore, opening
from bethink.store.sqlite.connection import APPLICATION_ID
from bethink.store.sqlite.opening import is_safe_sqlite, require_safe_sqlite
from bethink.store.sqlite.schema import SCHEMA_VERSION
from records import NOW, record
from rows import each_row


def open_store(path: Path, *, create: bool = True) -> SqliteStore:
    return SqliteStore.open(path, space="test", create=create)


def put(store: SqliteStore, *ids: str) -> None:
    store.items.put([record(one) for one in ids], actor="x", now=NOW)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file of a folder: its content and when it was changed."""
    return {
        file.name: (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in folder.iterdir()
    }


# The engine


@each_row(
    ("version", "safe"),
    [
        ("3.40.1", False),
        ("3.44.5", False),
        ("3.44.6", True),
        ("3.45.0", False),
        ("3.50.6", False),
        ("3.50.7", True),
        ("3.51.2", False),
        ("3.51.3", True),
        ("3.52.0", False),
        ("3.53.0", True),
        ("3.54.1", True),
        ("4.0.0", True),
    ],
)
def test_an_engine_that_loses_commits_is_refused(version: str, safe: bool) -> None:
    """The WAL-reset bug is in everything before 3.51.3 but two repaired branches."""
    assert is_safe_sqlite(version) is safe
    if not safe:
        with pytest.raises(StoreError, match=version):
            require_safe_sqlite(version)


def test_the_engine_in_use_is_safe() -> None:
    """The library really linked, not the one the package asks for."""
    require_safe_sqlite(apsw.sqlite_lib_version())


# New spaces


@each_row("mask", [0o000, 0o022, 0o077, 0o777])
def test_only_the_owner_can_read_a_space(tmp_path: Path, mask: int) -> None:
    """Whatever the umask: the file, its log, its lock, and the folders made for it."""
    path = tmp_path / "deep" / "er" / "space.db"
    with umask(mask):
        store = open_store(path)
        put(store, "a")
        modes = {file.name: mode(file) for file in path.parent.iterdir()}
        store.close()

    assert modes == dict.fromkeys(
        ("space.db", "space.db-wal", "space.db-shm", "space.db.lock", "space.db.key"), 0o600
    )
    assert mode(tmp_path / "deep") == mode(tmp_path / "deep" / "er") == 0o700


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    """It may be shared with others on purpose."""
    tmp_path.chmod(0o755)
    open_store(tmp_path / "space.db").close()

    assert mode(tmp_path) == 0o755


def test_a_closed_space_is_one_file_its_lock_and_its_key(tmp_path: Path) -> None:
    """The log is moved into the file by the last to close."""
    store = open_store(tmp_path / "space.db")
    put(store, "a")
    store.close()

    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "space.db",
        "space.db.key",
        "space.db.lock",
    ]


def test_a_space_is_durable_and_guarded(tmp_path: Path) -> None:
    """The settings that the promises rest on are really on."""
    store = open_store(tmp_path / "space.db")
    db = store._connections.for_thread()

    assert db.execute("PRAGMA journal_mode").get == "wal"
    assert db.execute("PRAGMA synchronous").get == 2
    assert db.execute("PRAGMA foreign_keys").get == 1
    assert db.execute("PRAGMA secure_delete").get == 1
    assert db.execute("PRAGMA application_id").get == APPLICATION_ID
    for table in ("grams", "vocabulary"):
        set_to = db.execute(f"SELECT v FROM {table}_config WHERE k = 'secure-delete'").get
        assert set_to == 1
    store.close()


def test_without_create_a_missing_space_is_not_found(tmp_path: Path) -> None:
    """And nothing is made, not even the folder."""
    with pytest.raises(NotFound):
        open_store(tmp_path / "no" / "space.db", create=False)

    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_space(tmp_path: Path) -> None:
    """As one made by a temporary-file function."""
    path = tmp_path / "space.db"
    path.touch(mode=0o644)
    store = open_store(path)
    put(store, "a")
    store.close()

    assert mode(path) == 0o600


def test_an_interrupted_creation_is_begun_anew(tmp_path: Path) -> None:
    """What a crash left beside the file does not matter."""
    (tmp_path / "space.db.new").write_bytes(b"half a database")
    (tmp_path / "space.db.new-wal").write_bytes(b"half a log")
    store = open_store(tmp_path / "space.db")
    put(store, "a")

    assert store.admin.count() == 1
    store.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "space.db",
        "space.db.key",
        "space.db.lock",
    ]


# Files that are not ours


GARBAGE = {
    "random": os.urandom(5000),
    "text": b"# My notes\nnothing to see\n",
    "tiny": b"x",
    "zeros": bytes(8192),
    "header only": b"SQLite format 3\x00",
}


@each_row("name", GARBAGE)
def test_a_file_that_is_no_database_is_refused_and_untouched(tmp_path: Path, name: str) -> None:
    """Never deleted, never overwritten, nothing laid beside it."""
    path = tmp_path / "space.db"
    path.write_bytes(GARBAGE[name])
    before = fingerprint(tmp_path)

    with pytest.raises(StoreDamaged) as caught:
        open_store(path)

    assert "not changed" in caught.value.remedy
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_and_untouched(
    tmp_path: Path, journal: str
) -> None:
    """Even its log is left where it is."""
    path = tmp_path / "space.db"
    other = apsw.Connection(str(path))
    other.execute(f"PRAGMA journal_mode = {journal}")
    other.execute("CREATE TABLE item (id); INSERT INTO item VALUES (1)")
    before = fingerprint(tmp_path)

    with pytest.raises(StoreDamaged, match="another program"):
        open_store(path)

    assert fingerprint(tmp_path) == before
    other.close()


def test_a_lost_file_is_not_replaced_while_its_log_is_there(tmp_path: Path) -> None:
    """Making a new one would throw the log away, and with it the memories."""
    path = tmp_path / "space.db"
    (tmp_path / "space.db-wal").write_bytes(b"log")
    with pytest.raises(StoreDamaged, match="log"):
        open_store(path)

    path.touch()
    with pytest.raises(StoreDamaged, match="log"):
        open_store(path)
    assert (tmp_path / "space.db-wal").read_bytes() == b"log"


@each_row("create", [True, False])
def test_a_file_cut_to_nothing_does_not_become_a_new_space(tmp_path: Path, create: bool) -> None:
    """Its secret says that it held memories; without the file the secret is only left over."""
    path = tmp_path / "space.db"
    with closing(open_store(path)) as store:
        put(store, "m1")
    path.write_bytes(b"")
    before = fingerprint(tmp_path)

    with pytest.raises(StoreDamaged, match=r"space\.db\.key is not"):
        open_store(path, create=create)

    assert fingerprint(tmp_path) == before
    path.unlink()
    with closing(open_store(path)) as store:
        assert store.admin.count() == 0


def test_a_newer_schema_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """An old program must not write what it does not understand."""
    path = tmp_path / "space.db"
    open_store(path).close()
    db = apsw.Connection(str(path))
    newer = SCHEMA_VERSION + 1
    db.execute(f"PRAGMA user_version = {newer}")
    db.close()

    with pytest.raises(SchemaTooNew, match=f"schema {newer}") as caught:
        open_store(path)
    assert "pip install" in caught.value.remedy


def test_a_folder_in_the_place_of_the_file_is_an_error_of_ours(tmp_path: Path) -> None:
    """Not a traceback of the driver."""
    (tmp_path / "space.db").mkdir()

    with pytest.raises(StoreError):
        open_store(tmp_path / "space.db")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_what_is_no_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A pipe or a device such as /dev/null looks empty; a new space would take its place."""
    pipe = tmp_path / "space.db"
    os.mkfifo(pipe)
    with pytest.raises(StoreError, match="is no file"):
        open_store(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == ["space.db"]


def test_a_file_in_the_place_of_the_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    """Likewise."""
    (tmp_path / "folder").write_text("a file")

    with pytest.raises(StoreError):
        open_store(tmp_path / "folder" / "space.db")


def test_a_space_set_to_another_journal_is_set_right(tmp_path: Path) -> None:
    """Somebody's tool may have switched the log off."""
    path = tmp_path / "space.db"
    open_store(path).close()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()

    store = open_store(path)

    assert store._connections.for_thread().execute("PRAGMA journal_mode").get == "wal"
    store.close()


# Connections


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """To the thread that knew it and to one that comes new."""
    store = open_store(tmp_path / "space.db")
    store.admin.count()
    store.close()
    said: list[str] = []

    def ask() -> None:
        try:
            store.admin.count()
        except StoreError as error:
            said.append(error.message)

    ask()
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert len(said) == 2
    assert all("closed" in message for message in said)


def test_connections_of_dead_threads_are_closed(tmp_path: Path) -> None:
    """A server that makes a thread for every request does not run out of files."""
    store = open_store(tmp_path / "space.db")
    for _ in range(20):
        thread = threading.Thread(target=store.admin.count)
        thread.start()
        thread.join()

    assert len(store._connections._open) <= 2
    store.close()


FORKED = """
import os, sys
from pathlib import Path
from bethink.errors import StoreError
from bethink.store.sqlite import SqliteStore
store = SqliteStore.open(Path(sys.argv[1]), space="test")
child = os.fork()
if child == 0:
    try:
        store.admin.count()
    except StoreError as error:
        os._exit(7 if "forked" in error.message else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), store.admin.count())
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_store_is_not_carried_into_a_forked_process(tmp_path: Path) -> None:
    """SQLite's locks do not survive a fork; the child is told, the parent goes on."""
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path / "space.db")],
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.split() == ["7", "0"]


def test_spaces_in_memory_are_apart() -> None:
    """Two of the same name share nothing."""
    one = SqliteStore.open(None, space="same")
    two = SqliteStore.open(None, space="same")
    put(one, "a")

    assert (one.admin.count(), two.admin.count()) == (1, 0)
    one.close()
    two.close()


def test_two_stores_of_one_process_share_a_file(tmp_path: Path) -> None:
    """Opening and closing the second does not break the locks of the first."""
    first = open_store(tmp_path / "space.db")
    put(first, "a")
    for number in range(3):
        second = open_store(tmp_path / "space.db")
        put(second, f"b{number}")
        second.close()
        put(first, f"c{number}")

    assert first.admin.count() == 7
    assert all(finding.ok for finding in first.admin.check())
    first.close()


def test_closing_waits_for_nobody(tmp_path: Path) -> None:
    """While others write, the log is left to them."""
    path = tmp_path / "space.db"
    store, other = open_store(path), open_store(path)
    put(store, "a")
    with other._connections.write_transaction():
        store.close()
        assert (tmp_path / "space.db-wal").stat().st_size > 0
    assert other.admin.count() == 1
    other.close()
    assert not (tmp_path / "space.db-wal").exists()


def test_a_store_in_use_by_another_thread_is_not_torn_away(tmp_path: Path) -> None:
    """Closing says so, and can be repeated when that is done."""
    store = open_store(tmp_path / "space.db")
    started, finish = threading.Event(), threading.Event()

    def pause() -> int:
        started.set()
        finish.wait(60)
        return 1

    def work() -> None:
        with store._connections.read_transaction() as db:
            db.create_scalar_function("pause", pause, 0)
            assert db.execute("SELECT pause()").get == 1

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    with pytest.raises(StoreError, match="in use by another thread"):
        store.close()
    finish.set()
    thread.join()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.admin.count()


def test_a_space_whose_folder_is_gone_can_still_be_closed(tmp_path: Path) -> None:
    """There is nothing left to tidy up."""
    folder = tmp_path / "folder"
    store = open_store(folder / "space.db")
    put(store, "a")
    shutil.rmtree(folder)

    store.close()

    assert not folder.exists()


_CHECKPOINTING = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(5000)
db.execute("CREATE TABLE junk (a)")
print("begun", flush=True)
for turn in range(1_000_000):
    db.execute("INSERT INTO junk VALUES (randomblob(20000))")
    if turn % 7 == 0:
        db.execute("DELETE FROM junk")
        db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
"""


def test_a_file_that_is_being_written_is_not_taken_for_a_broken_one(tmp_path: Path) -> None:
    """Looking at it takes no lock, so it meets half of a write now and then, and looks again."""
    path = tmp_path / "space.db"
    open_store(path).close()
    writer = subprocess.Popen(
        [sys.executable, "-c", _CHECKPOINTING, str(path)], stdout=subprocess.PIPE
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
        until = time.monotonic() + 2
        while time.monotonic() < until:
            opening._require_own_file(path)
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()


def test_a_file_whose_log_was_half_written_into_it_opens_with_all_it_held(tmp_path: Path) -> None:
    """As a kill in the middle of a checkpoint leaves it: the first page tells of others that
    only the log has."""
    path, killed = tmp_path / "space.db", tmp_path / "killed" / "space.db"
    killed.parent.mkdir()
    open_store(path).close()
    store = open_store(path)
    put(store, *(f"{n:016d}" for n in range(300)))
    for part in ("", "-wal"):
        shutil.copy(f"{path}{part}", f"{killed}{part}")
    store.close()
    log = Path(f"{killed}-wal").read_bytes()
    size = int.from_bytes(log[8:12], "big")
    frames = range(32, len(log) - size, 24 + size)
    first = [log[at + 24 :][:size] for at in frames if log[at : at + 4] == b"\0\0\0\1"]
    with killed.open("r+b") as file:
        file.write(first[-1])

    with pytest.raises(apsw.CorruptError):
        opening._read_application_id(killed, "mode=ro&immutable=1")
    opened = open_store(killed)
    assert opened.admin.count() == 300
    opened.close()
