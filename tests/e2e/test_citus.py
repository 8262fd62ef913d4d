"""A store whose tables are distributed over several servers by Citus.

They run with BETHINK_TEST_CITUS, the URL of a superuser of a coordinator, whose servers run on
this machine. Then the laws of stores and all other tests with a server run there, too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import psycopg
import pytest

from bethink import Memory
from bethink.cli import main
from bethink.errors import BethinkError, StoreBusy, StoreError
from bethink.model import Member
from bethink.store import prepare_server
from bethink.store.postgres import PostgresStore, distribution, opening, schema
from bethink.store.postgres.connections import space_id_of
from bethink.store.postgres.schema import SCHEMA, Migration, migrations, tables
from bethink.store.postgres.server import PROPAGATE, connect, serving_role
from bethink.testing import FixedClock
from corpus import CONVERSATION, NOTES, NOW
from postgres_server import CITUS, distributed_url
from shared_embedder import SHARED

pytestmark = [
    pytest.mark.skipif(not CITUS, reason="BETHINK_TEST_CITUS names no coordinator"),
    pytest.mark.timeout(600),  # databases with hundreds of tables are made and dropped
]
APPLICATION = "bethink_app"
SHARDS = 4
MIN_MOVING = distribution._MIN_MOVING
LAST_GUARD_S = 180


def at(url: str, *, host: str = "", database: str = "", user: str = "") -> str:
    """Return a URL with another server, database or role."""
    parts = urlsplit(url)
    role, _, place = parts.netloc.rpartition("@")
    netloc = f"{user or role}@{host or place}"
    return parts._replace(netloc=netloc, path=f"/{database}" if database else parts.path).geturl()


def workers(url: str = CITUS) -> list[str]:
    """Return the servers with shards, as host and port."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE shouldhaveshards"
            " ORDER BY nodeid"
        ).fetchall()
    return [place for (place,) in rows]


def moves_by_replication() -> bool:
    """Return whether a shard can be moved by logical replication: from PostgreSQL 16 on."""
    with psycopg.connect(CITUS) as connection:
        return connection.info.server_version >= MIN_MOVING


@pytest.fixture(scope="module", autouse=True)
def _distributed_before() -> Iterator[None]:
    """On PostgreSQL 15, which is refused: as for one who distributed before it was."""
    with pytest.MonkeyPatch.context() as patched:
        if not moves_by_replication():
            patched.setattr(distribution, "_MIN_MOVING", 0)
        yield


def coordinator() -> str:
    return CITUS.rpartition("@")[2].partition("/")[0]


@pytest.fixture
def fresh() -> Iterator[Callable[[str], str]]:
    """A function that gives the URL of a new database with the extension on every server."""
    made: list[str] = []

    def create(name: str) -> str:
        made.append(name)
        for place in (coordinator(), *workers()):
            _run(at(CITUS, host=place, database="postgres"), f"DROP DATABASE IF EXISTS {name} (FORCE)",
                 f"CREATE DATABASE {name}")  # fmt: skip
            _run(at(CITUS, host=place, database=name), "CREATE EXTENSION citus")
        url = at(CITUS, database=name)
        host, port = coordinator().split(":")
        _run(url, f"SELECT citus_set_coordinator_host('{host}', {port})")
        for place in workers():
            host, port = place.split(":")
            _run(url, f"SELECT citus_add_node('{host}', {port})")
        return url

    yield create
    for name in made:
        for place in (coordinator(), *workers()):
            _run(at(CITUS, host=place, database="postgres"), f"DROP DATABASE {name} (FORCE)")


def _run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture(scope="module")
def url() -> str:
    """The database of the coordinator, distributed."""
    return distributed_url(CITUS)


@pytest.fixture(scope="module")
def application(url: str) -> str:
    """The URL of a role that may serve and owns nothing."""
    with psycopg.connect(url, autocommit=True) as owner:
        known = owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (APPLICATION,))
        if known.fetchone() is None:
            owner.execute(f"CREATE ROLE {APPLICATION} LOGIN")
        owner.execute(f"GRANT {serving_role(owner)} TO {APPLICATION}")
    return at(url, user=APPLICATION)


def opened(url: str, space: str) -> Memory:
    store = PostgresStore.open(url, space=space)
    return Memory(store, embedder=SHARED, clock=FixedClock(NOW))


