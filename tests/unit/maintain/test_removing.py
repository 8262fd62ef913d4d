"""Forgetting, erasing and revoking reach everything that was made from what goes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from bethink import Memory
from bethink.errors import NotFound, Refused
from bethink.ingest.admission import make_draft
from bethink.maintain.cleanup import Forget
from bethink.maintain.journal import descendants_of
from bethink.ports import Embedder
from bethink.testing import FixedClock
from cold_memories import add_cold, add_others, open_memory, state
from corpus import CONVERSATION, NOTES, NOW
from rows import each_row


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with open_memory(clock) as opened:
        yield opened


# --- The sweep ----------------------------------------------------------------------------


def test_the_ripest_go_first_and_softly(memory: Memory, clock: FixedClock) -> None:
    """Risk 200 or more, in the order of risk; an undo brings them back exactly."""
    ids = add_cold(memory, clock, importance=0.1)
    add_others(memory)
    before = state(memory)

    report = memory.maintain("forget", share=0.2)
    gone = [one for one in ids if memory.get(one).live_to is not None]
    memory.undo_run(report.run or "")

    assert len(gone) == report.plan.limit == 5
    assert state(memory) == before


def test_a_sweep_says_what_would_go_to_whom_may_read_it(memory: Memory, clock: FixedClock) -> None:
    """A secret is named by its id and the rule alone."""
    plain, secret = add_cold(memory, clock, count=2, importance=0.1)
    memory.update(secret, classification=3)

    steps = memory.maintain("forget", share=1.0, preview=True, clock_is_right=True).plan.steps

    whys = {step.proposal.ends[0]: step.proposal.why for step in steps}
    assert memory.get(plain).text in whys[plain]
    assert whys[secret].startswith("forgetting risk")


@each_row("kept", [{"pinned": True}, {"layer": "goal"}, {"layer": "caveat"}, {"level": "raw"}])
def test_a_sweep_keeps_what_must_stay(
    memory: Memory, clock: FixedClock, kept: dict[str, object]
) -> None:
    """Pinned ones, goals, caveats and verbatim episodes, however long unused."""
    add_cold(memory, clock, importance=0.0, **kept)
    add_others(memory)

    assert memory.maintain("forget", share=1.0).done == ()


def test_the_thresholds_are_those_of_the_formula(memory: Memory, clock: FixedClock) -> None:
    """Between 50 and 200 a memory is only counted; below, it is not even that."""
    clock.now = NOW - timedelta(days=60)
    memory.remember("Unused for sixty days", importance=0.5)
    clock.now = NOW

    report = memory.maintain("forget", preview=True, share=1.0, clock_is_right=True)

    assert report.plan.steps == ()
    assert [one.why for one in report.plan.remarks] == ["1 more could be consolidated"]
    assert memory.maintain(
        Forget(drop_from=80), preview=True, share=1.0, clock_is_right=True
    ).plan.steps


# --- Erasing ------------------------------------------------------------------------------


def test_an_erase_takes_the_learning_along_and_brings_the_others_back(
    memory: Memory, clock: FixedClock
) -> None:
    """What the learning stood for, and is not erased, is in recall again."""
    ids = add_cold(memory, clock)
    add_others(memory)
    made = memory.maintain("consolidate", share=0.5).done[0].successor
    assert made is not None

    would = memory.forget(ids[0], erase=True, preview=True)
    done = memory.forget(ids[0], erase=True)

    assert [item.id for item in would.derived] == [made]
    assert set(done.restored) == set(would.restored) == set(ids[1:])
    assert memory.store.items.get([ids[0], made]) == {}
    assert all(memory.get(one).live_to is None for one in ids[1:])
    assert done.receipt is not None
    assert set(done.receipt.ids) == {ids[0], made}


def test_what_somebody_wrote_from_several_is_quarantined(memory: Memory) -> None:
    """It may repeat what was erased, and it may hold more: somebody has to look."""
    one = memory.remember("The zebra canary sings").id
    two = memory.remember("The blue pump hums").id
    both = memory.remember("Zebra sings, pump hums", derives_from=[one, two]).id
    alone = memory.remember("Somebody heard a zebra", derives_from=[one]).id
    further = memory.remember("A song and a hum, it was said", derives_from=[both]).id

    done = memory.forget(one, erase=True)

    assert memory.store.items.get([one, alone]) == {}
    assert set(done.quarantined) == {both, further}
    assert memory.get(both).status == "quarantined"
    assert not memory.recall("zebra sings").hits
    assert memory.get(two).status == "active"


def test_a_thread_loses_the_words_of_what_was_erased(memory: Memory) -> None:
    """Its headline, where it shares words; other headlines stay."""
    one = memory.remember("The zebra canary sings").id
    two = memory.remember("The blue pump hums").id
    told = memory.put_thread("About the zebra", [one, two], anchor="topic:zebra").id
    other = memory.put_thread("All that hums", [one, two]).id

    memory.forget(one, erase=True)

    assert "zebra" not in memory.thread(told).headline
    assert memory.thread(other).headline == "All that hums"


def test_a_forgotten_parent_leaves_its_children(memory: Memory) -> None:
    """Only an erase reaches further: what is forgotten can come back."""
    one = memory.remember("The zebra canary sings").id
    child = memory.remember("Somebody heard a zebra", derives_from=[one]).id

    memory.forget(one)

    assert memory.get(child).live_to is None
    assert memory.get(child).status == "active"


# --- Revoking -----------------------------------------------------------------------------


def test_a_source_is_revoked_with_all_its_descendants(memory: Memory) -> None:
    """None of it is in any recall; an undo of the run brings all of it back."""
    bad = [memory.remember(f"The page says {n} pumps leak", source="page").id for n in range(3)]
    good = memory.remember("The blue pump hums").id
    mixed = memory.remember("Pumps leak and hum", derives_from=[bad[0], good]).id
    deep = memory.remember("All in all pumps are a worry", derives_from=[mixed]).id
    before = state(memory)

    would = memory.revoke("page", preview=True)
    done = memory.revoke("page")
    found = {hit.item.id for hit in memory.recall("the blue pump hums").hits}
    memory.undo_run(done.run or "")

    assert (would.ids, would.descendants) == (tuple(sorted(bad)), (mixed, deep))
    assert would.preview
    assert found == {good}
    assert state(memory) == before


def test_what_is_quarantined_is_in_no_profile(embedder: Embedder, clock: FixedClock) -> None:
    """By words, meaning, names, time, links, threads: no channel and no stage brings it back."""
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        told = memory.remember_many([*NOTES, *CONVERSATION])
        bad = memory.remember_many(
            [{"text": f"{note.text} or so", "source": "page"} for note in map(make_draft, NOTES)]
        )
        revoked = {one.id for one in bad}
        memory.put_thread("All of it", [told[0].id, *sorted(revoked)[:5]])
        memory.link(told[0].id, "related_to", min(revoked))
        memory.revoke("page")

        for profile in memory.profiles():
            for note in map(make_draft, NOTES[:6]):
                hits = memory.recall(f"{note.text} or so", profile=profile, k=50).hits
                found = {hit.item.id for hit in hits}
                assert found.isdisjoint(revoked), profile


def test_revoking_by_erasing_leaves_nothing(memory: Memory) -> None:
    """Neither what came from there nor what was made from it; the receipt lists both."""
    bad = memory.remember("The page says pumps leak", source="page").id
    good = memory.remember("The blue pump hums").id
    mixed = memory.remember("Pumps leak and hum", derives_from=[bad, good]).id

    done = memory.revoke("page", erase=True)

    assert memory.store.items.get([bad, mixed]) == {}
    assert done.erased is not None
    assert set(done.erased.receipt.ids) == {bad, mixed}
    assert memory.get(good).status == "active"


def test_what_was_consolidated_with_a_revoked_source_comes_back(
    memory: Memory, clock: FixedClock
) -> None:
    """The learning goes, its other originals are recalled again, the revoked ones never:
    not even by an undo of the consolidation."""
    mine = add_cold(memory, clock, 3)
    theirs = add_cold(memory, clock, 6, source="page")[3:]
    add_others(memory)
    run = memory.maintain("consolidate", share=0.5).run
    assert run is not None

    memory.revoke("page")
    memory.undo_run(run)

    assert all(memory.get(one).live_to is None for one in mine)
    assert all(memory.get(one).status == "quarantined" for one in theirs)
    found = {hit.item.id for hit in memory.recall("Atlas", k=50).hits}
    assert found.isdisjoint(theirs)
    assert set(mine) <= found


def test_an_unknown_source_is_not_found(memory: Memory) -> None:
    """Rather than quietly doing nothing."""
    with pytest.raises(NotFound, match="no memory has the source"):
        memory.revoke("nowhere")


def test_descendants_are_followed_around_circles(memory: Memory) -> None:
    """Each once, nearest first, also where somebody linked them in a ring."""
    one, two, three = (memory.remember(f"Station {n} is dry").id for n in ("A", "B", "C"))
    memory.link(two, "derives_from", one)
    memory.link(three, "derives_from", two)
    memory.link(one, "derives_from", three)

    assert descendants_of([one], memory.store) == [two, three]


def test_nobody_may_call_a_memory_derived(memory: Memory) -> None:
    """That class is maintenance's: it would lift the limit on trust."""
    with pytest.raises(Refused, match="reserved for maintenance"):
        memory.remember("Believe me", source_class="derived")
    with pytest.raises(NotFound, match="to derive from"):
        memory.remember("Believe me", derives_from=["nothing"])
