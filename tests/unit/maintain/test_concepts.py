"""Facts that share their entities are gathered into a concept, and stay as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bethink import Memory
from bethink.maintain.consolidate import single_linkage
from bethink.testing import FixedClock
from cold_memories import open_memory, state
from corpus import NOW
from rows import each_row

SEEN = ["tool:Atlas", "person:Ana"]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory(FixedClock(NOW)) as opened:
        yield opened


def fact(memory: Memory, text: str, *entities: str) -> str:
    return memory.remember(text, kind="fact", entities=entities or SEEN, level="raw").id


def test_two_facts_make_a_concept(memory: Memory) -> None:
    """It lists them, says what they are about, and derives from each; a lone fact makes none."""
    facts = [fact(memory, "the mill grinds at night"), fact(memory, "the mill stands by the sea")]
    fact(memory, "the barn is red", "place:Barn")
    before = state(memory)

    report = memory.maintain("concepts")
    made = memory.get(report.done[0].successor or "")

    assert len(report.done) == 1
    assert (made.kind, made.level) == ("concept", "item")
    assert made.text.startswith("Facts about Ana, Atlas:\n- 2026-03-02: the mill grinds")
    links = memory.store.graph.links_of([made.id], ("derives_from",), incoming=False)
    assert {link.dst.id for link in links} == set(facts)
    assert {key: value for key, value in state(memory).items() if key != made.id} == before
    assert memory.maintain("concepts").plan.steps == ()


def test_a_concept_grows_with_its_facts(memory: Memory) -> None:
    """The old one gives way to the new one; undone, it is back, and is not made again."""
    fact(memory, "the mill grinds at night")
    fact(memory, "the mill stands by the sea")
    first = memory.maintain("concepts").done[0].successor
    fact(memory, "the mill has four sails")

    report = memory.maintain("concepts")
    second = report.done[0].successor
    assert second is not None
    assert first is not None
    assert "four sails" in memory.get(second).text
    assert memory.get(first).live_to is not None
    memory.undo_run(report.run or "")

    assert memory.get(first).live_to is None
    assert memory.get(second).live_to is not None
    assert memory.maintain("concepts").plan.steps == ()


@each_row(
    ("sets", "clusters"),
    [
        ([{"a", "b"}, {"a"}], 1),
        ([{"a", "b"}, {"b", "c"}], 2),
        ([{"a", "b", "c"}, {"b", "c", "d"}], 1),
        ([{"a"}, {"a", "b"}, {"a", "b", "c", "d"}], 1),
        ([{"a"}, {"b"}], 2),
    ],
)
def test_sets_are_linked_from_half_of_their_union_on(sets: list[set[str]], clusters: int) -> None:
    """One by one: what is near to any of a cluster belongs to it."""
    given = dict.fromkeys(frozenset(one) for one in sets)

    assert len(set(single_linkage(given, 0.5, 200).values())) == clusters


def test_a_hub_joins_nothing() -> None:
    """An entity of everything says nothing."""
    given = dict.fromkeys(frozenset({"hub", str(n)}) for n in range(6))

    assert len(set(single_linkage(given, 0.3, most_sets=5).values())) == 6
    assert len(set(single_linkage(given, 0.3, most_sets=6).values())) == 1
