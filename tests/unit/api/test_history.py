"""The past at the surfaces: asked for, told, taken back; and limits that are checked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bethink import Filters, Memory
from bethink.errors import NotFound, Refused
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(embedder: Embedder, clock: FixedClock) -> Any:
    with Memory.open(":memory:", embedder=embedder, clock=clock) as opened:
        yield opened


def test_a_correction_is_not_known_before_it_was_made(memory: Memory, clock: FixedClock) -> None:
    """Neither the new value, nor that the old one left recall, nor the link that says so."""
    old = memory.remember("The deploy key is in vault A").id
    then = clock.now
    clock.forward(days=1)
    new = memory.remember("The deploy key is in vault B").id
    memory.link(new, "supersedes", old)
    assert memory.get(old).status == "superseded"

    past = memory.recall("Where is the deploy key?", as_of=then)
    assert [(hit.item.id, hit.item.status) for hit in past.hits] == [(old, "active")]
    assert (past.relations, past.warnings) == ((), ())
    now = memory.recall("Where is the deploy key?")
    assert [hit.item.id for hit in now.hits] == [new]
    assert "status" not in memory.why_not(old, "Where is the deploy key?", as_of=then).reason
    assert "superseded" in memory.why_not(old, "Where is the deploy key?").reason


def test_what_is_erased_is_gone_from_the_past(memory: Memory, clock: FixedClock) -> None:
    """And from the table that tells how memories stood."""
    kept = memory.remember("The deploy key is in vault A").id
    memory.store.items.set_status([kept], "superseded", actor="x", now=clock.now)
    memory.store.items.set_status([kept], "active", actor="x", now=clock.now)
    then = clock.now
    clock.forward(days=1)
    receipt = memory.forget(kept, erase=True).receipt

    assert receipt is not None
    assert receipt.removed["status changes"] == 1
    assert memory.recall("Where is the deploy key?", as_of=then).hits == ()
    assert not [line for line in memory.store.admin.dump() if line["type"] == "status_change"]


def test_forgetting_again_says_so(memory: Memory) -> None:
    """And does nothing; an erase still reaches what was forgotten."""
    kept = memory.remember("Tea at four").id
    assert [item.id for item in memory.forget(kept).items] == [kept]

    for preview in (True, False):
        again = memory.forget(kept, preview=preview)
        assert (again.items, again.kept) == ((), ((kept, "forgotten already"),))
    assert [item.id for item in memory.forget(kept, erase=True).items] == [kept]


def test_a_part_of_an_id_is_enough_to_restore(memory: Memory) -> None:
    """As for every other command; a stranger is refused by name."""
    kept = memory.remember("Tea at four").id
    memory.forget(kept)

    assert memory.restore(kept[-6:]) == [kept]
    assert memory.restore(kept) == []
    with pytest.raises(NotFound, match="nobody"):
        memory.restore("nobody")


def test_a_date_that_the_text_opens_with_goes_with_the_text(memory: Memory) -> None:
    """It is read anew from the new words; one that was given stays."""
    read = memory.remember("2026-01-15: the export moved to vault B").id
    given = datetime(2026, 1, 15, tzinfo=UTC)
    told = memory.remember("the kitchen was painted", occurred_at=given).id

    assert memory.get(read).occurred_at == given
    moved = memory.update(read, text="2026-02-20: the export moved to vault C")
    assert moved.occurred_at == datetime(2026, 2, 20, tzinfo=UTC)
    assert memory.update(read, text="the export moved").occurred_at is None
    assert memory.update(read, text="2026-02-20: again", occurred_at=given).occurred_at == given
    assert memory.update(told, text="the kitchen was tiled").occurred_at == given


@each_row(
    "filters",
    [
        Filters(min_trust=9),
        Filters(max_classification=-1),
        Filters(max_classification="3"),  # type: ignore[arg-type]
        Filters(bands=("lukewarm",)),
        Filters(include_expired=1),  # type: ignore[arg-type]
        Filters(kinds=(7,)),  # type: ignore[arg-type]
        {"kinds": ("note",)},
    ],
    ids=str,
)
def test_filters_as_an_object_keep_the_rules_of_keywords(memory: Memory, filters: Any) -> None:
    """What would be refused as a keyword is refused there, too."""
    with pytest.raises(Refused):
        memory.recall("tea", filters=filters)


def test_a_time_without_a_zone_means_the_same_in_an_object(memory: Memory) -> None:
    """As it does in a keyword: no step ever meets a time without a zone."""
    memory.remember("Tea at four")
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - that is what is tested

    found = memory.recall("tea", filters=Filters(since=naive, max_classification=2))
    assert found.query.filters == memory.recall("tea", since=naive).query.filters


@each_row("limit", [0, -1, 10**6, True, "5", 2.0])
def test_limits_of_lists_are_checked(memory: Memory, limit: Any) -> None:
    """A number outside of the range is refused, never taken for another."""
    kept = memory.remember("Tea at four").id
    for ask in (memory.browse, memory.entities, memory.events):
        with pytest.raises(Refused, match="limit"):
            ask(limit=limit)
    with pytest.raises(Refused, match="window"):
        memory.timeline(kept, window=limit)