def fill(memory: Memory) -> list[str]:
    ids = [one.id for one in memory.remember_many([*NOTES, *CONVERSATION])]
    memory.put_thread("Keys and tokens", [Member(one) for one in ids[:3]])
    memory.update(ids[0], text="The deploy key lives in vault C", classification=3)
    memory.link(ids[0], "implies", ids[1])
    memory.recall("deploy key", track=True, profile="abmind")
    return ids


def content(memory: Memory) -> list[dict[str, Any]]:
    """Return all that is exported; that it was is in the journal, too."""
    return [one for one in memory.export() if one["type"] not in {"event", "end"}]


def space_on(url: str, place: str) -> str:
    """Return the name of a space whose shard lies on a server."""
    host, port = place.split(":")
    with psycopg.connect(url, autocommit=True) as connection:
        for number in range(1000):
            name = f"on-{port}-{number}"
            found = connection.execute(
                "SELECT count(*) FROM pg_dist_placement JOIN pg_dist_node USING (groupid)"
                " WHERE nodename = %s AND nodeport = %s AND shardid ="
                f" get_shard_id_for_distribution_column('{SCHEMA}.item', %s::bigint)",
                (host, int(port), space_id_of(name)),
            ).fetchone()
            if found and found[0]:
                return name
    raise AssertionError(place)


def test_every_statement_is_one_task_on_one_shard(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a memory does, the plan of each of its statements has one task, or none."""
    sent: dict[str, list[Any]] = {}
    execute = psycopg.RawCursor.execute

    def record(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
        if not bytes(query).startswith((b"BEGIN", b"SET", b"COMMIT", b"ROLLBACK")):
            sent.setdefault(bytes(query).decode(), list(params or ()))
        return execute(cursor, query, params, **options)

    monkeypatch.setattr(psycopg.RawCursor, "execute", record)
    with opened(url, "explained") as memory:
        ids = fill(memory)
        for profile in memory.profiles():
            memory.recall("who prefers short pull requsts", profile=profile, entities=["Maria"])
            memory.recall("deploy key", profile=profile, as_of=NOW, tags=["x"], track=True)
        memory.below(1).recall("deploy key")
        list(memory.export())
        memory.entities()
        memory.maintain()
        memory.note_edits([{"path": "src/a.py", "operation": "edit", "intent": "Fix the key"}])
        memory.recall_file("a.py")
        memory.boost(ids[6])
        memory.browse(limit=5, kinds=["fact"])
        memory.timeline(ids[7])
        memory.why(ids[0])
        memory.history(ids[0])
        memory.undo()
        memory.forget(ids[4])
        memory.restore(ids[4])
        memory.forget(ids[5], erase=True)
        memory.doctor(repair=True)
        memory.reindex()
        memory.stats()
    monkeypatch.undo()
    assert len(sent) > 150
    with connect(url) as owner:
        cursor = psycopg.RawCursor(owner)
        for sql, bound in sent.items():
            with owner.transaction(force_rollback=True):
                for part in (PROPAGATE, f"SET LOCAL bethink.space = '{space_id_of('explained')}'"):
                    owner.execute(part.encode())
                cursor.execute(b"EXPLAIN (FORMAT JSON) " + sql.encode(), bound)
                plan = cursor.fetchone()
            assert plan is not None
            assert_single(sql, plan[0][0]["Plan"])


def assert_single(sql: str, plan: dict[str, Any]) -> None:
    """Check that a plan reads and writes tables in one task, and nothing through the coordinator."""
    if "Distributed Query" not in plan:
        assert f"{SCHEMA}." not in sql, (sql, plan)
        return
    assert plan["Distributed Query"].keys() == {"Job"}, (sql, plan)  # no subplans
    assert plan["Distributed Query"]["Job"]["Task Count"] == 1, (sql, plan)


def test_isolation_holds_on_the_workers(application: str, url: str) -> None:
    """On a worker, too, no row is seen without a space, and none of another one is written."""
    with opened(application, "isolated") as memory:
        memory.remember("Only here")
    for place in (coordinator(), *workers()):
        with psycopg.connect(at(application, host=place), autocommit=True) as connection:
            connection.execute("SET citus.override_table_visibility = off")
            found = connection.execute(
                "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class AS c"
                " WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind = 'r'",
                (SCHEMA,),
            ).fetchall()
            assert len(found) >= len(tables())
            for name, secured in found:
                assert secured, (place, name)
                if not name.startswith("migration"):
                    seen = connection.execute(f"SELECT count(*) FROM {SCHEMA}.{name}")
                    assert seen.fetchone() == (0,), (place, name)
    mine, theirs = space_id_of("isolated"), space_id_of("of another")
    with psycopg.connect(application, autocommit=True) as connection:
        with connection.transaction():
            connection.execute(PROPAGATE.encode())
            connection.execute(f"SET LOCAL bethink.space = '{theirs}'".encode())
            for name in ("item", "meta", "space"):
                seen = connection.execute(
                    f"SELECT count(*) FROM {SCHEMA}.{name} WHERE space_id = {mine}".encode()
                )
                assert seen.fetchone() == (0,), name
        with connection.transaction(force_rollback=True):
            connection.execute(PROPAGATE.encode())
            connection.execute(f"SET LOCAL bethink.space = '{theirs}'".encode())
            written = f"INSERT INTO {SCHEMA}.meta (space_id, name, value) VALUES ({mine}, 'x', 'y')"
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(written.encode())


def test_clients_write_while_it_is_distributed(fresh: Callable[[str], str]) -> None:
    """They wait, then go on; nothing acknowledged is lost."""
    url = fresh("bethink_busy")
    opening.init_store(url)
    with Writer(url, "busy") as writer, Writer(url, "as busy") as other:
        writer.wait_for(3)
        other.wait_for(3)
        opening.distribute_store(url, shards=SHARDS)
        writer.wait_for(3)
        other.wait_for(3)
    for space, one in (("busy", writer), ("as busy", other)):
        assert not one.told, one.told
        with opened(url, space) as memory:
            for known in one.stored:
                assert memory.get(known).id == known
            assert all(check.ok for check in memory.doctor())


def test_any_server_of_the_cluster_serves(application: str) -> None:
    """A client may connect to a worker as well as to the coordinator."""
    with opened(application, "everywhere") as memory:
        known = memory.remember("The deploy key lives in vault B").id
    for place in workers():
        with opened(at(application, host=place), "everywhere") as memory:
            assert [hit.item.id for hit in memory.recall("deploy key").hits] == [known]


def foreign_keys(url: str) -> list[str]:
    """Return the names of all foreign keys between tables."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f'"
            " AND connamespace = to_regnamespace(%s) ORDER BY 1",
            (SCHEMA,),
        ).fetchall()
    return [name for (name,) in rows]


