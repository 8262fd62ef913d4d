"""A database is prepared, refused with the SQL to run, and used through faults."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from bethink.cli.run import run
from bethink.errors import BadSetting, MissingExtra, SchemaTooNew, StoreBusy, StoreError
from bethink.memory import Memory
from bethink.ports import TextSearch
from bethink.store import open_on_server
from bethink.store.postgres import PostgresStore, distribution, opening, server
from bethink.store.postgres.schema import migrations
from postgres_server import initialised_url, open_space, running_server
from records import NOW, record, scope


@pytest.fixture
def empty(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database without any tables."""
    name = f"empty_{abs(hash(request.node.name)):x}"[:40]
    with psycopg.connect(running_server().url, autocommit=True) as owner:
        owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        owner.execute(f"CREATE DATABASE {name}")
    yield running_server().database(name)
    with psycopg.connect(running_server().url, autocommit=True) as owner:
        owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def as_role(url: str, name: str, **rights: str) -> str:
    """Return the URL of a role that may log in and nothing else."""
    with psycopg.connect(running_server().url, autocommit=True) as owner:
        if owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
            owner.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'role'")
    return f"postgresql://{name}:role@{url.rpartition('@')[2]}"


def test_a_database_is_prepared_once(empty: str) -> None:
    """A second call changes nothing, and says that all is there."""
    first = opening.init_store(empty)
    assert first == opening.init_store(empty) == opening.migrate_store(empty)
    assert (first.schema, first.serving, first.secured) == (migrations()[-1].version, True, True)


def test_preparing_again_waits_for_nobody(empty: str) -> None:
    """A database in use is prepared again without a lock that its readers would hold up."""
    opening.init_store(empty)
    impatient = f"{empty}?options=-c%20lock_timeout%3D500"
    with psycopg.connect(empty) as reader:
        reader.execute("SELECT count(*) FROM bethink.item, bethink.meta, bethink.space")
        assert opening.init_store(impatient).secured


def test_an_empty_database_says_what_it_needs(empty: str) -> None:
    """Neither opening nor migrating creates tables; that it has no spaces says too little."""
    for call in (
        opening.migrate_store,
        opening.list_spaces,
        lambda url: opening.has_space(url, "a"),
        lambda url: PostgresStore.open(url, space="a"),
    ):
        with pytest.raises(StoreError, match="no tables of Bethink") as found:
            call(empty)
        assert "store init" in found.value.remedy


def test_a_newer_schema_is_refused(empty: str) -> None:
    """It may hold what this version would lose."""
    opening.init_store(empty)
    with psycopg.connect(empty) as owner:
        owner.execute("INSERT INTO bethink.migration VALUES (99)")
    for call in (opening.migrate_store, lambda url: PostgresStore.open(url, space="a")):
        with pytest.raises(SchemaTooNew, match="schema 99"):
            call(empty)


def test_a_role_without_rights_is_told_the_sql(empty: str) -> None:
    """One sentence, and what to run."""
    with pytest.raises(StoreError, match="may not create the schema") as found:
        opening.init_store(as_role(empty, "poor"))
    assert "GRANT CREATE ON DATABASE" in found.value.remedy


def test_a_stranger_is_told_to_join_the_serving_role(empty: str) -> None:
    """Being able to connect is not enough."""
    opening.init_store(empty)
    with pytest.raises(StoreError) as found:
        PostgresStore.open(as_role(empty, "stranger"), space="a")
    assert "GRANT bethink_serve" in found.value.remedy


