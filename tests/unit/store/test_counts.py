"""Counts that are taken a shorter way are those of the rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from old_schema import bring_back

from bethink import Memory
from bethink.store.sqlite import SqliteStore
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


def test_a_file_of_schema_7_counts_the_same_when_it_is_opened(tmp_path: Path) -> None:
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
