"""What a caller says is superseded leaves recall, and comes back when that no longer holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.memory import Memory
from bethink.model import Collision, Remembered
from bethink.testing import FixedClock

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OLD, NEW = "The deploy key is in vault A", "The deploy key moved to vault B"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none", settings=Settings(), clock=clock) as opened:
        yield opened


def chained(clock: FixedClock, memory: Memory, *texts: str) -> list[Remembered]:
    """Remembers one after the other, and says of each that it supersedes the one before."""
    told: list[Remembered] = []
    for text in texts:
        clock.forward(minutes=1)
        told.append(memory.remember(text))
        if told[1:]:
            memory.link(told[-1].id, "supersedes", told[-2].id)
    clock.forward(minutes=1)
    return told


def limits(
    clock: FixedClock, memory: Memory, *values: int, name: str = "limit"
) -> list[Remembered]:
    return chained(clock, memory, *(f"The {name} is {value}" for value in values))


def recalled(memory: Memory, question: str) -> list[str]:
    return [hit.item.text for hit in memory.recall(question).hits]


def statuses(memory: Memory, *answers: Remembered) -> list[str]:
    return [memory.get(answer.id).status for answer in answers]


def links(memory: Memory, answer: Remembered, kind: str) -> list[str]:
    found = memory.store.graph.links_of([answer.id], [kind], incoming=False)
    return [link.dst.id for link in found]


def test_what_is_superseded_is_not_recalled(memory, clock):
    """It is kept, linked, and named beside the one in its place."""
    old, new = chained(clock, memory, OLD, NEW)

    assert statuses(memory, old, new) == ["superseded", "active"]
    assert links(memory, new, "supersedes") == [old.id]
    assert recalled(memory, "where is the deploy key") == [NEW]
    told = memory.recall("where is the deploy key").relations
    assert [(relation.type, relation.other) for relation in told] == [("supersedes", old.id)]


def test_words_alone_take_nothing_out_of_recall(memory, clock):
    """However plainly they say that something changed: both are kept."""
    old = memory.remember(OLD)
    clock.forward(minutes=1)
    new = memory.remember(NEW)

    assert statuses(memory, old, new) == ["active", "active"]
    assert links(memory, new, "supersedes") == []


def test_forgetting_the_newer_brings_the_old_one_back(memory, clock):
    """And restoring it lets the old one go again."""
    old, new = chained(clock, memory, OLD, NEW)

    memory.forget(new.id)
    assert memory.get(old.id).status == "active"
    memory.restore(new.id)
    assert statuses(memory, old, new) == ["superseded", "active"]


def test_erasing_the_newer_brings_the_old_one_back(memory, clock):
    """Nothing is left of the new one, and the old one is recalled."""
    old, new = chained(clock, memory, OLD, NEW)

    memory.forget(new.id, erase=True)

    assert memory.get(old.id).status == "active"
    assert recalled(memory, "where is the deploy key") == [OLD]


def test_a_chain_comes_back_one_by_one(memory, clock):
    """Only what the forgotten one had replaced; through those already forgotten."""
    first, second, third = limits(clock, memory, 5, 10, 20)
    assert statuses(memory, first, second, third) == ["superseded", "superseded", "active"]

    memory.forget(second.id)
    assert statuses(memory, first, third) == ["superseded", "active"]
    memory.forget(third.id)
    assert memory.get(first.id).status == "active"


def test_undoing_the_superseding_keeps_both(memory, clock):
    """Whoever knows better says so; the memory is as it was."""
    old, new = chained(clock, memory, OLD, NEW)
    before = memory.get(old.id)._replace(status="active")

    memory.undo(old.id)

    assert memory.get(old.id) == before
    assert statuses(memory, old, new) == ["active", "active"]


def test_what_was_superseded_and_is_said_again_is_a_memory_of_its_own(memory, clock):
    """A, then B, then A: the last one is no duplicate of what left recall."""
    first, second = chained(clock, memory, OLD, NEW)
    third = memory.remember(OLD)

    assert third.status == "stored"
    assert statuses(memory, first, second, third) == ["superseded", "active", "active"]
    memory.link(third.id, "supersedes", second.id)
    assert recalled(memory, "where is the deploy key") == [OLD]


def test_a_collision_names_its_remedy():
    """Without one the field is empty."""
    assert Collision("a", "exact", 1.0, "x", "y").resolve == ""


def test_erasing_the_middle_of_a_chain_joins_its_ends(memory, clock):
    """What the last one holds down comes back when that is forgotten or erased."""
    for erase in (False, True):
        chain = limits(clock, memory, 5, 10, 20, 40, name="limit" if erase else "quota")
        memory.forget(chain[1].id, chain[2].id, erase=True)

        assert statuses(memory, chain[0], chain[3]) == ["superseded", "active"]
        assert links(memory, chain[3], "supersedes") == [chain[0].id]
        memory.forget(chain[3].id, erase=erase)
        assert memory.get(chain[0].id).status == "active"


def test_unlinking_brings_back_what_nothing_else_supersedes(memory, clock):
    """Not what another one still replaces, directly or further up."""
    first, second, third = limits(clock, memory, 5, 10, 20)
    other = memory.remember("Nobody counts any more")
    memory.link(other.id, "supersedes", first.id)

    memory.unlink(other.id, "supersedes", first.id)
    assert statuses(memory, first, second, third) == ["superseded", "superseded", "active"]
    memory.unlink(second.id, "supersedes", first.id)
    assert statuses(memory, first, second, third) == ["active", "superseded", "active"]


def test_what_somebody_says_is_superseded_leaves_recall(memory, clock):
    """Whatever the words: an undo, an unlink or forgetting the newer brings it back."""
    old = memory.remember("Mara brews the tea")
    clock.forward(minutes=1)
    new = memory.remember("Tea comes in bags")
    memory.link(new.id, "supersedes", old.id, context="from the audit on")
    assert statuses(memory, old, new) == ["superseded", "active"]
    assert recalled(memory, "who brews the tea") != ["Mara brews the tea"]

    memory.undo(old.id)
    assert memory.get(old.id).status == "active"
    memory.link(new.id, "supersedes", old.id)
    memory.forget(new.id)
    assert memory.get(old.id).status == "active"
    memory.restore(new.id)
    assert statuses(memory, old, new) == ["superseded", "active"]
    with pytest.raises(Refused, match="directly or through others"):
        memory.link(old.id, "supersedes", new.id)


def test_a_callers_word_stands_whatever_is_revised(memory, clock):
    """He linked two memories, not two texts; in the middle of a chain and at its end."""
    first, second, third = limits(clock, memory, 5, 10, 20)
    memory.update(second.id, text="Bananas are yellow")
    memory.update(third.id, text="Bananas are green")

    assert statuses(memory, first, second, third) == ["superseded", "superseded", "active"]
    memory.forget(third.id)
    assert statuses(memory, first, second) == ["superseded", "active"]
