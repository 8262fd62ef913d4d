"""Faults of a real server: nothing acknowledged is lost, nothing half-written, nothing leaked."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bethink import Memory
from bethink.errors import StoreBusy, StoreError
from bethink.store.postgres import PostgresStore, opening, server
from needed import report_missing
from postgres_server import Server, free_port, running_server, unprivileged
from records import NOW, record

CLIENTS = 5


@cache
def durable() -> Server:
    """A server that writes to the disk before it acknowledges, which the others do not."""
    started = running_server(fsync="on")
    opening.init_store(started.url)
    return started


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the server is; a call waits only shortly for a connection, and leaves none behind."""
    monkeypatch.setattr(server, "LOCK_TIMEOUT_S", 1)
    yield durable().url
    wait_for(lambda: connected() == 0)


def connected() -> int:
    """Return how many connections of ours the server has."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bethink'"
    with psycopg.connect(durable().url, autocommit=True) as owner:
        found = owner.execute(sql).fetchone()
    return int(found[0]) if found else 0


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for what happens in another process; fail where it never does."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen")


def opened(url: str, space: str) -> Memory:
    return Memory.open(space, store=url, embedder="none")


def store_of(memory: Memory) -> PostgresStore:
    store = memory.store
    assert isinstance(store, PostgresStore)
    return store


def lent(memory: Memory) -> int:
    """Return how many connections this process has in use."""
    return store_of(memory)._connections.server.lent


def problems(memory: Memory) -> list[Any]:
    return [one for one in memory.doctor() if not one.ok]


class Writer:
    """A client that writes until it is told to stop, and knows what was acknowledged."""

    def __init__(self, memory: Memory, number: int) -> None:
        self.memory, self.number = memory, number
        self.acknowledged: dict[str, str] = {}
        self.failed: dict[str, StoreError] = {}
        self.stopped = threading.Event()

    def run(self) -> None:
        count = 0
        while not self.stopped.is_set():
            key = f"w{self.number}-{count}"
            count += 1
            try:
                stored = self.memory.remember(f"Memory {count} of writer {self.number}", key=key)
                self.acknowledged[key] = stored.id
            except StoreError as error:
                self.failed[key] = error

    def repeat(self) -> None:
        """Write again what failed, with the same keys."""
        for key in self.failed:
            count = int(key.partition("-")[2]) + 1
            stored = self.memory.remember(f"Memory {count} of writer {self.number}", key=key)
            self.acknowledged[key] = stored.id


def test_a_server_that_is_killed_loses_nothing_acknowledged(url: str) -> None:
    """Memories stay open through it, say what failed, and a repeated key is stored once."""
    with ExitStack() as stack:
        memories = [stack.enter_context(opened(url, f"killed-{n % 2}")) for n in range(3)]
        writers = [Writer(memory, number) for number, memory in enumerate(memories)]
        threads = [threading.Thread(target=writer.run, daemon=True) for writer in writers]
        for writer in writers:
            stack.callback(writer.stopped.set)
        for thread in threads:
            thread.start()
        for round_ in (1, 2):
            wait_for(lambda: all(len(w.acknowledged) > 4 * round_ for w in writers))  # noqa: B023
            durable().kill()
            wait_for(lambda: all(len(w.failed) >= round_ for w in writers))  # noqa: B023
            durable().start()
        wait_for(lambda: all(len(w.acknowledged) > 12 for w in writers))
        for writer in writers:
            writer.stopped.set()
        for thread in threads:
            thread.join()
        for writer in writers:
            known = writer.memory.store.items.get(list(writer.acknowledged.values()))
            assert set(known) == set(writer.acknowledged.values())
            writer.repeat()
        for space in (0, 1):
            expected = {one for w in writers[space::2] for one in w.acknowledged.values()}
            assert writers[space].memory.stats()["memories"] == len(expected)
            assert problems(writers[space].memory) == []
        wait_for(lambda: not any(map(lent, memories)))


def test_a_server_that_restarts_is_used_again(url: str) -> None:
    """By a memory that has had connections for many threads, all of which have died."""
    with opened(url, "restarted") as memory:
        memory.remember("Stored before the restart")
        together = threading.Barrier(8)

        def count() -> int:
            with memory.store.snapshot():
                together.wait()
                return memory.store.admin.count()

        with ThreadPoolExecutor(8) as pool:
            assert [one.result() for one in [pool.submit(count) for _ in range(8)]] == [1] * 8
        durable().stop()
        with pytest.raises(StoreError, match="cannot be reached"):
            memory.recall("restart")
        with pytest.raises(StoreError, match="cannot be reached"):
            memory.remember("Not stored")
        durable().start()
        assert [hit.item.text for hit in memory.recall("restart").hits] == [
            "Stored before the restart"
        ]
        memory.remember("Stored after the restart")
        assert memory.stats()["memories"] == 2
        wait_for(lambda: lent(memory) == 0)  # reads are ended in the background


def test_a_restart_is_not_noticed_by_who_can_wait(url: str) -> None:
    """Idle connections that died are replaced without an error, however many there are."""
    with opened(url, "idle") as memory:
        together = threading.Barrier(6)

        def count() -> int:
            with memory.store.snapshot():
                together.wait()
                return memory.store.admin.count()

        with ThreadPoolExecutor(6) as pool:
            for one in [pool.submit(count) for _ in range(6)]:
                one.result()
        durable().kill()
        durable().start()
        memory.remember("The first call after the restart")
        assert memory.stats()["memories"] == 1


CLIENT = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from bethink.store.postgres import PostgresStore
from records import NOW, record
store = PostgresStore.open({url!r}, space="client")
store.items.put([record("whole")], actor="x", now=NOW)
with store._connections.write_transaction() as db:
    db.execute("INSERT INTO meta (name, value) VALUES ('half', 'done')")
    _ = db.execute("SELECT value FROM meta WHERE name = 'half'").get
    print("writing", flush=True)
    sys.stdin.readline()
"""


