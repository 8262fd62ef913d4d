"""The laws every store keeps about use, bands, and what goes on around entities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ports import EntityListing, Store
from bethink.retrieval.heat import BANDS, ActivityCounts, UseCounts, band_of, heat, momentum
from bethink.store.sqlite import SqliteStore
from postgres_server import open_space
from records import at, mention, mention_activity, record, scope

STORES = {
    "sqlite": lambda folder: SqliteStore.open(folder / "space.db", space="laws"),
    "sqlite-memory": lambda _: SqliteStore.open(None, space="laws"),
    "postgres": open_space,
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()


def put(store: Store, *records: Any, days: float = 0) -> None:
    store.items.put(records, actor="tester", now=at(days=days))


# Use


def test_use_is_counted_by_day(store: Store) -> None:
    """In 30 and in 90 days up to the moment asked for; ids that were never used are left out."""
    put(store, record("a"), record("b"))
    for day in (0, 1, 50, 89, 90, 90, 119):
        store.activity.note_use(["a"], at(days=day))
    used = store.activity.usage(["a", "b", "nobody"], at(days=119))

    assert set(used) == {"a"}
    # A day of use counts for as many days as the window has, the day asked for included.
    assert (used["a"].recalls, used["a"].in_30_days, used["a"].in_90_days) == (7, 3, 5)
    assert used["a"].last_at == at(days=119)


def test_use_up_to_a_moment_knows_nothing_later(store: Store) -> None:
    """Neither counts nor stamps nor the last time."""
    put(store, record("a"))
    for day in (0, 1, 2):
        store.activity.note_use(["a"], at(days=day))
    used = store.activity.usage(["a"], at(days=1))["a"]

    assert (used.recalls, used.in_30_days, used.in_90_days) == (2, 2, 2)
    assert used.last_at == at(days=1)
    assert used.stamps == (at(days=0), at(days=1))
    assert store.activity.usage(["a"], at(days=-1)) == {}


@settings(max_examples=25)
@given(
    uses=st.lists(st.integers(0, 130), max_size=25),
    stored=st.integers(0, 60),
    importance=st.floats(0, 1),
    moment=st.integers(60, 130),
)
def test_the_band_filter_is_the_formula(
    uses: list[int], stored: int, importance: float, moment: int
) -> None:
    """A memory passes the band its uses and days amount to, and no other."""
    store = SqliteStore.open(None, space="laws")
    try:
        put(store, record("a", importance=importance, stored_at=at(days=stored)), days=stored)
        for day in sorted(uses):
            store.activity.note_use(["a"], at(days=day))
        past = [day for day in uses if day <= moment]
        since = moment - (max(past) if past else stored)
        counts = UseCounts(
            sum(day > moment - 30 for day in past),
            sum(day > moment - 90 for day in past),
            len(past),
        )
        own = band_of(heat(counts, since, importance))

        within = [
            band
            for band in BANDS
            if store.items.browse(scope(moment=at(days=moment), bands=(band,)), limit=5)
        ]
        assert within == [own]
        assert store.items.browse(scope(moment=at(days=moment), bands=BANDS), limit=5)
    finally:
        store.close()


# Activity and momentum


def test_activity_counts_what_was_stored(store: Store) -> None:
    """In a day, in a week, ever, since when, and how important the week was."""
    put(store, record("a", importance=0.2, mentions=(mention("Ana"),)), days=0)
    put(store, record("b", importance=0.4, mentions=(mention("Ana"),)), days=20)
    put(store, record("c", importance=0.8, mentions=(mention("Ana"), mention("Ben"))), days=25)
    seen = mention_activity(store, ["person:ana", "person:ben", "person:nobody"], at(days=25))

    assert set(seen) == {"person:ana", "person:ben"}
    ana = seen["person:ana"]
    assert (ana.counts, ana.first_at) == ((1, 2, 3), at(days=0))
    assert ana.mean_importance == pytest.approx(0.6)


def test_activity_of_a_past_moment_knows_nothing_later(store: Store) -> None:
    """And one who came up later is a stranger then."""
    put(store, record("a", importance=0.2, mentions=(mention("Ana"),)), days=0)
    put(store, record("b", importance=0.4, mentions=(mention("Ana"), mention("Ben"))), days=20)
    seen = mention_activity(store, ["person:ana", "person:ben"], at(days=5))

    assert set(seen) == {"person:ana"}
    assert seen["person:ana"].counts[1:] == (1, 1)


def test_a_week_is_seven_days_to_the_millisecond(store: Store) -> None:
    """What is a week old to the millisecond is no longer of the week."""
    put(store, record("a", mentions=(mention("Ana"),)), days=0)

    def lately(**after: float) -> tuple[int, int]:
        seen = mention_activity(store, ["person:ana"], at(**after))["person:ana"]
        return seen.counts[:2]

    assert lately(hours=24, seconds=-0.001) == (1, 1)
    assert lately(hours=24) == (0, 1)
    assert lately(days=7, seconds=-0.001) == (0, 1)
    assert lately(days=7) == (0, 0)


def test_momentum_is_that_of_the_moment(store: Store) -> None:
    """As the formula says, strangers have none; after a week without news it is that of rest."""
    put(store, record("a", importance=0.8, mentions=(mention("Ana"),)), days=0)
    asked = ["person:ana", "person:nobody"]

    assert store.activity.momenta(asked, at(hours=1)) == {
        "person:ana": pytest.approx(momentum(ActivityCounts(1, 1, 1), 1.0, 0.8))
    }
    assert store.activity.momenta(asked, at(days=7, seconds=1)) == {
        "person:ana": pytest.approx(momentum(ActivityCounts(), 1.0))
    }


# Listing


def test_entities_are_listed_by_their_worth(store: Store) -> None:
    """10 × momentum + half a point a memory − two a year since they came up; ties by id."""
    put(store, record("a", mentions=(mention("Old"),)), days=-731)
    put(store, *(record(f"b{n}", mentions=(mention("Many"),)) for n in range(30)), days=-300)
    put(store, record("c", mentions=(mention("Few"), mention("Less"))), days=-300)
    put(store, record("d", importance=0.1, mentions=(mention("Dull"),)), days=0)

    listed = store.graph.list_entities(EntityListing(), at(hours=1))
    assert [one.name for one in listed] == ["Many", "Dull", "Few", "Less", "Old"]
    assert [one.momentum for one in listed] == pytest.approx(
        [2.0, 0.4 + 2.1 + 0.3 * 4 / 7, *[2.0] * 3]
    )


def test_a_listing_is_filtered_counted_and_paged(store: Store) -> None:
    """By beginning, kind and number; layers and pins of live memories; any page of any size."""
    put(
        store,
        record("a", layer="goal", pinned=True, mentions=(mention("Ana"), mention("x", "file"))),
    )
    put(store, record("b", layer="goal", mentions=(mention("Ana"),)))
    put(store, record("c", layer="caveat", mentions=(mention("Ana"), mention("Ben"))))
    put(store, record("d", layer="emotion", pinned=True, mentions=(mention("Ana"),)))
    store.items.end(["d"], how="forgotten", actor="tester", now=at(hours=1))

    def names(**wanted: Any) -> list[str]:
        return [one.name for one in store.graph.list_entities(EntityListing(**wanted), at(hours=2))]

    ana = store.graph.list_entities(EntityListing(prefix="AN"), at(hours=2))[0]
    assert (ana.mentions, ana.layers, ana.pinned) == (3, (("caveat", 1), ("goal", 2)), 1)
    assert names(kinds=("file",)) == ["x"]
    assert names(kinds=("file", "person"), min_memories=2) == ["Ana"]
    assert names(limit=1) + names(limit=1, offset=1) + names(offset=2) == names()
    assert names(limit=0) == names(offset=99) == names(min_memories=9) == []


def test_the_quiet_and_the_lively_share_one_order(store: Store) -> None:
    """A page is the same piece of the whole however it is cut."""
    for day in range(-40, 1, 4):
        put(
            store,
            *(
                record(
                    f"m{day}.{n}", mentions=(mention(f"Person {n * 7 % 11}"), mention(f"D{day}"))
                )
                for n in range(3)
            ),
            days=day,
        )
    now = at(hours=1)
    whole = store.graph.list_entities(EntityListing(limit=100), now)

    cut = [
        one
        for start in range(0, len(whole), 4)
        for one in store.graph.list_entities(EntityListing(limit=4, offset=start), now)
    ]
    assert cut == whole
    assert len({one.id for one in whole}) == len(whole) > 10
