"""What is erased on a server is in no row of any table, and in no index made from them."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from bethink import Memory
from bethink.model import FileEdit, Member
from bethink.store.postgres.connections import PgConnections
from bethink.store.postgres.schema import tables
from bethink.testing import FixedClock
from corpus import NOTES, NOW
from postgres_server import CITUS, initialised_url, open_space
from shared_embedder import SHARED

CANARY = "zyxcanary"


def tables_with_canary(space_id: int) -> list[str]:
    """Return the tables of a space that have a row with any piece of the canary's word."""
    found = []
    with psycopg.connect(initialised_url()) as owner:
        for name in tables():
            sql = f"SELECT count(*) FROM bethink.{name} AS r WHERE space_id = %s AND r::text ~ %s"
            stem = CANARY[:-1]  # index terms are stems
            pattern = f"{stem}|{stem.encode().hex()}"
            if name == "term_gram":
                pattern = "zyx|yxc|xca"
            row = owner.execute(sql, (space_id, pattern)).fetchone()
            if row is not None and row[0]:
                found.append(name)
    return found


@pytest.mark.parametrize("revised", [False, True])
def test_no_row_has_what_was_erased(tmp_path: Path, *, revised: bool) -> None:
    """Neither of its revisions, words, pieces of words, entities, keys nor threads."""
    store = open_space(tmp_path)
    connections = store._connections
    assert isinstance(connections, PgConnections)
    with Memory(store, embedder=SHARED, clock=FixedClock(NOW)) as memory:
        others = [one.id for one in memory.remember_many(NOTES)]
        text = f"Maria said that {CANARY} opens the vault of {CANARY}/keys.py"
        erased = memory.remember(text, key=f"key-{CANARY}", tags=[CANARY]).id
        memory.put_thread(f"About {CANARY}", [Member(erased), Member(others[0])])
        memory.link(erased, "implies", others[1])
        memory.recall(CANARY, track=True)
        if revised:
            memory.update(erased, text=f"Not any more: {CANARY}")
            memory.forget(erased)
        before = tables_with_canary(connections.space_id)
        assert {"item", "term", "gram", "term_gram", "idempotency"} <= set(before)
        receipt = memory.forget(erased, erase=True)
        assert tables_with_canary(connections.space_id) == []
        assert erased not in [hit.item.id for hit in memory.recall(CANARY).hits]
        assert [one for one in memory.doctor() if not one.ok] == []
    assert "write-ahead log" in str(receipt)


@pytest.mark.skipif(bool(CITUS), reason="on a cluster all shards of the space are vacuumed")
def test_only_tables_that_changed_are_vacuumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of other spaces are large; and no setting stays with the session."""
    sent: list[str] = []
    execute = psycopg.Connection.execute

    def record(self: psycopg.Connection, sql: str, *given: object, **named: object) -> object:
        sent.append(str(sql))
        return execute(self, sql, *given, **named)  # type: ignore[arg-type]  # passed on

    with Memory(open_space(tmp_path), embedder=SHARED, clock=FixedClock(NOW)) as memory:
        memory.remember_many(NOTES)
        erased = memory.remember(f"Maria said that {CANARY} opens the vault").id
        monkeypatch.setattr(psycopg.Connection, "execute", record)
        memory.forget(erased, erase=True)

    (vacuumed,) = [sql for sql in sent if sql.startswith("VACUUM")]
    names = {part.strip(" ,").removeprefix("bethink.") for part in vacuumed.split(") ")[1].split()}
    assert {"item", "term", "term_gram", "gram", "vector", "chunk_slot"} <= names
    assert names.isdisjoint({"thread", "file_edit", "tick", "usage_day", "space"})
    assert not [sql for sql in sent if sql.startswith("SET ")]


def test_the_history_of_a_file_goes_as_memories_do(tmp_path: Path) -> None:
    """Its rows are vacuumed away, and what the server keeps all the same is said."""
    store = open_space(tmp_path)
    edit = FileEdit(f"{CANARY}.py", "edit", NOW)
    store.activity.note_edits([edit], actor="test", now=NOW)

    forgotten = store.activity.forget_files(CANARY, actor="test", now=NOW)

    assert forgotten.edits == 1
    assert "write-ahead log" in str(forgotten.out_of_reach)
    store.close()