def test_a_client_that_is_killed_leaves_nothing_half_written(url: str) -> None:
    """Nor a lock, nor a connection; what it had been told was stored is there."""
    code = CLIENT.format(tests=str(Path(__file__).parents[1]), url=url)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "writing\n"
        client.send_signal(signal.SIGKILL)
    wait_for(lambda: connected() == 0)
    store = PostgresStore.open(url, space="client")
    with store._connections.write_transaction() as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'half'").get is None
    store.items.put([record("after")], actor="x", now=NOW)
    assert set(store.items.get(["whole", "after"])) == {"whole", "after"}
    store.close()


def test_a_lost_connection_says_that_nothing_was_saved(url: str) -> None:
    """In the middle of a write it is known; during a commit it is not, and that is said."""
    store = PostgresStore.open(url, space="lost")

    def write_half() -> None:
        with store._connections.write_transaction() as db:
            db.execute("INSERT INTO meta (name, value) VALUES ('half', 'done')")
            assert db.execute("SELECT value FROM meta WHERE name = 'half'").get == "done"
            end_connections()
            _ = db.execute("SELECT value FROM meta WHERE name = 'half'").get

    with pytest.raises(StoreError, match="nothing was saved"):
        write_half()
    with store._connections.read_transaction() as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'half'").get is None

    def lose_commit() -> None:
        with store._connections.write_transaction() as db:
            _ = db.execute("SELECT value FROM meta WHERE name = 'half'").get
            session: Any = db
            finish = session.finish

            def finish_too_late(end: str) -> str | None:
                end_connections()
                said: str | None = finish(end)
                return said

            session.finish = finish_too_late

    with pytest.raises(StoreError, match="not known") as told:
        lose_commit()
    assert "same key" in told.value.remedy
    store.close()


def end_connections() -> None:
    with psycopg.connect(durable().url, autocommit=True) as owner:
        owner.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'bethink'"
        )


