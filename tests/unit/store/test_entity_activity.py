"""Recent mentions are counted from the side that has fewer, and few entities are looked at."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

import pytest

from bethink.ports import EntityListing
from bethink.store.sql import usage
from bethink.store.sqlite import SqliteStore
from records import at, mention, mention_activity, record
from rows import each_row


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="activity")
    yield opened
    opened.close()


@each_row("hours", [1, 30, 24 * 8, 24 * 30])
def test_mentions_of_a_week_are_counted_from_either_side(store: SqliteStore, hours: int) -> None:
    """Many of the last week or before it, some forgotten: the counts are those of the links."""
    chance = random.Random(hours)
    many, stored = usage.MAX_COUNTED + 30, {}
    for days, count in ((40, 5), (9, many), (3, many), (0, 3)):
        ids = [f"m{days}-{n}" for n in range(count)]
        records = [
            record(key, importance=0.25, mentions=(mention("Ann"),), stored_at=at(days=40 - days))
            for key in ids
        ]
        store.items.put(records, actor="x", now=at(days=40 - days))
        stored |= dict.fromkeys(ids, at(days=40 - days))
    store.items.end(chance.sample(sorted(stored), 40), how="test", actor="x", now=at(days=40))
    now = at(days=40) + timedelta(hours=hours)

    seen = mention_activity(store, ["person:ann"], now)["person:ann"]

    week = sum(now - timedelta(days=7) < when for when in stored.values())
    day = sum(now - timedelta(days=1) < when for when in stored.values())
    assert seen.counts == (min(day, usage.MAX_COUNTED), week, max(len(stored) - 40, week))
    assert seen.mean_importance == (0.25 if week else 0.5)


def test_the_list_of_entities_is_that_of_all_their_momenta(store: SqliteStore) -> None:
    """Momenta that are not looked up because they cannot matter do not change a page."""
    chance = random.Random(5)
    names = [f"Name{n}" for n in range(30)]
    for day in range(12):
        records = [
            record(
                f"d{day}-{n}",
                importance=chance.random(),
                mentions=tuple(mention(name) for name in chance.sample(names[: 5 + 2 * day], 2)),
                stored_at=at(days=day),
            )
            for n in range(20)
        ]
        store.items.put(records, actor="x", now=at(days=day))
    now = at(days=12)
    known = {one.id: one for one in store.graph.list_entities(EntityListing(limit=100), now)}
    momenta = store.activity.momenta(list(known), now)
    assert {key: one.momentum for key, one in known.items()} == momenta
    ranked = list(known)
    for limit, offset in ((1, 0), (3, 0), (4, 5), (10, 2), (7, 26)):
        page = store.graph.list_entities(EntityListing(limit=limit, offset=offset), now)
        assert page == [known[key] for key in ranked[offset : offset + limit]]
