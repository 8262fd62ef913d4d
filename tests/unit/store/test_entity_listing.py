"""Entities are listed with their counts, however few memories have a layer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from bethink.ports import EntityListing
from bethink.store.sql import links
from bethink.store.sqlite import SqliteStore
from records import NOW, at, mention, record

ALDER, BIRCH = mention("Alder", "project"), mention("Birch", "project")


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="entities")
    opened.items.put(
        [
            record("a", mentions=(ALDER,), layer="goal"),
            record("b", mentions=(ALDER, BIRCH), pinned=True),
            record("c", mentions=(ALDER,), layer="goal", classification=3),
            record("d", mentions=(ALDER,)),
            record("e", mentions=(BIRCH,), layer="context", pinned=True),
        ],
        actor="x",
        now=NOW,
    )
    yield opened
    opened.close()


@pytest.mark.parametrize("few", [0, 2_000])
def test_layers_and_pins_are_counted_either_way(
    few: int, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the memories that have any, or from the links of the entities: the same counts."""
    monkeypatch.setattr(links, "_FEW_LAYERED", few)

    found = store.graph.list_entities(EntityListing(max_classification=2), at(hours=1))

    counts = {entity.name: (entity.mentions, entity.layers, entity.pinned) for entity in found}
    assert counts == {
        "Alder": (3, (("goal", 1),), 1),
        "Birch": (2, (("context", 1),), 2),
    }


def test_what_was_quiet_comes_before_what_is_new_if_it_has_more_mentions(
    store: SqliteStore,
) -> None:
    """The order is that of the whole list, whatever the size of a page."""
    many = [record(f"m{n}", mentions=(mention("Cedar", "project"),)) for n in range(250)]
    store.items.put(many, actor="x", now=NOW - timedelta(days=60))
    new = [record(f"n{n}", mentions=(mention(f"Elm{n}", "project"),)) for n in range(60)]
    store.items.put(new, actor="x", now=at(days=30))
    now = at(days=30, hours=1)
    whole = [one.id for one in store.graph.list_entities(EntityListing(limit=1_000), now)]

    assert whole[0] == "project:cedar"
    for limit in (1, 7, 30, 62):
        pages = [
            one.id
            for offset in range(0, len(whole), limit)
            for one in store.graph.list_entities(EntityListing(limit=limit, offset=offset), now)
        ]
        assert pages == whole