def test_a_deadlock_is_told_and_nothing_is_saved(url: str) -> None:
    """Who is chosen to give up can try again."""
    store = PostgresStore.open(url, space="deadlock")
    store.items.put([record("a")], actor="x", now=NOW)
    lock_item = "SELECT 1 FROM bethink.item WHERE space_id = %s FOR UPDATE"
    lock_space = "SELECT 1 FROM bethink.space WHERE space_id = %s FOR UPDATE"
    of_space = (opening.space_id_of("deadlock"),)
    with psycopg.connect(url) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SET deadlock_timeout = '1min'")
        other.execute(lock_item, of_space)

        def write() -> None:
            with store._connections.write_transaction() as db:
                db.execute("INSERT INTO meta (name, value) VALUES ('half', 'done')")
                db.execute("SELECT set_config('lock_timeout', '0', true)")
                waiting = pool.submit(other.execute, lock_space, of_space)
                wait_for(lambda: waits_for_lock() == 1)
                try:
                    db.execute("UPDATE item SET tokens = 1 WHERE id = 'a'")
                    _ = db.execute("SELECT value FROM meta WHERE name = 'half'").get
                finally:
                    store._connections._local.waiting = waiting

        with pytest.raises(StoreBusy, match="nothing was saved"):
            write()
        store._connections._local.waiting.result()
        other.rollback()
    with store._connections.read_transaction() as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'half'").get is None
    store.items.put([record("b")], actor="x", now=NOW)
    assert set(store.items.get(["a", "b"])) == {"a", "b"}
    store.close()


def waits_for_lock() -> int:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(durable().url, autocommit=True) as owner:
        found = owner.execute(sql).fetchone()
    return int(found[0]) if found else 0


def test_a_storm_of_faults_leaks_no_connection(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time-outs of statements, of locks and of a small pool, from many threads at once."""
    monkeypatch.setattr(server, "POOL_SIZE", 3)
    monkeypatch.setattr(server, "LOCK_TIMEOUT_S", 0.2)
    monkeypatch.setattr("bethink.store.postgres.connections.LOCK_TIMEOUT_S", 0.05)
    store = PostgresStore.open(f"{url}?options=-cstatement_timeout%3D300", space="storm")
    told: list[type[Exception]] = []

    def hurry(number: int) -> None:
        try:
            if number % 3:
                store.items.put([record(f"s{number}")], actor="x", now=NOW)
            else:
                with store._connections.read_transaction() as db:
                    db.execute("SELECT pg_sleep(1)")
        except StoreBusy as error:
            told.append(type(error))
        else:
            told.append(PostgresStore)

    with ThreadPoolExecutor(12) as pool:
        for one in [pool.submit(hurry, number) for number in range(36)]:
            one.result()
    assert len(told) == 36
    assert StoreBusy in told
    connections: Any = store._connections
    wait_for(lambda: connections.server.lent == 0)
    stored = store.admin.count()
    assert stored == told.count(PostgresStore)  # type: ignore[arg-type]  # it stands for success
    store.close()


@pytest.fixture
def bouncer() -> Iterator[int]:
    """PgBouncer in transaction mode with two sessions for all; its port."""
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        report_missing("pgbouncer")
    port, folder = free_port(), durable().folder
    settings = folder / "pgbouncer.ini"
    (folder / "users.txt").write_text('"postgres" "bethink-tests"\n')
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={durable().port}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {folder / 'users.txt'}\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 200\n"
        "server_idle_timeout = 1\n"
    )
    process = subprocess.Popen(
        unprivileged([found, "-q", str(settings)]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(listens)
    yield port
    process.terminate()
    process.wait()


def test_clients_behind_a_pooler_see_only_their_own(url: str, bouncer: int) -> None:
    """Five clients of five spaces share two sessions; none ever gets a row of another."""
    server_url = url.replace(f":{durable().port}/", f":{bouncer}/")

    def work(client: int) -> list[str]:
        seen: list[str] = []
        own = f"{server_url}?application_name=client{client}"
        with opened(own, f"tenant-{client}") as memory:
            for number in range(8):
                text = f"The secret number {number} of tenant{client}"
                memory.remember(text)
                seen += [hit.item.text for hit in memory.recall("secret number").hits]
                seen += [one.text for one in memory.browse(limit=50)]
            assert memory.stats()["memories"] == 8
            assert problems(memory) == []
        return seen

    with ThreadPoolExecutor(CLIENTS) as pool:
        for client, seen in enumerate(pool.map(work, range(CLIENTS))):
            assert len(seen) > 36
            assert {text.rpartition(" ")[2] for text in seen} == {f"tenant{client}"}
