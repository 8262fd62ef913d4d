"""Two entities that are one, and apart again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bethink.config.settings import Settings
from bethink.errors import NotFound, Refused
from bethink.memory import Memory
from bethink.testing import FixedClock

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
def memory() -> Iterator[Memory]:
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder="none", settings=Settings(), clock=clock) as opened:
        opened.remember("Ana Torres prefers tea")
        opened.remember("Call @atorres on Monday")
        yield opened


def standing(memory: Memory) -> list[tuple[str, int, tuple[str, ...]]]:
    found = memory.entities(min_memories=0)
    return sorted((one.id, one.mentions, one.aliases) for one in found)


def test_merged_entities_are_one(memory):
    """One list entry, found by either name, also by what is remembered later."""
    merged = memory.merge_entities("Ana Torres", "person:atorres")
    memory.remember("@atorres likes coffee")

    assert (merged.id, merged.aliases, merged.mentions) == ("person:ana torres", ("atorres",), 2)
    assert [one.id for one in memory.entities()] == ["person:ana torres"]
    texts = {item.text for item in memory.browse(entities=("Ana Torres",))}
    assert len(texts) == 3
    found = memory.recall("anything at all", entities=("atorres",))
    assert {hit.item.text for hit in found.hits} <= texts


def test_a_merge_is_undone_by_the_names_it_was_made_with(memory):
    """As they are written, not only as ids have them."""
    memory.merge_entities("atorres", "Ana Torres")

    assert memory.split_entities("atorres", "Ana Torres").id == "person:ana torres"


def test_splitting_restores_exactly(memory):
    """Names, counts, links."""
    before, links = (
        standing(memory),
        memory.store.graph.links_of(["person:atorres", "person:ana torres"]),
    )
    memory.merge_entities("Ana Torres", "atorres")

    again = memory.split_entities("Ana Torres", "atorres")

    assert again.id == "person:atorres"
    assert standing(memory) == before
    assert memory.store.graph.links_of(["person:atorres", "person:ana torres"]) == links


def test_edges_come_along_and_go(memory):
    """Whom the other one works with."""
    memory.remember("Ben is here")
    memory.link("person:atorres", "works_with", "person:ben")
    memory.merge_entities("Ana Torres", "atorres")
    edges = memory.store.graph.edges(["person:ana torres"], 9, NOW)["person:ana torres"]
    assert [link.dst.id for link in edges if link.type == "works_with"] == ["person:ben"]

    memory.split_entities("Ana Torres", "atorres")

    assert memory.store.graph.edges(["person:ana torres"], 9, NOW)["person:ana torres"] == []


@pytest.mark.parametrize(
    ("pair", "error"),
    [
        (("Ana Torres", "Nobody"), NotFound),
        (("Ana Torres", "Ana Torres"), Refused),
        (("Ana Torres", "person:nobody"), NotFound),
    ],
)
def test_what_cannot_be_merged_is_refused(memory, pair, error):
    """Strangers, and an entity with itself."""
    with pytest.raises(error):
        memory.merge_entities(*pair)


def test_only_what_was_merged_can_be_split(memory):
    """And not twice."""
    with pytest.raises(NotFound):
        memory.split_entities("Ana Torres", "atorres")
    memory.merge_entities("Ana Torres", "atorres")
    with pytest.raises(NotFound):
        memory.merge_entities("Ana Torres", "person:atorres")


def test_an_erased_name_is_gone_from_the_entity_it_went_into(tmp_path):
    """No byte of it stays, neither in the file nor in the journal."""
    path = tmp_path / "space.db"
    with Memory.open(path=path, embedder="none", settings=Settings()) as memory:
        memory.remember("Ana Torres prefers tea")
        other = memory.remember("Call @zyxcanary on Monday").id
        memory.merge_entities("Ana Torres", "zyxcanary")
        memory.forget(other, erase=True)
        assert [one.aliases for one in memory.entities()] == [()]
    left = [file for file in Path(tmp_path).iterdir() if b"zyxcanary" in file.read_bytes()]
    assert left == []


def test_a_merging_survives_export_and_import(memory):
    """Names, mentions and the way back."""
    memory.merge_entities("Ana Torres", "atorres")
    with Memory.open(":memory:", embedder="none", settings=Settings()) as copy:
        copy.store.admin.load(memory.store.admin.dump(), actor="t", now=NOW)
        assert [(one.id, one.aliases) for one in copy.entities()] == [
            ("person:ana torres", ("atorres",))
        ]
        copy.split_entities("Ana Torres", "atorres")
        assert len(copy.entities()) == 2


def test_spellings_of_code_are_one_name(memory):
    """PaymentGateway, payment_gateway and payment-gateway, whichever came first."""
    memory.remember("PaymentGateway retries twice")
    memory.remember("the payment_gateway moved")

    (entity,) = [one for one in memory.entities() if "payment" in one.id]

    assert (entity.id, entity.mentions) == ("tool:paymentgateway", 2)
    assert entity.aliases == ("payment_gateway",)


def test_a_label_is_no_part_of_a_name(memory):
    """Neither before a name nor between two, nor where a caller gives it."""
    memory.remember("Owner: Xanthippe Role: Backend", entities=("Role: Zbigniew",))

    ids = {one.id for one in memory.entities()}

    assert {"person:xanthippe", "other:zbigniew"} <= ids
    assert not any("role" in one or "owner" in one for one in ids)


def test_a_merged_name_leads_to_the_one_that_was_kept(memory):
    """In links as elsewhere, also through several mergings."""
    memory.remember("Ask Ben Okafor or Cara Lind about tea")
    memory.merge_entities("Ana Torres", "person:atorres")
    made = memory.link("person:atorres", "works_with", "person:ben okafor")

    assert made.src.id == "person:ana torres"
    assert memory.links("person:atorres") == memory.links("person:ana torres") != []
    kept = memory.merge_entities("Cara Lind", "Ana Torres").id
    assert memory.links("person:atorres") == memory.links(kept) != []


def mentions(memory: Memory) -> dict[str, int]:
    return {one.id: one.mentions for one in memory.entities(min_memories=0)}


def test_an_update_without_a_merged_name_mentions_neither(memory):
    """Nor does a split bring the mention back; through several mergings, too."""
    memory.remember("She brews", entities=("person:cara lind",))
    (called,) = (item for item in memory.browse() if "atorres" in item.text)
    memory.merge_entities("Ana Torres", "person:atorres")
    memory.merge_entities("Cara Lind", "Ana Torres")
    assert mentions(memory)["person:cara lind"] == 3

    memory.update(called.id, text="Tea is out", entities=())

    assert mentions(memory)["person:cara lind"] == 2
    assert called.id not in {item.id for item in memory.browse(entities=("Cara Lind",))}
    assert [found for found in memory.doctor() if not found.ok] == []
    memory.split_entities("Cara Lind", "ana torres")
    memory.split_entities("Ana Torres", "person:atorres")
    assert {name: count for name, count in mentions(memory).items() if count} == {
        "person:cara lind": 1,
        "person:ana torres": 1,
    }
    memory.update(called.id, text="Call @atorres today")
    assert mentions(memory)["person:atorres"] == 1
    assert [found for found in memory.doctor() if not found.ok] == []


def test_a_mention_stays_while_another_merged_name_tells_it(memory):
    """Two were merged into one: the update leaves out one of them, then the other."""
    names = ("person:ben okafor", "person:atorres")
    both = memory.remember("They brew", entities=names).id
    for name in names:
        memory.merge_entities("Ana Torres", name)
    assert mentions(memory)["person:ana torres"] == 3

    memory.update(both, entities=names[1:])
    assert mentions(memory)["person:ana torres"] == 3
    memory.update(both, entities=())

    assert mentions(memory)["person:ana torres"] == 2
    assert [found for found in memory.doctor() if not found.ok] == []


def test_a_revision_that_names_a_merged_entity_is_the_last_time_of_the_kept_one(memory):
    """As `doctor` and an import tell it from the memories."""
    (called,) = (item for item in memory.browse() if "atorres" in item.text)
    memory.merge_entities("Ana Torres", "person:atorres")
    memory.session.clock.forward(days=1)
    memory.update(called.id, classification=0)

    (kept,) = (one for one in memory.entities() if one.id == "person:ana torres")
    assert kept.last_seen_at == memory.now
    assert [found for found in memory.doctor() if not found.ok] == []


def test_times_of_the_kept_entity_are_right_when_a_revision_names_it_itself(memory):
    """The first revision said the merged name, the new one is read with the kept name."""
    (called,) = (item for item in memory.browse() if "atorres" in item.text)
    memory.session.clock.forward(days=1)
    memory.remember("Cara Lind brews")
    memory.merge_entities("Cara Lind", "person:atorres")
    memory.session.clock.forward(days=1)
    memory.update(called.id, text="Call @atorres today")

    assert memory.get(called.id).entities == ("person:cara lind",)
    assert [found for found in memory.doctor() if not found.ok] == []