def test_an_owner_without_the_rights_of_a_superuser_prepares_and_uses_a_database(
    empty: str,
) -> None:
    """A role that creates another may grant it, but from PostgreSQL 16 on not yet set it."""
    name = empty.rpartition("/")[2]
    with psycopg.connect(empty, autocommit=True) as superuser:
        opening.init_store(empty)
        superuser.execute("DROP SCHEMA bethink CASCADE")
        url = as_role(empty, "bethink_owner")
        superuser.execute(f"ALTER DATABASE {name} OWNER TO bethink_owner")
        for state in ("ADMIN TRUE, INHERIT FALSE, SET FALSE", "ADMIN TRUE"):
            superuser.execute(f"REVOKE bethink_serve_{name} FROM bethink_owner CASCADE")
            superuser.execute(f"GRANT bethink_serve_{name} TO bethink_owner WITH {state}")
            assert opening.init_store(url).serving
        PostgresStore.open(url, space="a").close()
        superuser.execute(f"REVOKE bethink_serve_{name} FROM bethink_owner CASCADE")
        superuser.execute(f"GRANT bethink_serve_{name} TO bethink_owner WITH SET FALSE")
        assert not opening.store_status(url).serving


def test_who_serves_one_database_reads_no_other(empty: str) -> None:
    """Roles belong to the whole server, so each database has a serving role of its own."""
    application = as_role(empty, "of_one_database")
    opening.init_store(empty)
    initialised_url()
    role = opening.store_status(empty).role
    with psycopg.connect(empty, autocommit=True) as owner:
        owner.execute(f"GRANT {role} TO of_one_database")
    PostgresStore.open(application, space="a").close()
    other = as_role(running_server().url, "of_one_database")
    for call in (opening.store_status, lambda url: PostgresStore.open(url, space="a")):
        with pytest.raises(StoreError, match="permission denied"):
            call(other)


def test_a_database_keeps_the_role_that_its_schema_names(empty: str) -> None:
    """One of an earlier version, one that was renamed, one restored under another name."""
    opening.init_store(empty)
    first = opening.store_status(empty).role
    with psycopg.connect(empty, autocommit=True) as owner:
        owner.execute(f"ALTER ROLE {first} RENAME TO bethink_serve")
        try:
            assert opening.init_store(empty).role == "bethink_serve"
            PostgresStore.open(empty, space="a").close()
        finally:
            owner.execute(f"ALTER ROLE bethink_serve RENAME TO {first}")


def test_tables_that_came_without_rights_are_given_them_by_init(empty: str) -> None:
    """As a dump has them that leaves the rights out."""
    opening.init_store(empty)
    role = opening.store_status(empty).role
    with psycopg.connect(empty, autocommit=True) as owner:
        owner.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA bethink FROM {role}")
        owner.execute(f"REVOKE ALL ON SCHEMA bethink FROM {role}")
    with pytest.raises(StoreError, match="permission denied"):
        PostgresStore.open(empty, space="a")
    opening.init_store(empty)
    PostgresStore.open(empty, space="a").close()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(encoding: str) -> None:
    """Before anything is created, with the SQL for one that can."""
    name = f"in_{encoding.lower()}"
    with psycopg.connect(running_server().url, autocommit=True) as owner:
        owner.execute(f"DROP DATABASE IF EXISTS {name}")
        owner.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        with pytest.raises(StoreError, match=encoding) as found:
            opening.init_store(running_server().database(name))
        assert "ENCODING 'UTF8'" in found.value.remedy
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_space_that_is_made_again_counts_on(empty: str) -> None:
    """A program that had the old one open would take its caches for those of the new one."""
    opening.init_store(empty)
    old = PostgresStore.open(empty, space="a")
    for number in range(3):
        old.items.put([record(f"a{number}")], actor="x", now=NOW)
    before = old.admin.generation()
    opening.remove_space(empty, "a")
    new = PostgresStore.open(empty, space="a")
    assert new.admin.generation() > before
    new.close()
    old.close()


