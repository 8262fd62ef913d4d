"""Entities with a key (e-mail address, domain, path): one thing under all its names."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.ingest.entity_extraction import canonical_key, parse_entity


def test_a_key_is_written_after_the_name() -> None:
    """As in an address of a letter; without a space before it, it is part of the name."""
    for text, name, kind, key in (
        ("company:Acme <Acme.com>", "Acme", "company", "acme.com"),
        ("Ana Berg <ana@acme.com> ", "Ana Berg", "other", "ana@acme.com"),
        ("class:Vec<int>", "Vec<int>", "class", ""),
        ("<acme.com>", "<acme.com>", "other", ""),
    ):
        assert parse_entity(text)[:2] == (name, kind)
        assert canonical_key(text) == key


@pytest.mark.parametrize("batch", [True, False])
def test_one_key_is_one_entity(memory: Memory, batch: bool) -> None:
    """Under another name too, in a batch or later; the name alone gets the key afterwards."""
    drafts = [
        {"text": "The contract ends in May", "entities": ["company:Acme"]},
        {"text": "The contract was renewed", "entities": ["company:Acme <acme.com>"]},
        {"text": "They sold the warehouse", "entities": ["company:Zenith Holdings <ACME.com>"]},
        {"text": "The lease with Zenith Holdings went on"},
    ]
    if batch:
        memory.remember_many(drafts)
    else:
        for draft in drafts:
            memory.remember(**draft)

    (entity,) = [one for one in memory.entities() if one.kind == "company"]
    assert (entity.id, entity.name, entity.mentions) == ("company:acme", "Acme", 4)
    assert set(entity.aliases) == {"acme.com", "zenith holdings"}
    for name in ("Acme", "acme.com", "Zenith Holdings", "company:acme"):
        assert len(memory.recall("", entity=name).hits) == 4


def test_a_key_of_a_secret_memory_is_not_told(memory: Memory) -> None:
    """What is stored below its class makes an entity of its own."""
    memory.remember("They are bought", entities=["company:Acme <acme.com>"], classification=3)
    below = memory.below(1)
    stored = below.remember("They sell tea", entities=["company:Zenith <acme.com>"])

    assert below.get(stored.id).entities == ("company:zenith",)


def test_another_key_of_one_name_is_the_same_entity(memory: Memory) -> None:
    """The name decides where the key is new, as in linksee."""
    memory.remember("They sell tea", entities=["company:Acme <acme.com>"])
    memory.remember("They sell cups", entities=["company:Acme <acme.org>"])

    (entity,) = [one for one in memory.entities() if one.kind == "company"]
    assert {"acme.com", "acme.org"} <= set(entity.aliases)


def test_an_erased_key_is_gone(memory: Memory) -> None:
    """A key or name stays only if a remaining memory tells it, the entity was merged or has it."""
    first = memory.remember("Zenith sells tea", entities=["company:Acme", "company:Zenith"])
    memory.remember("Acme was once called Orion Works", entities=["company:Orion Works <acme>"])
    gone = memory.remember("They moved", entities=["company:Acme <ana@acme.com>"])
    other = memory.remember("They left", entities=["company:Nadir <ana@acme.com>"])
    assert memory.get(other.id).entities == memory.get(gone.id).entities == ("company:acme",)
    memory.merge_entities("company:acme", "company:zenith")

    memory.forget(gone.id, erase=True)
    memory.forget(other.id, erase=True)

    (entity,) = [one for one in memory.entities() if one.id == "company:acme"]
    assert set(entity.aliases) == {"orion works", "zenith"}
    assert memory.get(first.id)


def test_a_batch_mentions_what_its_memories_would_one_by_one(memory: Memory) -> None:
    """A later memory knows the entities of the earlier ones, up to its own classification."""
    told = (
        ("Ylva Berg owns the Kestrel plan", 1),
        ("In June it rained. Kestrel flew", 1),
        ("We asked Kestrel about parse_tree()", 0),
        ("parseTree is slow; Kestrel broke it", 1),
        ("We hid Tempo in Molde", 3),
        ("In May it snowed. Tempo! Kestrel flew", 2),
        ("In May it snowed. Tempo! It flew on", 3),
    )
    drafts = [{"text": text, "classification": level} for text, level in told]
    with Memory.open(":memory:", embedder="none", clock=memory.session.clock) as other:
        single = [other.get(other.remember(**draft).id).entities for draft in drafts]

    batch = [memory.get(one.id).entities for one in memory.remember_many(drafts)]

    assert batch == single
    assert "project:kestrel" in batch[1]
    assert "project:tempo" not in batch[5]
    assert "project:tempo" in batch[6]
