"""A space is moved between its file and a server with all that it holds, or not at all."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bethink import Memory
from bethink.cli.run import run
from bethink.errors import NotFound, Refused, StoreBusy, StoreError
from bethink.model import Member
from bethink.store.postgres import PostgresStore, move, opening
from bethink.store.postgres.connections import ARRIVING, LEFT
from bethink.store.postgres.move import InFile, OnServer, move_space
from bethink.store.postgres.schema import tables
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock
from corpus import CONVERSATION, NOTES, NOW
from postgres_server import initialised_url
from shared_embedder import SHARED

QUESTIONS = ("where is the deploy key", "Maria", "pull requsts", "what was decided last week")


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[InFile, OnServer]]:
    """A file, and a server, for a space of this test."""
    name = f"move-{abs(hash(request.node.name)):x}"
    yield InFile(tmp_path / f"{name}.db"), OnServer(initialised_url(), name)
    opening.remove_space(initialised_url(), name)


def opened(place: InFile | OnServer) -> Memory:
    clock = FixedClock(NOW + timedelta(days=1))
    if isinstance(place, InFile):
        store: Any = SqliteStore.open(place.path, space="moved")
    else:
        connections = opening.open_space(place.url, place.space, create=False)
        store = PostgresStore(connections, "moved")
    return Memory(store, embedder=SHARED, clock=clock)


@cache
def filled_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bethink-moved-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    fill_file(folder / "filled.db")
    return folder


def fill(place: InFile) -> None:
    """Give the file a space that has something of everything."""
    for suffix in ("", ".key"):
        original = filled_folder() / f"filled.db{suffix}"
        shutil.copy(original, place.path.with_name(f"{place.path.name}{suffix}"))


def fill_file(path: Path) -> None:
    """Leave something in every table that a memory can have rows in."""
    clock = FixedClock(NOW)
    with Memory.open("moved", path=path, embedder=SHARED, clock=clock) as memory:
        ids = [one.id for one in memory.remember_many([*NOTES, *CONVERSATION])]
        memory.remember("Kept under a key", key="kept")
        memory.put_thread("Keys and tokens", [Member(one) for one in ids[:3]])
        memory.update(ids[0], text="The deploy key lives in vault C", classification=3)
        memory.link(ids[0], "implies", ids[1])
        memory.recall("deploy key", track=True, profile="abmind")
        memory.forget(ids[4])
        memory.forget(ids[5], erase=True)
        new = memory.remember("The nightly export runs at four").id
        memory.link(new, "supersedes", ids[6])


def facts(memory: Memory) -> Any:
    """Return all that can be told of a memory: its export, and what it answers."""
    exported = [one for one in memory.store.admin.dump() if one["type"] != "bethink"]
    answers = [
        [(hit.item.id, round(hit.score, 9)) for hit in memory.recall(text, **at).hits]
        for text in QUESTIONS
        for at in ({}, {"as_of": NOW})
    ]
    return exported, answers


def test_everything_goes_along_and_comes_back(places: tuple[InFile, OnServer]) -> None:
    """Export, answers and checks are the same in the file, on the server, and in the file again."""
    file, server = places
    fill(file)
    with opened(file) as memory:
        before = facts(memory)
    seen: list[tuple[int, int]] = []
    done = move_space(file, server, lambda now, all_: seen.append((now, all_)))
    assert not done.resumed
    assert done.rows["vector"]
    assert done.rows["event"]
    assert seen[-1][0] == seen[-1][1]
    with opened(server) as memory:
        assert facts(memory) == before
        assert [one for one in memory.doctor() if not one.ok] == []
        memory.remember("Written on the server", key="there")
        after = facts(memory)
    move_space(server, file)
    with opened(file) as memory:
        assert facts(memory) == after
        assert [one for one in memory.doctor() if not one.ok or one.warning] == []
        memory.remember("Written in the file again")
        assert [one for one in memory.doctor() if not one.ok or one.warning] == []


def test_the_source_stays_and_refuses_writes(places: tuple[InFile, OnServer]) -> None:
    """Also those of a program that had it open before; it can still be read."""
    file, server = places
    fill(file)
    with opened(file) as old:
        move_space(file, server)
        with pytest.raises(StoreError, match="moved to postgresql"):
            old.remember("Too late")
        assert old.recall("deploy key").hits
    with opened(server) as old:
        move_space(server, file)
        with pytest.raises(NotFound, match="moved away"):
            old.remember("Too late")
    with pytest.raises(StoreError, match="moved away"):
        opened(server)


def test_a_second_call_has_nothing_to_do(places: tuple[InFile, OnServer]) -> None:
    """Nor does it touch what was written at the new place since."""
    file, server = places
    fill(file)
    move_space(file, server)
    with opened(server) as memory:
        memory.remember("Written on the server")
        after = facts(memory)
    assert move_space(file, server).already
    with opened(server) as memory:
        assert facts(memory) == after


def test_a_space_of_that_name_is_not_overwritten(places: tuple[InFile, OnServer]) -> None:
    """Two spaces of one name are two spaces."""
    file, server = places
    fill(file)
    opening.open_space(server.url, server.space, create=True).close()
    with pytest.raises(Refused, match="already"):
        move_space(file, server)
    with opened(file) as memory:
        memory.remember("The source goes on")


def stop_after(part: float) -> Callable[[int, int], None]:
    """Interrupt a move when a part of it is done."""

    def advance(done: int, total: int) -> None:
        if done > total * part:
            raise KeyboardInterrupt

    return advance


@pytest.mark.parametrize("back", [False, True])
def test_an_interrupted_move_goes_on(
    places: tuple[InFile, OnServer], monkeypatch: pytest.MonkeyPatch, *, back: bool
) -> None:
    """Until it is done the source is the space, and nobody can use half of a copy."""
    file, server = places
    fill(file)
    with opened(file) as memory:
        before = facts(memory)
    source, target = (server, file) if back else (file, server)
    if back:
        move_space(file, server)
    monkeypatch.setattr(move._Table.page, "__defaults__", (7,))
    for part in (0.1, 0.3, 0.45, 0.75):
        with pytest.raises(KeyboardInterrupt):
            move_space(source, target, stop_after(part))
        assert source.has_space()
        assert not target.has_space()
    if not back:
        with pytest.raises(StoreBusy, match="being moved"):
            opened(server)
    assert move_space(source, target).resumed
    with opened(target) as memory:
        assert facts(memory) == before


def test_a_source_that_was_written_is_copied_anew(places: tuple[InFile, OnServer]) -> None:
    """What a broken move had copied may be out of date."""
    file, server = places
    fill(file)
    with pytest.raises(KeyboardInterrupt):
        move_space(file, server, stop_after(0.2))
    with opened(file) as memory:
        changed = memory.recall("deploy key").hits[0].item.id
        memory.update(changed, text="Changed in between")
        before = facts(memory)
    assert not move_space(file, server).resumed
    with opened(server) as memory:
        assert facts(memory) == before


def test_a_copy_that_differs_is_not_used(
    places: tuple[InFile, OnServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One changed value is enough; the source goes on."""
    file, server = places
    fill(file)
    insert = move._Table.insert

    def insert_wrongly(table: Any, connections: Any, rows: Any) -> None:
        if table.name == "usage" and rows:
            place = table.columns.index("recalls")
            rows = [(*row[:place], row[place] + 1, *row[place + 1 :]) for row in rows]
        insert(table, connections, rows)

    monkeypatch.setattr(move._Table, "insert", insert_wrongly)
    with pytest.raises(StoreError, match="usage"):
        move_space(file, server)
    assert not server.has_space()
    with opened(file) as memory:
        memory.remember("The source goes on")