def test_a_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default installation has none."""
    for name in [name for name in sys.modules if name.startswith("bethink.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra) as found:
        open_on_server("postgresql://localhost/x", "a")
    assert "postgres" in found.value.remedy


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret-word@127.0.0.1:1/none",
        "postgresql://me@127.0.0.1:1/none?password=secret-word",
        "postgresql://127.0.0.1:1/none?user=me&password=secret-word&sslmode=disable",
    ],
)
def test_a_server_that_is_away_is_told_in_one_sentence(url: str) -> None:
    """Without the password of its URL."""
    with pytest.raises(StoreError, match="cannot be reached") as found:
        opening.store_status(url)
    assert "secret-word" not in str(found.value)


def test_a_file_is_no_space_of_a_server(tmp_path: Path) -> None:
    """A path and a server contradict each other."""
    with pytest.raises(BadSetting):
        Memory.open("a", path=tmp_path / "a.db", store=initialised_url())


def test_a_space_that_does_not_exist_is_not_made_by_reading() -> None:
    """It is empty, and stays so."""
    with Memory.open("never-made", store=initialised_url(), create=False, embedder="none") as one:
        assert one.recall("anything").hits == ()
    assert not opening.has_space(initialised_url(), "never-made")


def test_the_command_line_uses_a_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every command takes --store; spaces are listed and removed there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BETHINK_WORKER", "off")
    url = initialised_url()

    def call(*arguments: str) -> Any:
        code = run(["--store", url, "--space", "by-command", "--json", *arguments])
        return code, json.loads(capsys.readouterr().out)

    assert call("store", "status", url)[1]["ready"]
    assert call("config", "get", "store")[1]["value"] == url.replace(":bethink-tests@", "@")
    assert call("remember", "The deploy key lives in vault B")[0] == 0
    answer = call("recall", "where is the deploy key")[1]
    assert [one["text"] for one in answer["items"]] == ["The deploy key lives in vault B"]
    assert {"name": "by-command", "current": True} in call("spaces")[1]
    assert call("stats")[1]["memories"] == 1
    assert call("spaces", "remove", "by-command", "--yes")[1]["removed"]
    assert not opening.has_space(url, "by-command")
    assert not (tmp_path / "data" / "spaces").exists()


def test_what_uses_files_of_its_own_also_runs_with_a_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Measuring and the demo make temporary spaces; a preview compares with the server's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BETHINK_WORKER", "off")
    url = initialised_url()

    def call(*arguments: str) -> str:
        code = run(["--store", url, "--space", "previewed", *arguments])
        assert code == 0
        return capsys.readouterr().out

    (tmp_path / "notes.txt").write_text("The spare key hangs behind the cellar door\n")
    assert "would store 1 memory" in call("import", "notes.txt", "--from", "lines", "--dry-run")
    call("import", "notes.txt", "--from", "lines")
    assert "would store 1 memory" not in call("import", "notes.txt", "--from", "lines", "--dry-run")
    assert run(["--store", url, "demo"]) == 0
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.jsonl").write_text('{"id": "1", "text": "The spare key hangs there"}')
    asked = '{"id": "q", "question": "where is the spare key?", "relevant": ["1"]}'
    (tmp_path / "set" / "a.questions.jsonl").write_text(asked)
    call("eval", "set")
    call("spaces", "remove", "previewed", "--yes")


def test_a_move_tells_no_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither what it did nor what it refuses names the password of a URL."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BETHINK_WORKER", "off")
    url = initialised_url()
    said = ""
    for arguments in (
        ("remember", "The deploy key lives in vault B"),
        ("--store", url, "move", "told", "--to", url),
        ("move", "told", "--to", url, "--remove-source"),
        ("move", "told", "--to", url),
        ("--store", url, "spaces", "remove", "told", "--yes"),
    ):
        run(["--space", "told", *arguments])
        said += "".join(capsys.readouterr())
    assert "already" in said
    assert "bethink-tests" not in said


def on_server(sql: str, *values: Any) -> None:
    with psycopg.connect(running_server().url, autocommit=True) as owner:
        owner.execute(sql, values)


def end_connections() -> None:
    on_server(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'bethink' AND pid <> pg_backend_pid()"
    )


def test_idle_connections_that_died_are_replaced(tmp_path: Path) -> None:
    """A restarted server is not noticed by the next call."""
    store = open_space(tmp_path)
    store.items.put([record("a")], actor="x", now=NOW)
    end_connections()
    assert store.admin.count() == 1
    end_connections()
    store.items.put([record("b")], actor="x", now=NOW)
    assert store.admin.count() == 2
    store.close()


def test_a_write_whose_connection_dies_is_told_and_not_saved(tmp_path: Path) -> None:
    """Nothing acknowledged is lost, nothing lost is acknowledged."""
    store = open_space(tmp_path)

    def write_half() -> None:
        with store._connections.write_transaction() as db:
            db.execute("INSERT INTO meta (name, value) VALUES ('half', 'done')")
            assert db.changes() == 1  # it was sent
            end_connections()

    with pytest.raises(StoreError):
        write_half()
    with store._connections.read_transaction() as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'half'").get is None
    store.items.put([record("a")], actor="x", now=NOW)
    assert store.admin.count() == 1
    store.close()


def test_a_writer_waits_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of the space is the lock of its writers."""
    store = open_space(tmp_path)
    monkeypatch.setattr("bethink.store.postgres.connections.LOCK_TIMEOUT_S", 0.1)
    with store._connections.write_transaction() as db:
        db.execute("SELECT value FROM meta WHERE name = 'journal'")  # begins it
        raised = in_thread(lambda: store.items.put([record("a")], actor="x", now=NOW))
    assert isinstance(raised, StoreBusy)
    assert raised.message.endswith("not saved")
    store.close()


