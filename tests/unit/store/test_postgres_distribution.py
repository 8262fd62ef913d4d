"""What a distributed database needs of every statement, on one server.

`tests/e2e/test_citus.py` has the same with several of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from bethink import Memory
from bethink.errors import StoreError
from bethink.store import prepare_server
from bethink.store.postgres import distribution, server
from bethink.store.postgres.bindings import for_one_shard
from bethink.store.postgres.connections import PgConnections
from bethink.store.postgres.schema import SCHEMA
from bethink.testing import FixedClock
from corpus import CONVERSATION, NOTES, NOW
from postgres_server import CITUS, initialised_url, open_space
from shared_embedder import SHARED

on_one_server = pytest.mark.skipif(bool(CITUS), reason="with BETHINK_TEST_CITUS there are several")


def test_computed_rows_take_the_id_from_the_space() -> None:
    """A coordinator concludes from the row of the space which shard an insert is for."""
    given = (
        f"INSERT INTO {SCHEMA}.meta (space_id, name, value) SELECT $1::bigint, n.name, n.value"
        " FROM unnest($2::text[], $3::text[]) AS n (name, value)"
        " ON CONFLICT (space_id, name) DO UPDATE SET value = excluded.value RETURNING name"
    )
    assert for_one_shard(given) == (
        f"INSERT INTO {SCHEMA}.meta AS meta (space_id, name, value)"
        " SELECT own.space_id, given.name::text, given.value::text"
        f" FROM {SCHEMA}.space AS own CROSS JOIN (SELECT n.name, n.value"
        " FROM unnest($2::text[], $3::text[]) AS n (name, value)) AS given (name, value)"
        " WHERE own.space_id = $1::bigint"
        " ON CONFLICT (space_id, name) DO UPDATE SET value = excluded.value RETURNING name"
    )


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO {SCHEMA}.meta (space_id, name, value) VALUES ($1::bigint, $2, $3)",
        f"SELECT value FROM {SCHEMA}.meta WHERE space_id = $1::bigint",
        f"UPDATE {SCHEMA}.item SET status = $2 WHERE {SCHEMA}.item.space_id = $1::bigint",
    ],
)
def test_other_statements_stay_as_they_are(sql: str) -> None:
    """They name the space where a coordinator looks for it."""
    assert for_one_shard(sql) == sql


def use(memory: Memory) -> list[Any]:
    """Do what a memory can do; return what it answers."""
    ids = [one.id for one in memory.remember_many([*NOTES, *CONVERSATION])]
    memory.put_thread("Keys and tokens", ids[:3])
    memory.update(ids[0], text="The deploy key lives in vault C")
    memory.note_edits(
        [{"path": "src/a.py", "operation": "edit", "intent": "Fix it", "at": NOW}] * 2
    )
    memory.forget(ids[5], erase=True)
    place = {known: number for number, known in enumerate(ids)}
    found: list[Any] = [one.ok for one in memory.doctor()]
    for profile in ("default", "abmind", "linksee"):
        hits = memory.recall("where is the deploy key", profile=profile, track=True).hits
        found.append([(place[hit.item.id], round(hit.score, 6)) for hit in hits])
    found.append(memory.recall_file("a.py").edits)
    found.append(memory.entities())
    return found


def test_statements_for_one_shard_do_the_same(tmp_path: Path) -> None:
    """A session for a distributed database gives the answers of any other."""
    answers = []
    for distributed in (False, True):
        store = open_space(tmp_path / str(distributed))
        connections = store._connections
        assert isinstance(connections, PgConnections)
        before = connections.server.distributed
        connections.server.distributed = distributed or before
        try:
            with Memory(store, embedder=SHARED, clock=FixedClock(NOW)) as memory:
                answers.append(use(memory))
        finally:
            connections.server.distributed = before
    assert answers[0] == answers[1]


@on_one_server
def test_without_the_extension_the_sql_is_said() -> None:
    """One sentence, and what to run."""
    with pytest.raises(StoreError, match="has no extension citus") as missing:
        prepare_server(initialised_url(), "distribute")
    assert "CREATE EXTENSION citus;" in str(missing.value.remedy)
    assert "citus_add_node" in str(missing.value.remedy)


@on_one_server
def test_a_server_that_cannot_move_shards_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL 15 would try for ever: the reason is said, and what to do."""
    with server.connect(initialised_url()) as connection:
        distribution.require_bypass(connection)
        monkeypatch.setattr(distribution, "_MIN_MOVING", connection.info.server_version + 1)
        with pytest.raises(StoreError, match="never end moving a shard while") as held:
            distribution.require_bypass(connection)
    assert "upgrade the servers to PostgreSQL 16" in str(held.value.remedy)