def test_a_broken_journal_is_not_made_whole(places: tuple[InFile, OnServer]) -> None:
    """A move must not hide that lines were changed."""
    file, server = places
    fill(file)
    connections = file.open_source()
    with connections.write_transaction() as db:
        db.execute("UPDATE event SET actor = 'somebody else' WHERE seq = 3")
    connections.close()
    with pytest.raises(StoreError, match="journal is broken"):
        move_space(file, server)
    assert file.has_space()


def test_both_stores_have_the_same_columns(tmp_path: Path) -> None:
    """A column that one of them lacks would be lost."""
    connections = InFile(tmp_path / "a.db").open_target(anew=False)
    with connections.read_transaction() as db:
        names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for table in move.copied_tables():
            found = db.execute(f"PRAGMA table_info({table.name})").fetchall()
            assert {row[1] for row in found} == set(table.columns), table.name
    connections.close()
    own = {name for (name,) in names if not name.startswith(("grams", "vocabulary"))}
    assert own - {"sqlite_stat1", "sqlite_stat4"} <= set(tables())


def test_the_command_moves_there_and_back(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With what it has moved, as JSON; what was moved from goes when that is asked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BETHINK_WORKER", "off")
    url, name = initialised_url(), "moved-by-command"

    def call(*arguments: str) -> tuple[int, Any]:
        code = run(["--json", *arguments])
        return code, json.loads(capsys.readouterr().out or "null")

    assert run(["--space", name, "remember", "The deploy key lives in vault B"]) == 0
    capsys.readouterr()
    code, told = call("move", name, "--to", url)
    assert (code, told["source"], told["rows"]["item"]) == (0, "kept", 1)
    file = tmp_path / "data" / "spaces" / f"{name}.db"
    assert file.exists()
    code, told = call("move", name, "--to", url, "--remove-source")
    assert (code, told["already"], told["source"], file.exists()) == (0, True, "removed", False)
    code, told = call("--store", url, "move", name, "--to", "sqlite", "--remove-source")
    assert (code, told["rows"]["item"], file.exists()) == (0, 1, True)
    assert name not in opening.list_spaces(url)
    assert call("--space", name, "recall", "deploy key")[1]["items"]
    assert run(["move", name, "--to", "sqlite"]) == 2
    assert run(["move", "no-such-space", "--to", url]) == 1


def test_what_is_left_can_be_listed_and_removed(places: tuple[InFile, OnServer]) -> None:
    """A space that arrives or has left says so by its name."""
    file, server = places
    fill(file)
    with pytest.raises(KeyboardInterrupt):
        move_space(file, server, stop_after(0.2))
    assert server.space + ARRIVING in opening.list_spaces(server.url)
    opening.remove_space(server.url, server.space + ARRIVING)
    move_space(file, server)
    move_space(server, file)
    assert server.space + LEFT in opening.list_spaces(server.url)
    opening.remove_space(server.url, server.space + LEFT)
    with psycopg.connect(server.url) as owner:
        of_space = (opening.space_id_of(server.space),)
        left = owner.execute("SELECT count(*) FROM bethink.item WHERE space_id = %s", of_space)
        assert left.fetchone() == (0,)


def test_a_move_leaves_no_setting_with_a_session(
    places: tuple[InFile, OnServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler may give the session to somebody else: every setting ends with its transaction."""
    sent: list[str] = []
    execute = psycopg.Connection.execute

    def record(self: psycopg.Connection, sql: str, *given: object, **named: object) -> object:
        sent.append(str(sql))
        return execute(self, sql, *given, **named)  # type: ignore[arg-type]  # passed on

    fill(places[0])
    monkeypatch.setattr(psycopg.Connection, "execute", record)
    move_space(*places)

    assert [sql for sql in sent if sql.startswith("VACUUM")]
    lasting = [sql for sql in sent if sql.startswith(("SET ", "RESET "))]
    assert [sql for sql in lasting if not sql.startswith("SET LOCAL ")] == []