def test_without_a_free_connection_a_call_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call waits for ever, and none is leaked."""
    monkeypatch.setattr(server, "POOL_SIZE", 1)
    monkeypatch.setattr(server, "LOCK_TIMEOUT_S", 0.2)
    url = initialised_url() + "?application_name=small"
    store = PostgresStore.open(url, space="small-pool")
    for _ in range(3):
        with store.snapshot():
            assert isinstance(in_thread(store.admin.count), StoreBusy)
    assert store.admin.count() == 0
    store.close()


def test_a_store_that_is_closed_while_it_is_read_leaves_no_connection() -> None:
    """What reads may end after the last user has released the server."""
    url = initialised_url() + "?application_name=closed-early"
    store = PostgresStore.open(url, space="closed-early")
    lent_by = store._connections.server
    with store.snapshot():
        assert store.admin.count() == 0
        assert lent_by.lent == 1
        store.close()
    assert lent_by.lent == 0


def test_a_recall_needs_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers that hold one and wait for a second would wait for each other.

    A view of the space inside a snapshot reads the same moment.
    """
    monkeypatch.setattr(server, "POOL_SIZE", 1)
    monkeypatch.setattr(server, "LOCK_TIMEOUT_S", 0.2)
    url = initialised_url() + "?application_name=one"
    with Memory.open("one-connection", store=url, embedder="none") as memory:
        stored = memory.remember("The deploy key lives in vault B")
        memory.remember("The deploy key was seen in vault C", trust=0)
        for one in (memory, memory.below(1)):
            found = one.recall("deploy key vault")
            assert stored.id in [hit.item.id for hit in found.hits]
        store = memory.store
        with store.snapshot(), store.trusted().snapshot():
            assert (store.admin.count(), store.trusted().admin.count()) == (2, 1)


def test_views_inside_a_snapshot_read_the_same_moment(tmp_path: Path) -> None:
    """What is written in between is seen by none of them."""
    store = open_space(tmp_path)
    store.items.put([record("a"), record("b", trust=0)], actor="x", now=NOW)
    with store.snapshot():
        in_thread(lambda: store.items.put([record("c")], actor="x", now=NOW))
        with store.trusted().snapshot():
            assert store.trusted().admin.count() == 1
    with store.trusted().snapshot():
        assert store.trusted().admin.count() == 2
    store.close()


