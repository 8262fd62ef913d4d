"""Every change but an erase can be undone."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.errors import Refused
from bethink.model import Link, Node
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW


@pytest.fixture
def memory() -> Memory:
    return Memory.open(":memory:", embedder="none", clock=FixedClock(NOW))


def test_an_update_gives_way_to_what_was_before(memory: Memory) -> None:
    """Text and facts alike, as a new revision; undone again, they are back."""
    one = memory.remember("The limit is five", topic="api", importance=0.3).id
    memory.update(one, text="The limit is ten", topic="web", tags=["x"], importance=0.8)

    memory.undo(one)
    first = memory.get(one)
    memory.undo(one)
    second = memory.get(one)

    assert (first.text, first.topic, first.tags, first.importance) == (
        "The limit is five", "api", (), 0.3,
    )  # fmt: skip
    assert (second.text, second.topic, second.tags, second.importance) == (
        "The limit is ten", "web", ("x",), 0.8,
    )  # fmt: skip
    assert second.rev == 4


def test_a_forgotten_memory_comes_back_and_a_stored_one_goes(memory: Memory) -> None:
    """Each the other's opposite."""
    one = memory.remember("The limit is five").id
    memory.forget(one)

    assert memory.undo(one).doing == "restore it"
    assert memory.get(one).live_to is None
    memory.undo(one)
    assert memory.get(one).live_to is not None


def test_a_standing_goes_back_by_one(memory: Memory) -> None:
    """Also where it changed more than once."""
    one = memory.remember("The limit is five").id
    for status in ("superseded", "quarantined"):
        memory.store.items.set_status([one], status, actor="user", now=NOW)  # type: ignore[arg-type]

    memory.undo(one)
    assert memory.get(one).status == "superseded"


def test_without_an_id_it_is_the_last_change_of_mine(memory: Memory) -> None:
    """What others did stays; what is no change of a memory is passed over."""
    mine = memory.remember("The limit is five").id
    other = memory.remember("The port is nine").id
    memory.store.items.end([other], how="forgotten", actor="somebody", now=NOW)
    list(memory.export())

    assert memory.undo(preview=True).item == other
    memory.undo(mine)
    assert memory.get(mine).live_to is not None


def test_a_preview_changes_nothing(memory: Memory) -> None:
    """It only says what would be."""
    one = memory.remember("The limit is five").id

    assert memory.undo(one, preview=True).doing == "forget it"
    assert memory.get(one).live_to is None


def test_there_must_be_something_to_undo(memory: Memory) -> None:
    """An empty memory, and what was erased."""
    with pytest.raises(Refused, match="no change by 'user'"):
        memory.undo()
    one = memory.remember("The limit is five").id
    memory.forget(one, erase=True)
    with pytest.raises(Refused, match="cannot be undone") as told:
        memory.undo()
    assert "bethink undo ID" in told.value.remedy


@pytest.fixture
def pair(memory: Memory) -> tuple[str, str]:
    return memory.remember("The limit is five").id, memory.remember("The port is nine").id


def links(memory: Memory, item: str) -> list[tuple[str, str, str]]:
    return [(link.src.id, link.type, link.dst.id) for link in memory.links(item)]


def test_a_link_of_mine_goes_and_comes_back(memory: Memory, pair: tuple[str, str]) -> None:
    """As every other change: the undo can be undone."""
    one, other = pair
    memory.link(one, "implies", other)

    assert memory.undo().doing == "remove the link"
    assert links(memory, one) == []
    assert memory.undo(one).doing == "add the link again"
    assert links(memory, one) == [(one, "implies", other)]


def test_with_a_link_goes_what_it_did(memory: Memory, pair: tuple[str, str]) -> None:
    """A superseded memory is recalled again, and leaves again when that is undone."""
    one, other = pair
    memory.link(one, "supersedes", other)

    memory.undo()
    assert (memory.get(other).status, links(memory, one)) == ("active", [])
    memory.undo()
    assert memory.get(other).status == "superseded"
    assert links(memory, one) == [(one, "supersedes", other)]


def test_a_link_by_others_or_by_a_rule_is_no_change_of_mine(
    memory: Memory, pair: tuple[str, str]
) -> None:
    """Neither of somebody else, nor where one of the two was forgotten since."""
    one, other = pair
    theirs = Link(Node("item", one), Node("item", other), "implies", source="caller")
    memory.store.graph.add_links([theirs], actor="somebody", now=NOW)
    assert memory.undo(one, preview=True).doing == "forget it"

    memory.link(one, "causes", other)
    memory.unlink(one, "causes", other)
    memory.forget(other)
    assert memory.undo(one, preview=True).doing == "forget it"


def test_what_comes_back_after_a_move_is_found(embedder: Embedder) -> None:
    """An import embeds live memories only; one that had ended is embedded when it comes back."""
    text = "The zq{} gate opens towards the sea"
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        ids = [memory.remember(text.format(n)).id for n in range(6)]
        memory.forget(ids[0])
        memory.forget(ids[1])
        exported = list(memory.export())
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as moved:
        moved.import_(exported)
        moved.restore(*ids[:2])
        for n in (0, 1):
            found = moved.recall(text.format(n))
            assert ids[n] in [hit.item.id for hit in found.hits]
        assert moved.stats()["unembedded"] == 0


def test_an_undo_passes_over_a_link_that_new_words_of_another_memory_removed() -> None:
    """The link went with the words it was made from; what is undone is the memory's own change."""
    with Memory.open(":memory:") as memory:
        older = memory.remember("My dentist appointment is on Tuesday")
        newer = memory.remember("My dentist appointment was moved to Thursday")
        assert [link.dst.id for link in memory.store.graph.links_of([newer.id], ("supersedes",))]
        memory.update(older.id, text="The boiler is serviced in March")

        memory.undo(newer.id)

        assert memory.get(newer.id).live_to is not None
        assert not memory.store.graph.links_of([newer.id], ("supersedes",))
