"""Migrations of a database: the rows of every space, by an owner who is no superuser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from bethink import Memory
from bethink.store.postgres import PostgresStore, opening
from bethink.store.postgres.schema import migrations
from postgres_server import running_server

_OWNER = "bethink_migrator"
_LAST_GUARD_S = 60
_BACK_TO_2 = """
    DELETE FROM bethink.migration WHERE version > 2;
    CREATE TABLE bethink.signature (space_id bigint NOT NULL);
    DROP TABLE bethink.op, bethink.series, bethink.device, bethink.conflict, bethink.unlogged;
    ALTER TABLE bethink.entity DROP COLUMN key;
    ALTER TABLE bethink.item DROP COLUMN anchors;
    CREATE INDEX entity_key ON bethink.entity (space_id, substr(id, strpos(id, ':') + 1));
"""
_BACK_TO_1 = f"""{_BACK_TO_2}
    DELETE FROM bethink.migration WHERE version > 1;
    DELETE FROM bethink.link AS l WHERE EXISTS (SELECT 1 FROM bethink.link AS o
        WHERE (o.space_id, o.src, o.type, o.dst) = (l.space_id, l.src, l.type, l.dst)
        AND o.stated_by > l.stated_by);
    ALTER TABLE bethink.link DROP CONSTRAINT link_pkey;
    ALTER TABLE bethink.link DROP COLUMN stated_by;
    ALTER TABLE bethink.link ADD PRIMARY KEY (space_id, src, type, dst, src_kind, dst_kind);
    CREATE INDEX link_context ON bethink.link (space_id, context)
        WHERE src_kind = 'entity' AND dst_kind = 'entity' AND context IS NOT NULL;
    CREATE INDEX link_source ON bethink.link (space_id, source)
        WHERE src_kind = 'entity' AND dst_kind = 'entity';
    ALTER TABLE bethink.thread_member DROP COLUMN classification CASCADE;
    ALTER TABLE bethink.thread_event DROP COLUMN classification CASCADE;
    ALTER TABLE bethink.thread DROP COLUMN classification CASCADE;
    ALTER TABLE bethink.thread ADD PRIMARY KEY (space_id, id);
    ALTER TABLE bethink.thread_member ADD PRIMARY KEY (space_id, thread, item),
        ADD FOREIGN KEY (space_id, thread) REFERENCES bethink.thread (space_id, id);
    ALTER TABLE bethink.thread_event ADD PRIMARY KEY (space_id, thread, seq),
        ADD FOREIGN KEY (space_id, thread) REFERENCES bethink.thread (space_id, id);
    DROP INDEX IF EXISTS bethink.item_layered;
    UPDATE bethink.entity SET created_at = 5, last_seen_at = last_seen_at + 99, momentum = 7;
"""


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a database as its owner, who has no rights beyond it."""
    name = "migrated"
    with psycopg.connect(running_server().url, autocommit=True) as superuser:
        superuser.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        known = superuser.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (_OWNER,))
        if known.fetchone() is None:
            superuser.execute(f"CREATE ROLE {_OWNER} LOGIN CREATEROLE PASSWORD 'role'")
        superuser.execute(f"CREATE DATABASE {name} OWNER {_OWNER}")
        url = running_server().database(name)
        opening.init_store(url)
        with psycopg.connect(url, autocommit=True) as inside:
            inside.execute("DROP SCHEMA bethink CASCADE")
        superuser.execute(
            f"GRANT bethink_serve_{name} TO {_OWNER} WITH ADMIN TRUE, INHERIT TRUE, SET TRUE"
        )
        yield f"postgresql://{_OWNER}:role@{url.rpartition('@')[2]}"
        superuser.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def test_links_between_entities_belong_to_the_memory_that_states_them(database: str) -> None:
    """In every space, although row-level security shows the owner none."""
    opening.init_store(database)
    last, seen = {}, {}
    for space in ("one", "two"):
        with Memory(PostgresStore.open(database, space=space), embedder=None) as memory:
            for where in ("here", "there"):
                last[space] = memory.remember(f"Ylva owns the Kestrel plan {where}").id
            memory.link("person:ylva", "knows", "project:kestrel", context="since May")
            secret = memory.remember("Kestrel flies at night", classification=3).id
            memory.put_thread("Mixed", [last[space], secret], id="mixed")
            memory.put_thread("Open", [last[space]], id="open")
            seen[space] = memory.store.graph.entities()
    with psycopg.connect(running_server().database("migrated")) as superuser:
        superuser.execute(_BACK_TO_1)

    status = opening.migrate_store(database)
    assert (status.schema, status.secured) == (migrations()[-1].version, True)
    for space in ("one", "two"):
        with Memory(PostgresStore.open(database, space=space), embedder=None) as memory:
            links = memory.store.graph.links_of(["person:ylva"], incoming=False)
            told = {(link.type, link.context) for link in links}
            assert told == {("owns", last[space]), ("knows", "since May")}
            assert memory.store.graph.entities() == seen[space]
            assert {thread.id for thread in memory.store.activity.threads()} == {"mixed", "open"}
            assert [thread.id for thread in memory.below(2).threads()] == ["open"]
            assert [found for found in memory.doctor() if not found.ok] == []
            memory.forget(last[space], erase=True)
            assert not memory.store.graph.links_of(["person:ylva"], ["owns"])


def test_who_reads_meanwhile_is_waited_for(database: str) -> None:
    """A migration waits before it has locked what they go on to read: nobody is cancelled."""
    opening.init_store(database)
    superuser = running_server().database("migrated")
    with psycopg.connect(superuser) as owner:
        owner.execute(_BACK_TO_2)
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with (
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(superuser) as reader,
        psycopg.connect(superuser, autocommit=True) as watching,
    ):
        for table in ("meta", "item"):
            reader.execute(f"SELECT count(*) FROM bethink.{table}")
        migrating = threads.submit(opening.migrate_store, database)
        until = time.monotonic() + _LAST_GUARD_S
        while watching.execute(waiting).fetchone() == (0,):
            assert time.monotonic() < until
        assert reader.execute("SELECT count(*) FROM bethink.entity").fetchone() == (0,)
        reader.rollback()
        assert migrating.result(_LAST_GUARD_S).schema == migrations()[-1].version