def in_thread(call: Callable[[], Any]) -> Any:
    """Return what a call gives or raises in another thread."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(call())
        except StoreError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def test_a_statement_that_takes_too_long_is_told(tmp_path: Path) -> None:
    """The limit is the server's or the role's."""
    store = open_space(tmp_path)

    def wait() -> None:
        with store._connections.read_transaction() as db:
            db.execute("SELECT set_config('statement_timeout', '50', true)")
            db.execute("SELECT pg_sleep(5)")

    with pytest.raises(StoreBusy, match="within the time"):
        wait()
    assert store.admin.count() == 0
    store.close()


def test_writers_of_one_space_take_turns(tmp_path: Path) -> None:
    """Turns of a session are numbered without a gap, whoever stores them."""
    store = open_space(tmp_path)
    failed: list[Any] = []

    def write(number: int) -> None:
        for turn in range(5):
            try:
                one = record(f"w{number}-{turn}", session="s")
                store.items.put([one], actor="x", now=NOW)
            except StoreError as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = store.items.get([f"w{n}-{turn}" for n in range(4) for turn in range(5)])
    assert failed == []
    assert sorted(one.seq for one in numbers.values()) == list(range(20))
    store.close()


def test_text_that_no_database_takes_is_refused(tmp_path: Path) -> None:
    """And a question with it finds nothing."""
    store = open_space(tmp_path)
    assert store.items.get(["a\0b"]) == {}
    assert store.items.find_keys(("k\0",)).get("k\0") is None
    store.close()


def erase(store: PostgresStore, item: str) -> tuple[str, ...]:
    return store.items.erase([item], actor="x", now=NOW).out_of_reach


def test_an_erase_says_what_the_server_keeps(tmp_path: Path) -> None:
    """Rows and index entries are gone; what others still see is told as long as they do."""
    store = open_space(tmp_path)
    store.items.put([record("a"), record("b")], actor="x", now=NOW)
    with psycopg.connect(running_server().url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM bethink.item")
        seen = erase(store, "a")
    unseen = erase(store, "b")
    assert any("until it vacuums" in one for one in seen)
    assert not any("until it vacuums" in one for one in unseen)
    assert any("write-ahead log" in one for one in unseen)
    store.close()


def test_an_erase_changes_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a pooler the session is somebody else's with the next statement."""
    sent: list[str] = []
    execute = psycopg.Connection.execute

    def record_statement(self: Any, query: Any, *rest: Any, **options: Any) -> Any:
        sent.append(query if isinstance(query, str) else bytes(query).decode())
        return execute(self, query, *rest, **options)

    store = open_space(tmp_path)
    store.items.put([record("a")], actor="x", now=NOW)
    monkeypatch.setattr(psycopg.Connection, "execute", record_statement)
    erase(store, "a")
    assert any(one.startswith("VACUUM") for one in sent)
    assert not [one for one in sent if one.startswith(("SET ", "RESET"))]
    store.close()


def test_a_server_that_was_upgraded_lets_its_rows_be_vacuumed(empty: str) -> None:
    """The right to do so exists from PostgreSQL 17 on; a database from before lacks it."""
    opening.init_store(empty)
    with psycopg.connect(empty, autocommit=True) as owner:
        role = f"bethink_serve_{empty.rpartition('/')[2]}"
        owner.execute(f"REVOKE MAINTAIN ON ALL TABLES IN SCHEMA bethink FROM {role}")
        opening.migrate_store(empty)
        sql = f"SELECT has_table_privilege('{role}', 'bethink.item', 'MAINTAIN')"
        assert owner.execute(sql).fetchone() == (True,)


