"""Links that somebody makes: checked, journalled, seen from both sides, taken back."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.errors import NotFound, Refused
from bethink.model import RELATIONS
from bethink.systems.remind import RELATION_WEIGHTS


@pytest.fixture
def pair(memory: Memory) -> tuple[str, str]:
    return (
        memory.remember("Mara writes the release notes").id,
        memory.remember("Lunch is served at noon").id,
    )


def test_a_link_is_seen_from_both_sides(memory: Memory, pair: tuple[str, str]) -> None:
    """In answers as in the list of links; its weight is 0.5 unless told."""
    new, old = pair
    made = memory.link(new, "supersedes", old)
    told = memory.recall(
        "who writes the release notes, and when is lunch served?", include_superseded=True
    ).relations

    assert made.weight == 0.5
    assert memory.links(old) == memory.links(new)
    assert [(link.src.id, link.type, link.dst.id) for link in memory.links(old)] == [
        (new, "supersedes", old)
    ]
    assert {(one.item, one.other, one.inbound) for one in told} == {
        (new, old, False),
        (old, new, True),
    }


def test_said_again_it_overwrites(memory: Memory, pair: tuple[str, str]) -> None:
    """The weight and the context, not the link."""
    memory.link(pair[0], "implies", pair[1])
    memory.link(pair[0], "implies", pair[1], weight=1, context="since the audit")

    (link,) = memory.links(pair[0])
    assert (link.weight, link.context) == (1.0, "since the audit")


def test_a_link_can_be_taken_back(memory: Memory, pair: tuple[str, str]) -> None:
    """Once; the journal holds both and no content."""
    memory.link(pair[0], "contradicts", pair[1])
    memory.unlink(pair[0], "contradicts", pair[1])

    assert memory.links(pair[0]) == []
    with pytest.raises(NotFound, match="has no link contradicts"):
        memory.unlink(pair[0], "contradicts", pair[1])
    lines = [(event.kind, event.item, event.detail) for event in memory.events()[-2:]]
    assert lines == [
        ("linked", pair[0], f"contradicts {pair[1]}"),
        ("unlinked", pair[0], f"contradicts {pair[1]}"),
    ]


def test_a_link_that_cannot_be_is_refused(memory: Memory, pair: tuple[str, str]) -> None:
    """Unknown relations, strangers, the forgotten, itself, weights that are none."""
    new, old = pair
    memory.forget(memory.remember("gone soon", id="gone-soon-id").id)
    for relation in ("mentions", "follows", "", "Implies"):
        with pytest.raises(Refused, match="no relation") as refused:
            memory.link(new, relation, old)
        assert "implies" in refused.value.remedy
    with pytest.raises(NotFound, match="no memory"):
        memory.link(new, "implies", "nobody-knows-it")
    with pytest.raises(Refused, match="was forgotten"):
        memory.link(new, "implies", "gone-soon-id")
    with pytest.raises(Refused, match="to itself"):
        memory.link(new, "implies", new)
    for weight in (0, -1, 1.5, float("nan"), True, "0.5"):
        with pytest.raises(Refused, match="weight is"):
            memory.link(new, "implies", old, weight=weight)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="context"):
        memory.link(new, "implies", old, context="x" * 1001)

    assert memory.links(new) == []


def test_every_relation_that_spreads_can_be_said() -> None:
    """And no link that rules make."""
    assert {name for name, _ in RELATION_WEIGHTS} <= set(RELATIONS)
    assert not {"mentions", "mentioned", "follows"} & set(RELATIONS)