@on_one_server
def test_status_of_one_server() -> None:
    """It is not distributed, and no server is away."""
    found = prepare_server(initialised_url(), "status")
    assert (found["distributed"], found["nodes"], found["shards"]) == (False, 0, 0)
    assert found["unreachable"] == ()


@on_one_server
def test_a_space_that_was_distributed_meanwhile_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a client suddenly sees nothing, it asks whether the tables are distributed now."""
    store = open_space(tmp_path)
    connections = store._connections
    assert isinstance(connections, PgConnections)
    asked: list[bool] = []

    def is_distributed(_: psycopg.Connection[Any]) -> bool:
        asked.append(True)
        return True

    monkeypatch.setattr("bethink.store.postgres.connections.is_distributed", is_distributed)
    run = connections._run_beginning

    def see_nothing(
        connection: psycopg.Connection[Any], also: list[Any], *, writes: bool
    ) -> tuple[list[Any], list[Any]]:
        rows, answers = run(connection, also, writes=writes)
        return rows if connections.server.distributed else [], answers

    monkeypatch.setattr(connections, "_run_beginning", see_nothing)
    try:
        assert store.admin.count() == 0
    finally:
        connections.server.distributed = False
        store.close()
    assert asked == [True]


@on_one_server
def test_a_lost_server_behind_a_coordinator_is_named() -> None:
    """What was lost is a part of the spaces, not the server that was asked."""
    error = psycopg.errors.ConnectionFailure("connection to the remote node db2:5432 failed")
    told = server.to_own_error("the space work of postgresql://db", error)
    assert "lies on a server that cannot be reached" in told.message
    assert "db2:5432" in told.message
    assert "others can be used" in told.remedy


def test_a_migration_is_run_statement_by_statement() -> None:
    """A new table is distributed before it refers to others, and later statements see it."""
    sent: list[str] = []

    class Recorder:
        def execute(self, sql: Any, values: Any = ()) -> None:
            text = sql.decode() if isinstance(sql, bytes) else sql
            sent.append(" ".join(f"{text} {' '.join(map(str, values))}".split()))

    step = (
        "-- What for.\nCREATE TABLE bethink.extra (\n    space_id bigint NOT NULL,\n"
        "    rid bigint NOT NULL,\n    PRIMARY KEY (space_id, rid),\n"
        "    FOREIGN KEY (space_id, rid) REFERENCES bethink.item (space_id, rid)\n);\n"
        "CREATE INDEX extra_rid ON bethink.extra (space_id, rid);\n"
    )
    distribution.run_step(Recorder(), step)  # type: ignore[arg-type]  # all that it uses
    assert sent[1:] == [
        (
            "-- What for. CREATE TABLE bethink.extra ( space_id bigint NOT NULL,"
            " rid bigint NOT NULL, PRIMARY KEY (space_id, rid) )"
        ),
        (
            "SELECT create_distributed_table(%s, 'space_id', colocate_with => %s)"
            " bethink.extra bethink.space"
        ),
        (
            "ALTER TABLE bethink.extra ADD FOREIGN KEY (space_id, rid)"
            " REFERENCES bethink.item (space_id, rid)"
        ),
        "CREATE INDEX extra_rid ON bethink.extra (space_id, rid)",
    ]