def test_a_server_that_cannot_move_shards_is_not_distributed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before PostgreSQL 16 a move under writes never ends; what is distributed stays usable."""
    old: Any = SimpleNamespace(info=SimpleNamespace(server_version=150_018))
    monkeypatch.setattr(distribution, "is_distributed", lambda _: False)
    with pytest.raises(StoreError, match="PostgreSQL 15 would never end"):
        distribution.require_bypass(old)
    monkeypatch.setattr(distribution, "is_distributed", lambda _: True)
    monkeypatch.setattr(distribution, "read_value", lambda *_: None)
    distribution.require_bypass(old)


def test_damage_is_found_and_taken_out_of_recall(tmp_path: Path) -> None:
    """Who changes a row by hand is found out: nothing but what was stored is shown."""
    store = open_space(tmp_path)
    store.items.put([record("a", "the key is in vault B"), record("b")], actor="x", now=NOW)
    space = store._connections.space_id
    on_server("UPDATE bethink.item SET text = 'forged' WHERE space_id = %s AND id = 'a'", space)
    assert list(store.items.get(["a", "b"])) == ["b"]
    assert store.items.damaged(["a", "b"]) == ["a"]
    wrong = {check.name for check in store.admin.check() if not check.ok}
    assert {"content", "words"} <= wrong
    store.admin.check(repair=True)
    after = {check.name for check in store.admin.check() if not check.ok}
    assert after == {"content"}  # it stays damaged, in quarantine
    store.close()


def test_a_broken_word_index_is_rebuilt(tmp_path: Path) -> None:
    """From the memories alone."""
    store = open_space(tmp_path)
    store.items.put([record("a", "vault B"), record("b", "dock nine")], actor="x", now=NOW)
    space = store._connections.space_id
    for table in ("posting_new", "gram", "term_gram", "term"):
        on_server(f"DELETE FROM bethink.{table} WHERE space_id = %s", space)
    assert not all(check.ok for check in store.admin.check())
    store.admin.check(repair=True)
    assert [check for check in store.admin.check() if not check.ok] == []
    assert [match.item.id for match in store.search.text(TextSearch("vault"), scope()).matches]
    store.close()


def test_nobody_waits_for_another_server_that_does_not_answer() -> None:
    """A server is connected to while others can be used."""
    failed: list[BaseException] = []

    def use(url: str) -> None:
        try:
            server.Server.use(url).release()
        except StoreError as error:
            failed.append(error)

    other = f"{initialised_url()}?application_name=another"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        address = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/nobody"
        waiting = threading.Thread(target=use, args=(address,), daemon=True)
        waiting.start()
        reached, _ = silent.accept()
        with reached:
            server.Server.use(other).release()
            assert not failed  # it still waits
    waiting.join(60)
    assert len(failed) == 1


def test_a_server_that_many_open_at_once_is_one(empty: str) -> None:
    """Whoever connects first: all use the same connections, and none stays open."""
    opening.init_store(empty)
    ready, used = threading.Barrier(8), []

    def use() -> None:
        ready.wait(60)
        used.append(server.Server.use(empty))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert len({id(one) for one in used}) == 1
    assert used[0]._users == 8
    for one in used:
        one.release()
    assert (empty, os.getpid()) not in server.Server._known


def test_the_encoding_of_the_environment_changes_nothing(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are sent and read as UTF-8."""
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    opening.init_store(empty)
    text = "田中さん lives in Łódź 🙂"
    with Memory.open("words", store=empty, embedder="none") as memory:
        kept = memory.remember(text).id
        assert memory.get(kept).text == text


def test_every_error_of_the_server_has_a_remedy() -> None:
    """Whatever it is called."""
    kinds = [
        kind
        for kind in vars(psycopg.errors).values()
        if isinstance(kind, type) and issubclass(kind, psycopg.Error)
    ]
    assert len(kinds) > 200
    assert [kind for kind in kinds if not server.to_own_error("it", kind("x")).remedy] == []


def test_the_driver_prints_nothing() -> None:
    """What its pool warns of is told by an error of ours, not by a line of another program."""
    code = (
        "import bethink.store.postgres.server, logging;"
        "logging.getLogger('psycopg.pool').warning('error connecting in pool-1')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")
