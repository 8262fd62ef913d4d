"""Counts that are taken a shorter way are those of the rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
from old_schema import bring_back

from bethink import Memory
from bethink.errors import Conflict, NotFound, Refused
from bethink.model import Link, Node
from bethink.store.sqlite import SqliteStore
from bethink.store.sqlite.repair import verify_counts
from records import NOW, at, mention, record, scope


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="counts")
    yield opened
    opened.close()


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_the_rows(store: SqliteStore, seed: int) -> None:
    """After any writes, ends, returns and erases, with a ceiling and without one."""
    chance = random.Random(seed)
    there: dict[str, int] = {}
    ended: set[str] = set()
    for step in range(30):
        now = at(hours=step)
        deed = chance.choice(("put", "put", "change", "end", "restore", "erase"))
        some = chance.sample(sorted(there), min(len(there), 2))
        if deed == "put" or not some:
            levels = [chance.randrange(4) for _ in range(3)]
            new = [
                record(f"{step}-{n}", classification=level, mentions=(mention(f"N{n}"),))
                for n, level in enumerate(levels)
            ]
            store.items.put(new, actor="x", now=now)
            there |= {one.item.id: level for one, level in zip(new, levels, strict=True)}
        elif deed == "change":
            for key in {*some} - ended:
                rev = store.items.get([key])[key].rev + 1
                again = record(key, f"{key} at {step}", rev=rev, classification=there[key])
                store.items.put([again], actor="x", now=now)
        elif deed == "end":
            ended |= {*store.items.end(some, how="test", actor="x", now=now)}
        elif deed == "restore":
            ended -= {*store.items.restore(some, actor="x", now=now)}
        else:
            store.items.erase(some, actor="x", now=now)
            there = {key: level for key, level in there.items() if key not in some}
            ended -= {*some}
        for ceiling in range(4):
            below = store.below(ceiling)
            live = [key for key, level in there.items() if level <= ceiling and key not in ended]
            assert below.admin.count() == below.admin.stats()["memories"] == len(live)


def wrong_counts(store: SqliteStore) -> str:
    with store._connections.read_transaction() as db:
        return verify_counts(db)


@pytest.mark.parametrize("seed", range(3))
def test_kept_counts_follow_every_change(store: SqliteStore, seed: int) -> None:
    """Of memories by sort, and of links, which several memories state, replace and merge."""
    chance = random.Random(seed)
    known, now = list[str](), NOW
    names = ("Ana", "Ben", "Cai")
    ends = [f"person:{name.lower()}" for name in names]

    def change(deed: str, some: list[str]) -> None:
        if deed == "put" or not some:
            key = f"m{step}"
            kind = chance.choice(("fact", "note", "rare"))
            said = tuple(mention(name) for name in chance.sample(names, 2))
            store.items.put([record(key, kind=kind, mentions=said)], actor="x", now=now)
            known.append(key)
        elif deed == "state":
            one, other = (Node("entity", end) for end in chance.sample(ends, 2))
            said_by = chance.choice(known)
            store.graph.add_links([Link(one, other, "knows", context=said_by)], now=now)
        elif deed == "status":
            store.items.set_status(some, "superseded", actor="x", now=now)
        elif deed == "merge":
            store.graph.merge_entities(ends[0], ends[1], actor="x", now=now)
        elif deed == "split":
            store.graph.split_entities(ends[0], ends[1], actor="x", now=now)
        elif deed == "end":
            store.items.end(some, how="test", actor="x", now=now)
        elif deed == "restore":
            store.items.restore(some, actor="x", now=now)
        else:
            store.items.erase(some, actor="x", now=now)
            known[:] = [key for key in known if key not in some]

    deeds = ("put", "put", "state", "state", "status", "merge", "split", "end", "restore", "erase")
    for step in range(60):
        now = at(hours=step)
        with suppress(NotFound, Conflict, Refused):  # not all can be done at any time
            change(chance.choice(deeds), chance.sample(known, min(len(known), 2)))
        assert wrong_counts(store) == "", step
    store.items.erase(known, actor="x", now=now)
    assert wrong_counts(store) == ""
    with store._connections.read_transaction() as db:
        assert db.execute("SELECT * FROM tally").fetchall() == []


def test_a_row_that_another_replaces_is_counted_out(store: SqliteStore) -> None:
    """Whether an insert or an update takes its place."""
    add = "INSERT OR REPLACE INTO link (src_kind, src, type, dst_kind, dst, source, created_at)"
    with store._connections.write_transaction() as db:
        for kind in ("mentions", "mentions", "mentioned"):
            db.execute(f"{add} VALUES ('item', 'a', ?, 'entity', 'person:b', 'x', 1)", (kind,))
        assert db.execute("SELECT count FROM link_tally").get == 2
        db.execute("UPDATE OR REPLACE link SET type = 'mentioned'")
        assert db.execute("SELECT count FROM link_tally").get == 1
        assert verify_counts(db) == ""


def test_a_wrong_count_is_found_and_counted_anew(tmp_path: Path) -> None:
    """By the check of counts, whether a number or a row of them is wrong or lost."""
    path = tmp_path / "space.db"
    changes = ("UPDATE tally SET count = 7", "DELETE FROM tally", "DELETE FROM link_tally")
    with Memory(SqliteStore.open(path, space="counts"), embedder=None) as memory:
        memory.remember("Ylva owns Kestrel")
        right = memory.stats()
        for sql in changes:
            db = apsw.Connection(str(path))
            db.execute(sql)
            db.close()
            assert [one.name for one in memory.doctor() if not one.ok] == ["counts"]
            assert any(one.repaired for one in memory.doctor(repair=True))
            after = memory.stats()
            assert {name for name in right if right[name] != after[name]} <= {"generation", "bytes"}


def test_a_file_of_schema_7_is_counted_when_it_is_opened(tmp_path: Path) -> None:
    """With ended memories, links that two memories state, and tags; then counts go on."""
    path = tmp_path / "space.db"
    with Memory(SqliteStore.open(path, space="counts"), embedder=None) as memory:
        memory.remember("Ylva owns Kestrel", tags=["boat"])
        memory.remember("It is certain that Ylva owns Kestrel", kind="decision")
        memory.forget(memory.remember("Lunch is at noon").id)
        before = memory.stats()
    bring_back(path, 7)
    with Memory(SqliteStore.open(path, space="counts"), embedder=None) as memory:
        after = memory.stats()
        assert {name for name in before if before[name] != after[name]} <= {"bytes"}
        assert [item.tags for item in memory.browse(tag="boat")] == [("boat",)]
        memory.remember("Ylva owns Tern")
        assert memory.stats()["memories"] == before["memories"] + 1
        assert [found for found in memory.doctor() if not found.ok] == []


def test_a_tag_is_found_however_it_is_spelt(store: SqliteStore) -> None:
    """Quotes, backslashes, control characters and parts of other tags do not mislead."""
    tags = ('say "hi"', "back\\slash", "line\nbreak", "tést", "boat", "boat house", "")
    for number, tag in enumerate(tags):
        store.items.put([record(f"m{number}", tags=(tag, "all"))], actor="x", now=NOW)
    for number, tag in enumerate(tags):
        found = store.items.browse(scope(tags=(tag,)), limit=9)
        assert [item.id for item in found] == [f"m{number}"], tag
        assert store.items.browse(scope(tags=(tag, "all")), limit=9) == found
    assert store.items.browse(scope(tags=("oat",)), limit=9) == []
