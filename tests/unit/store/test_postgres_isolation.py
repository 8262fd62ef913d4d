"""Spaces on a server are isolated: by every statement, and by the server itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from bethink import Memory
from bethink.access.people import Directory
from bethink.config.settings import Settings
from bethink.model import Member
from bethink.store import shelf_name, spaces_on_server
from bethink.store.postgres import PostgresStore
from bethink.store.postgres.bindings import parsed
from bethink.store.postgres.connections import ceiling_view, space_id_of
from bethink.store.postgres.schema import SCHEMA, tables
from bethink.store.postgres.server import connect, serving_role
from bethink.store.postgres.session import Session
from bethink.store.postgres.translate import NO_VIEW, Shape, View, translate
from bethink.store.sql.search.scope import _MENTIONS_BY_ROW, _NAMED_ENTITIES
from bethink.store.sql.search.searches import _LONGEST_DURATION
from bethink.testing import FixedClock
from corpus import CONVERSATION, NOTES, NOW
from postgres_server import CITUS, initialised_url, open_space
from records import record
from rows import each_row
from shared_embedder import SHARED

APPLICATION = "bethink_app"
_CANDIDATES = f"SELECT i.rid FROM item AS i WHERE i.rid = 1 AND {_MENTIONS_BY_ROW}"


@pytest.fixture(scope="module")
def application() -> str:
    """The URL of a role that may serve and owns nothing."""
    with psycopg.connect(initialised_url(), autocommit=True) as owner:
        known = owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (APPLICATION,))
        if known.fetchone() is None:
            owner.execute(f"CREATE ROLE {APPLICATION} LOGIN PASSWORD 'app'")
        owner.execute(f"GRANT {serving_role(owner)} TO {APPLICATION}")
    host = initialised_url().rpartition("@")[2]
    return f"postgresql://{APPLICATION}:app@{host}"


@pytest.fixture
def connection(application: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the application's role."""
    with psycopg.connect(application, autocommit=True) as opened:
        yield opened


def fill(memory: Memory) -> list[str]:
    stored = memory.remember_many([*NOTES, *CONVERSATION])
    ids = [one.id for one in stored]
    memory.put_thread("Keys and tokens", [Member(one) for one in ids[:3]])
    memory.update(ids[0], text="The deploy key lives in vault C", classification=3)
    memory.link(ids[0], "implies", ids[1])
    memory.recall("deploy key", track=True, profile="abmind")
    return ids