def test_what_was_stored_is_kept(fresh: Callable[[str], str]) -> None:
    """Distributing copies every row, leaves none on the coordinator, and may be repeated."""
    url = fresh("bethink_kept")
    opening.init_store(url)
    names = [f"kept-{number}" for number in range(6)]
    before = {}
    with opened(url, "stays-open") as open_memory:
        first = open_memory.remember("The client was there before").id
        for name in names:
            with opened(url, name) as memory:
                fill(memory)
                before[name] = content(memory)
        references = foreign_keys(url)
        status = opening.distribute_store(url, shards=SHARDS)
        assert foreign_keys(url) == references
        assert status._replace(url="", server="") == opening.StoreStatus(
            "",
            "",
            len(migrations()),
            len(migrations()),
            f"bethink_serve_{urlsplit(url).path[1:]}",
            True,
            True,
            7,
            True,
            len(workers()),
            SHARDS,
        )
        # A client that was open before goes on.
        assert [hit.item.id for hit in open_memory.recall("client").hits] == [first]
        open_memory.remember("And it still writes")
    for name in names:
        with opened(url, name) as memory:
            assert content(memory) == before[name]
            assert all(one.ok for one in memory.doctor())
    with psycopg.connect(url, autocommit=True) as owner:
        for name in tables():
            left = owner.execute("SELECT pg_relation_size(%s::regclass)", (f"{SCHEMA}.{name}",))
            assert left.fetchone() == (0,), name
    assert opening.distribute_store(url) == opening.store_status(url)
    assert prepare_server(url, "status")["spaces"] == 7
    assert sorted(opening.list_spaces(url)) == sorted([*names, "stays-open"])


