"""Counts that are taken a shorter way are those of the rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bethink.store.sqlite import SqliteStore
from records import at, mention, record


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
        assert store.admin.most_classified() == max(there.values(), default=0)