def test_without_a_space_no_row_is_seen(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """The application's role sees nothing before it says which space it is for."""
    with open_space(tmp_path).snapshot():
        pass
    for name in tables():
        found = connection.execute(f"SELECT count(*) FROM {SCHEMA}.{name}").fetchone()
        assert found == (0,), name


def test_what_some_keep_for_themselves_is_rows_of_another_space(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """The server shows them to no transaction that is not for their shelf."""
    settings = Settings(data_dir=tmp_path, store=initialised_url(), embedder="none")
    directory = Directory(tmp_path)
    name = f"team-{tmp_path.name}"[:40].replace("_", "-").lower()
    with Memory.open(name, settings=settings) as space:
        for who in ("anna", "ben"):
            directory.add(who, name, "owner")
        anna, ben = (space.seen_by(who, directory) for who in ("anna", "ben"))
        kept = ben.remember("The nightjar nests in June", audience="private").id
        ben.remember("The harbour is open")
        own = anna.remember("Anna has a boat", audience="private").id
        assert next(item.id for item in anna.browse()) == own
        assert len(anna.browse()) == 2
        keys = {who: directory.own_shelf(name, directory.find(who).id) for who in ("anna", "ben")}
    seen = {}
    for place in (name, *(shelf_name(name, key) for key in keys.values())):
        with connection.transaction(force_rollback=True):
            connection.execute(f"SET LOCAL ROLE {serving_role(connection)}")
            connection.execute(f"SET LOCAL bethink.space = '{space_id_of(place)}'")
            seen[place] = connection.execute(
                f"SELECT count(*) FROM {SCHEMA}.item WHERE id = %s", (kept,)
            ).fetchone()
    assert seen == {
        name: (0,), shelf_name(name, keys["anna"]): (0,), shelf_name(name, keys["ben"]): (1,)
    }  # fmt: skip
    assert name in spaces_on_server(initialised_url())
    assert not [one for one in spaces_on_server(initialised_url()) if "~" in one]


def test_another_space_cannot_be_written(connection: psycopg.Connection[Any]) -> None:
    """Row-level security refuses a row of another space."""
    other = f"INSERT INTO {SCHEMA}.meta (space_id, name, value) VALUES (2, 'theirs', 'x')"
    with connection.transaction(force_rollback=True):
        connection.execute("SELECT set_config('bethink.space', '1', true)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(other)


def test_the_space_is_forgotten_with_the_transaction(
    application: str, connection: psycopg.Connection[Any]
) -> None:
    """A pooler may give the session to anybody after it."""
    store = PostgresStore.open(application, space="of-a-session")
    store.admin.count()
    with store._connections.server.connection() as reused:  # type: ignore[attr-defined]
        left = reused.execute("SELECT current_setting('bethink.space', true), current_user")
        assert left.fetchone() in {("", APPLICATION), (None, APPLICATION)}
    store.close()


def test_the_serving_role_owns_nothing_and_passes_no_fence(
    connection: psycopg.Connection[Any],
) -> None:
    """It is no superuser, bypasses no policy and owns no table; every table forces them."""
    serving = serving_role(connection)
    roles = connection.execute(
        "SELECT bool_or(rolsuper OR rolbypassrls) FROM pg_roles WHERE rolname IN (%s, %s)",
        (serving, APPLICATION),
    ).fetchone()
    owned = connection.execute(
        "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tableowner IN (%s, %s)",
        (SCHEMA, serving, APPLICATION),
    ).fetchone()
    open_tables = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
        " AND relkind = 'r' AND NOT (relrowsecurity AND relforcerowsecurity)",
        (SCHEMA,),
    ).fetchall()
    assert (roles, owned, open_tables) == ((False,), (0,), [])


def test_a_superuser_serves_with_the_same_rights(tmp_path: Path) -> None:
    """Whoever connects, the transactions are those of the serving role."""
    store = open_space(tmp_path)
    with store._connections.read_transaction() as db:
        assert db.execute("SELECT current_user").get == store._connections.server.role
    store.close()


@pytest.mark.parametrize(
    "condition",
    [
        "coalesce(i.occurred_at, i.stored_at) BETWEEN 1 AND 2",
        "i.level || '' IN ('insight') AND i.live_to IS NULL",
        "i.id IN ('a', 'b')",
    ],
)
def test_row_level_security_leaves_the_indexes_in_use(condition: str, tmp_path: Path) -> None:
    """Behind a policy the server looks up only by what cannot tell of rows that it hides.

    The whole condition is looked up in the index, and no row is filtered by it afterwards.
    """
    store = open_space(tmp_path)
    store.items.put([record(f"r{number}") for number in range(500)], actor="x", now=NOW)
    with psycopg.connect(initialised_url(), autocommit=True) as owner:
        owner.execute(f"ANALYZE {SCHEMA}.item")
    with store._connections.read_transaction() as db:
        session = cast("Session", db)
        session.begin()
        assert session.connection is not None
        session.connection.execute("SET LOCAL enable_seqscan = off")
        found = session._asked(f"SELECT i.rid FROM item AS i WHERE {condition}", ())
        asked = session._sent(found)
        explained = session._send(asked._replace(sql=f"EXPLAIN {asked.sql}"))
        plan = [line.strip() for (line,) in explained.fetchall()]
    assert any(line.startswith("Index Cond") for line in plan), plan
    assert not any(line.startswith("Filter") for line in plan), plan
    store.close()


@pytest.mark.skipif(bool(CITUS), reason="tests/e2e/test_citus.py explains them on a cluster")
def test_every_statement_reads_one_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The plan of every statement has the space's id at every table it reads.

    Without row-level security, so that it is the statement that says it.
    """
    sent: dict[str, list[Any]] = {}
    make = Session._sent

    def record(session: Session, asked: Any, ahead: Any = None) -> Any:
        made = make(session, asked, ahead)
        sent.setdefault(made.sql, made.bound)
        return made

    monkeypatch.setattr(Session, "_sent", record)
    memory = Memory(open_space(tmp_path), embedder=SHARED, clock=FixedClock(NOW))
    ids = fill(memory)
    for profile in memory.profiles():
        memory.recall("who prefers short pull requsts", profile=profile, entities=["Maria"])
        memory.recall("deploy key", profile=profile, as_of=NOW, tags=["x"])
    memory.below(1).recall("deploy key")
    list(memory.export())
    memory.entities()
    memory.maintain()
    memory.forget(ids[4])
    memory.restore(ids[4])
    memory.forget(ids[5], erase=True)
    memory.doctor()
    memory.stats()
    memory.close()
    assert len(sent) > 150
    with connect(initialised_url()) as owner:
        cursor = psycopg.RawCursor(owner)
        for sql, bound in sent.items():
            cursor.execute(b"EXPLAIN (FORMAT JSON) " + sql.encode(), bound)
            plan = cursor.fetchone()
            assert plan is not None
            for node in nodes_of(plan[0][0]["Plan"]):
                assert "space_id" in json.dumps(node), (sql, node)


def test_a_recall_reads_each_index_term_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its frequency and its number are one row, which several steps ask for."""
    asked: list[str] = []
    make = Session._sent

    def record(session: Session, question: Any, ahead: Any = None) -> Any:
        if "JOIN (SELECT * FROM bethink.term " in question.statement.sql and not session.writes:
            asked.extend(ahead)
        return make(session, question, ahead)

    with Memory(open_space(tmp_path), embedder=SHARED, clock=FixedClock(NOW)) as memory:
        fill(memory)
        monkeypatch.setattr(Session, "_sent", record)
        for question in ("deploy key", "who prefers short pull requsts"):
            asked.clear()
            memory.recall(question)
            assert asked
            assert len(asked) == len(set(asked))


def test_a_question_of_the_past_reads_the_newest_postings_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are kept while the words are counted as of then, one after another."""
    sent: list[str] = []
    make = Session._sent

    def record(session: Session, asked: Any, ahead: Any = None) -> Any:
        sent.append(asked.statement.sql)
        return make(session, asked, ahead)

    for day in (0, 2):
        clock = FixedClock(NOW + timedelta(days=day))
        with Memory(open_space(tmp_path), embedder=None, clock=clock) as memory:
            memory.remember_many([f"{note} {day}" for note in NOTES])
    with Memory(open_space(tmp_path), embedder=None, clock=clock) as memory:
        monkeypatch.setattr(Session, "_sent", record)
        memory.recall("deploy key of the vault", as_of=NOW + timedelta(days=1))
    assert len([sql for sql in sent if "bethink.posting_new" in sql and "data" in sql]) == 1
    assert not [sql for sql in sent if "AS found (rowid)" in sql]


def test_what_is_known_of_a_space_ends_with_the_next_write(tmp_path: Path) -> None:
    """A statement without values is sent once for each state of the space, whoever writes."""
    reader, writer = open_space(tmp_path), open_space(tmp_path)
    with Memory(reader, embedder=None) as reading, Memory(writer, embedder=None) as writing:
        for number in range(3):
            for _ in range(2):
                assert reading.store.admin.count() == number
                assert (reading.store.trusted() is reading.store) is (number < 2)
            writing.remember(f"The deploy key {number}", trust=0 if number else 3)


def test_numbers_of_the_server_are_those_of_sqlite(tmp_path: Path) -> None:
    """Sums of whole numbers are whole, also those that end with zeros."""
    store = open_space(tmp_path)
    with store._connections.read_transaction() as db:
        ((*found, text),) = cast("Session", db).run(
            "SELECT 0::numeric, sum(n)::numeric, -7::numeric, 2.50::numeric, 0.1::float8, 'a'"
            " FROM unnest(ARRAY[4000, 6000]::bigint[]) AS n"
        )
    store.close()
    assert (found, text) == ([0, 10_000, -7, 2.5, 0.1], "a")
    assert list(map(type, found)) == [int, int, int, float, float]


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what each scan of a table in a plan looks for."""
    if plan.get("Relation Name") and plan["Node Type"] != "ModifyTable":
        yield {name: plan.get(name) for name in ("Index Cond", "Filter", "Recheck Cond")} | {
            "table": plan["Relation Name"]
        }
    for part in plan.get("Plans", ()):
        yield from nodes_of(part)


@pytest.mark.skipif(bool(CITUS), reason="a coordinator plans nothing itself")
@each_row(
    ("sql", "view", "wanted"),
    [
        (_NAMED_ENTITIES, NO_VIEW, {"entity_key", "entity_pkey", "alias_pkey"}),
        (_NAMED_ENTITIES, ceiling_view(1, trusted=True), {"entity_key", "entity_pkey"}),
        (_LONGEST_DURATION, NO_VIEW, {"item_lasting"}),
        (_CANDIDATES, NO_VIEW, {"link_pkey"}),
    ],
    ids=["named entities", "named entities below a ceiling", "longest duration", "candidates"],
)
def test_lookups_use_their_index(sql: str, view: View, wanted: set[str], tmp_path: Path) -> None:
    """Also behind row-level security, which keeps functions of a row out of every index."""
    open_space(tmp_path).close()
    statement = translate(
        parsed(sql).tree, {mark: Shape("text[]") for mark in parsed(sql).special}, view
    )
    bound = [7 if source.kind == "space" else [] for source in statement.sources]
    with connect(initialised_url()) as owner, owner.transaction(force_rollback=True):
        owner.execute(
            f"INSERT INTO {SCHEMA}.entity (space_id, id, kind, name, created_at)"
            " SELECT 7, 'person:' || n, 'person', n, 0 FROM generate_series(1, 2000) AS n"
        )
        owner.execute(
            f"INSERT INTO {SCHEMA}.alias (space_id, alias, entity)"
            " SELECT 7, 'name ' || n, 'person:' || n FROM generate_series(1, 2000) AS n"
        )
        owner.execute(
            f"INSERT INTO {SCHEMA}.link"
            " (space_id, src_kind, src, type, dst_kind, dst, source, created_at)"
            " SELECT 7, 'item', n, 'mentions', 'entity', 'person:' || n % 9, 'rule', 0"
            " FROM generate_series(1, 2000) AS n"
        )
        owner.execute(f"ANALYZE {SCHEMA}.entity, {SCHEMA}.alias, {SCHEMA}.link")
        owner.execute(f"SET LOCAL ROLE {serving_role(owner)}")
        owner.execute("SET LOCAL bethink.space = '7'")
        owner.execute("SET LOCAL enable_seqscan = off")  # other tables are as good as empty
        cursor = psycopg.RawCursor(owner)
        cursor.execute(b"EXPLAIN (FORMAT JSON) " + statement.sql.encode(), bound)
        (plan,) = cursor.fetchone() or ()
    found = {
        scan["Index Name"]: scan.get("Index Cond") for scan in plans_of(plan[0]["Plan"], "Index")
    }
    assert wanted <= set(found)
    if sql == _CANDIDATES:
        assert "src = " in found["link_pkey"]
        assert "SubPlan" in json.dumps(plan)
    if "entity_key" in found:
        assert "key =" in found["entity_key"]


def plans_of(plan: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Yield the parts of a plan whose type begins so."""
    if plan["Node Type"].startswith(kind):
        yield plan
    for part in plan.get("Plans", ()):
        yield from plans_of(part, kind)


def test_spaces_have_ids_of_their_own() -> None:
    """An id is made from the name alone, and fits the column."""
    ids = {space_id_of(f"space-{number}") for number in range(1000)}
    assert len(ids) == 1000
    assert all(0 <= one < 2**63 for one in ids)