def test_an_owner_that_is_no_superuser_distributes(fresh: Callable[[str], str]) -> None:
    """It needs no more rights than to create the tables, and to write when shards are moved."""
    url = fresh("bethink_owned")
    with suppress(psycopg.errors.DuplicateObject):
        _run(url, "CREATE ROLE bethink_owner LOGIN CREATEROLE")
    _run(url, "GRANT CREATE ON DATABASE bethink_owned TO bethink_owner")
    owner = at(url, user="bethink_owner")
    opening.init_store(owner)
    with opened(owner, "theirs") as memory:
        ids = fill(memory)
    _run(url, "ALTER ROLE bethink_owner NOBYPASSRLS")
    with pytest.raises(StoreError, match="does not bypass row-level security") as held:
        opening.distribute_store(owner, shards=SHARDS)
    _run(url, str(held.value.remedy).partition(": ")[2])
    assert opening.distribute_store(owner, shards=SHARDS).secured
    mode = "force_logical" if moves_by_replication() else "block_writes"
    move_under_load(url, owner, "theirs", mode)
    with opened(owner, "theirs") as memory:
        assert memory.get(ids[1]).id == ids[1]
    _run(url, "DROP OWNED BY bethink_owner")


def test_migrations_go_on_after_it(
    fresh: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new table is distributed and secured with the others, and may refer to them."""
    url = fresh("bethink_migrated")
    opening.init_store(url)
    opening.distribute_store(url, shards=SHARDS)
    last = migrations()[-1].version
    step = (
        f"-- One more table; and a column.\nCREATE TABLE {SCHEMA}.extra (\n"
        "    space_id bigint NOT NULL,\n    rid bigint NOT NULL,\n"
        "    PRIMARY KEY (space_id, rid),\n"
        f"    FOREIGN KEY (space_id, rid) REFERENCES {SCHEMA}.item (space_id, rid)\n);\n"
        f"CREATE INDEX extra_rid ON {SCHEMA}.extra (space_id, rid);\n"
        f'ALTER TABLE {SCHEMA}.item ADD COLUMN mood text COLLATE "C";\n'
    )
    later = (*migrations(), Migration(last + 1, step))
    monkeypatch.setattr(opening, "migrations", lambda: later)
    status = opening.migrate_store(url)
    assert (status.schema, status.secured, status.distributed) == (last + 1, True, True)
    with psycopg.connect(url, autocommit=True) as owner:
        found = owner.execute(
            "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'bethink.extra'::regclass"
        )
        assert found.fetchone() == (1,)
        keys = owner.execute(
            "SELECT count(*) FROM pg_constraint WHERE contype = 'f'"
            " AND conrelid = 'bethink.extra'::regclass"
        )
        assert keys.fetchone() == (1,)
    for place in workers():
        with psycopg.connect(at(url, host=place), autocommit=True) as worker:
            worker.execute("SET citus.override_table_visibility = off")
            shards = worker.execute(
                "SELECT c.relforcerowsecurity, has_table_privilege(%s, c.oid, 'INSERT'),"
                " (SELECT count(*) FROM pg_policy AS p WHERE p.polrelid = c.oid)"
                r" FROM pg_class AS c WHERE c.relname LIKE 'extra\_1%%' AND c.relkind = 'r'",
                (status.role,),
            ).fetchall()
            assert shards, place
            assert set(shards) == {(True, True, 1)}
    with opened(url, "after") as memory:
        fill(memory)
        assert all(one.ok for one in memory.doctor())


_OLD_ROWS = f"""
    INSERT INTO {SCHEMA}.space VALUES (%(id)s, %(name)s, 0);
    INSERT INTO {SCHEMA}.item (space_id, rid, id, level, kind, text, source, source_class, writer,
        trust, integrity, credibility, classification, stored_at, live_from, fingerprint,
        content_hash, entities)
    SELECT %(id)s, n, 'm' || n, 'item', 'fact', 'Note ' || n, 's', 'user', 'w', 3, 1, 1, n, 7,
        100 * n, 'f' || n, 'h' || n, '["person:ylva"]' FROM generate_series(1, 3) AS n;
    INSERT INTO {SCHEMA}.entity (space_id, id, kind, name, created_at, last_seen_at)
    VALUES (%(id)s, 'person:ylva', 'person', 'Ylva', 1, 2);
    INSERT INTO {SCHEMA}.link (space_id, src_kind, src, type, dst_kind, dst, context, source,
        created_at)
    VALUES (%(id)s, 'item', 'm1', 'mentions', 'entity', 'person:ylva', NULL, 's', 0),
        (%(id)s, 'item', 'm2', 'mentions', 'entity', 'person:ylva', NULL, 's', 0),
        (%(id)s, 'entity', 'person:ylva', 'knows', 'entity', 'person:ylva', 'm2', 's', 0);
    INSERT INTO {SCHEMA}.thread VALUES (%(id)s, 't', 'topic', NULL, 'Mixed', 'open', '{{}}', 0, 0);
    INSERT INTO {SCHEMA}.thread_member VALUES (%(id)s, 't', 'm1', 'member', 1, 0),
        (%(id)s, 't', 'm2', 'member', 1, 0);
    INSERT INTO {SCHEMA}.thread_event VALUES (%(id)s, 't', 1, 'begun', 'm1', 0, 1);
"""


def test_a_distributed_store_of_the_first_version_is_migrated(
    fresh: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step runs on the shards: the rows of all spaces are changed, and secured again."""
    url = fresh("bethink_old")
    every = migrations()
    monkeypatch.setattr(opening, "migrations", lambda: every[:1])
    with monkeypatch.context() as first:
        first.setattr(schema, "migrations", lambda: every[:1])
        then = schema.tables.__wrapped__()
    monkeypatch.setattr(distribution, "tables", lambda: then)
    opening.init_store(url)
    opening.distribute_store(url, shards=SHARDS)
    spaces = {space_id_of(name): name for name in ("one", "two", "three")}
    with psycopg.connect(url, cursor_factory=psycopg.ClientCursor) as owner:
        for number, name in spaces.items():
            for statement in _OLD_ROWS.split(";\n"):
                owner.execute(statement.encode(), {"id": number, "name": name})
    monkeypatch.setattr(opening, "migrations", lambda: every)
    monkeypatch.setattr(distribution, "tables", schema.tables)

    status = opening.migrate_store(url)
    assert (status.schema, status.secured, status.distributed) == (every[-1].version, True, True)
    with psycopg.connect(url) as owner:
        for sql, wanted in (
            ("SELECT classification FROM {} WHERE id = 't'", {"thread": [(2,)] * 3}),
            ("SELECT classification FROM {}", {"thread_member": [(2,)] * 6}),
            ("SELECT classification FROM {}", {"thread_event": [(2,)] * 3}),
            ("SELECT key, created_at, last_seen_at FROM {}", {"entity": [("ylva", 100, 200)] * 3}),
            ("SELECT stated_by FROM {} WHERE type = 'knows'", {"link": [("m2",)] * 3}),
        ):
            for table, rows in wanted.items():
                found = owner.execute(sql.format(f"{SCHEMA}.{table}").encode())
                assert found.fetchall() == rows, table
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            owner.execute(f"UPDATE {SCHEMA}.thread_member SET classification = 1".encode())


def test_what_is_missing_is_said_with_the_sql(
    fresh: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tables, a Citus that is too old, a worker's URL, no server for shards: one sentence."""
    url = fresh("bethink_missing")
    with pytest.raises(StoreError, match="has no tables of Bethink"):
        opening.distribute_store(url)
    opening.init_store(url)
    with monkeypatch.context() as patched:
        patched.setattr(distribution, "MIN_CITUS", 99)
        with pytest.raises(StoreError, match="but 99 or later is needed") as old:
            opening.distribute_store(url)
    assert "ALTER EXTENSION citus UPDATE;" in str(old.value.remedy)
    with pytest.raises(StoreError, match="is not the coordinator"):
        opening.distribute_store(at(url, host=workers()[0]))
    _run(url, *(
        f"SELECT citus_set_node_property('{host}', {port}, 'shouldhaveshards', false)"
        for host, port in (place.split(":") for place in workers())
    ))  # fmt: skip
    with pytest.raises(StoreError, match="has no server that may have shards") as none:
        opening.distribute_store(url)
    assert "citus_add_node" in str(none.value.remedy)


def test_a_role_that_is_older_than_the_extension_is_asked_for(
    fresh: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that becomes a coordinator: the other servers lack its role, and the SQL is said."""
    url = fresh("bethink_older")
    role = "bethink_serve_bethink_older"
    with monkeypatch.context() as alone:
        alone.setenv("PGOPTIONS", "-c citus.enable_ddl_propagation=off")
        for place in (coordinator(), *workers()):
            _run(at(url, host=place), f"DROP ROLE IF EXISTS {role}")
        opening.init_store(url)
    with pytest.raises(StoreError, match=f"cannot connect to .* as {role}") as unknown:
        opening.distribute_store(url, shards=SHARDS)
    create = str(unknown.value.remedy).partition(": ")[2].split("; ")[:2]
    for place in workers():
        _run(at(url, host=place), *create)
    assert opening.distribute_store(url, shards=SHARDS).secured
    with opened(url, "older") as memory:
        fill(memory)


def test_a_server_that_cannot_move_shards_is_refused(
    fresh: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL 15 would try for ever: nothing is distributed, and the reason is said."""
    url = fresh("bethink_refused")
    opening.init_store(url)
    monkeypatch.setattr(distribution, "_MIN_MOVING", 990_000)
    with pytest.raises(StoreError, match="never end moving a shard while it is written") as held:
        opening.distribute_store(url, shards=SHARDS)
    assert "upgrade the servers" in str(held.value.remedy)
    assert not opening.store_status(url).distributed


def test_the_command_shows_servers_and_shards(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`store distribute` and `store status` say over what the tables are distributed."""
    for step in ("distribute", "status"):
        assert main(["--json", "store", step, url]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["distributed"], shown["nodes"], shown["unreachable"]) == (
            True, len(workers()), [],
        )  # fmt: skip
        assert shown["ready"]


# Shards that move, servers that die


class Writer:
    """A thread that writes numbered memories, one after another, and recalls each."""

    def __init__(self, url: str, space: str) -> None:
        self.stored: list[str] = []
        self.told: list[BethinkError] = []
        self.failed: list[BaseException] = []
        self._memory = opened(url, space)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        try:
            while not self._stop.is_set():
                number += 1
                try:
                    stored = self._memory.remember(f"Note {number} of the log", key=f"k{number}")
                    self._memory.recall(f"note {number}")
                except BethinkError as error:
                    self.told.append(error)
                    continue
                self.stored.append(stored.id)
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.failed.append(error)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(LAST_GUARD_S)
        self._memory.close()
        assert not self.failed, self.failed

    def wait_for(self, more: int) -> None:
        """Wait until so many more were stored."""
        wanted = len(self.stored) + more
        until = time.monotonic() + LAST_GUARD_S
        while len(self.stored) < wanted:
            assert time.monotonic() < until, (self.told, self.failed)
            assert not self.failed, self.failed
            time.sleep(0.01)


def shard_place(connection: psycopg.Connection[Any], space: str) -> tuple[int, str]:
    """Return the shard of a space, and the server it lies on."""
    found = connection.execute(
        "SELECT p.shardid, n.nodename || ':' || n.nodeport FROM pg_dist_placement AS p"
        " JOIN pg_dist_node AS n USING (groupid) WHERE p.shardid ="
        f" get_shard_id_for_distribution_column('{SCHEMA}.item', %s::bigint)",
        (space_id_of(space),),
    ).fetchone()
    assert found is not None
    return int(found[0]), str(found[1])


@pytest.mark.parametrize("mode", ["force_logical", "block_writes"])
def test_shards_move_while_clients_write(url: str, mode: str) -> None:
    """There and back again: nothing acknowledged is lost, and the journal is unbroken."""
    if mode == "force_logical" and not moves_by_replication():
        pytest.skip("PostgreSQL 15 never ends such a move, and is refused for it")
    move_under_load(url, url, f"moved-{mode}", mode)


def move_under_load(superuser: str, url: str, space: str, mode: str) -> None:
    """Move the shard of a space to another server and back while a client writes it."""
    places = workers()
    with psycopg.connect(superuser, autocommit=True) as owner, Writer(url, space) as writer:
        for _ in range(2):
            writer.wait_for(3)
            shard, place = shard_place(owner, space)
            target = places[(places.index(place) + 1) % len(places)]
            (host, port), (to, to_port) = place.split(":"), target.split(":")
            owner.execute(
                "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s,"
                " %s::citus.shard_transfer_mode)",
                (shard, host, int(port), to, int(to_port), mode),
            )
            assert shard_place(owner, space)[1] == target
            writer.wait_for(3)
    with opened(url, space) as memory:
        for known in writer.stored:
            assert memory.get(known).id == known
        assert all(one.ok for one in memory.doctor())
    assert all(isinstance(error, StoreBusy) for error in writer.told), writer.told


class Worker(NamedTuple):
    """A server of the cluster on this machine, which can be killed and started again."""

    leader: int
    command: list[str]
    environment: dict[str, str]
    data: Path
    log: Path

    @classmethod
    def at(cls, place: str, folder: Path) -> Worker:
        """Return the server at a host and port."""
        with psycopg.connect(at(CITUS, host=place), autocommit=True) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        data = Path(row[0])
        if not (data / "postmaster.pid").exists():
            pytest.skip(f"{place} is not on this machine")
        leader = int((data / "postmaster.pid").read_text().split()[0])
        process = Path(f"/proc/{leader}")
        command = process.joinpath("cmdline").read_bytes().decode().split("\0")[:-1]
        command[0] = str(process.joinpath("exe").readlink())
        told = process.joinpath("environ").read_bytes().decode().split("\0")[:-1]
        environment = dict(one.partition("=")[::2] for one in told)
        return cls(leader, command, environment, data, folder / "worker.log")

    def kill(self) -> None:
        """End it and all its processes at once."""
        os.kill(self.leader, signal.SIGSTOP)
        children = Path(f"/proc/{self.leader}/task/{self.leader}/children").read_text().split()
        for one in (self.leader, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        until = time.monotonic() + LAST_GUARD_S
        while self._is_up():
            assert time.monotonic() < until
            time.sleep(0.05)

    def _is_up(self) -> bool:
        try:
            state = Path(f"/proc/{self.leader}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        return state != "Z"

    def start(self) -> None:
        """Start it as it was, and wait until it answers."""
        # What nobody has waited for still has its number, and would pass for running.
        stated = self.data / "postmaster.pid"
        _, _, _, port, sockets, *_ = stated.read_text().splitlines()
        for lock in (stated, *Path(sockets).glob(f".s.PGSQL.{port}*")):
            lock.unlink()
        owner = self.data.stat()
        program = Path(self.command[0]).with_name("pg_ctl")
        options = [one for one in self.command[1:] if one not in {"-D", str(self.data)}]
        with self.log.open("ab") as log:
            subprocess.run(
                [str(program), "-D", str(self.data), "-w", "-o", " ".join(options), "start"],
                env=self.environment, cwd=self.data, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, timeout=LAST_GUARD_S, check=True,
                user=owner.st_uid, group=owner.st_gid, extra_groups=[],
            )  # fmt: skip


def test_a_dead_worker_takes_only_its_spaces_along(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its spaces say which server is away; all others go on; when it is back, so are they."""
    alive, dead = workers()[:2]
    here, away = space_on(url, alive), space_on(url, dead)
    with opened(url, here) as near, opened(url, away) as far:
        for memory in (near, far):
            memory.remember("The deploy key lives in vault B", key="deploy")
            assert memory.recall("deploy key").hits
        worker = Worker.at(dead, tmp_path)
        worker.kill()
        try:
            for call in (
                lambda: far.recall("deploy key"),
                lambda: far.remember("Written to nobody"),
                lambda: opened(url, away),
            ):
                with pytest.raises(StoreError, match="lies on a server that cannot be reached"):
                    call()
            near.remember("The others go on")
            assert near.recall("deploy key").hits
            with opened(url, here) as again:
                assert again.recall("deploy key").hits
            assert main(["--json", "store", "status", url]) == 1
            shown = json.loads(capsys.readouterr().out)
            assert (shown["unreachable"], shown["spaces"]) == ([dead], None)
        finally:
            worker.start()
        assert [hit.item.text for hit in far.recall("deploy key").hits] == [
            "The deploy key lives in vault B"
        ]
        far.remember("It is back")
        assert all(one.ok for one in far.doctor())
