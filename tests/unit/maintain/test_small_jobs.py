"""The jobs that only refresh or report, and what hinders a successor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from bethink import Memory
from bethink.maintain.job import JobContext, Proposal
from bethink.maintain.journal import last_user_write
from bethink.model import Draft
from bethink.ports import Embedder
from bethink.testing import FixedClock
from cold_memories import add_cold, add_others, open_memory
from corpus import NOW
from fallible import Down, overtaken


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@dataclass(frozen=True)
class Stand:
    """A job that puts one text in the place of some memories."""

    ids: tuple[str, ...]
    text: str = "Atlas in short"
    name: str = "stand"
    by_age: bool = False

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        yield Proposal("it stands in", "standing in", ends=self.ids, successor=Draft(self.text))


@dataclass(frozen=True)
class Renew(Stand):
    """A job that says it only makes its own work anew."""

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        for proposal in Stand.plan(self, work):
            yield proposal._replace(renews=True)


# --- Entities and validity ----------------------------------------------------------------


def test_memories_and_entities_get_their_vectors(embedder: Embedder, clock: FixedClock) -> None:
    """Once; a second run finds them fresh."""
    with Memory.open(":memory:", embedder="none", clock=clock) as plain:
        plain.remember("Ana asked Ben about Atlas", entities=["person:Ana", "project:Atlas"])
        memory = Memory(plain.store, embedder=embedder, clock=clock)

        first = memory.maintain("entities")
        second = memory.maintain("entities")

        made = [deed.text for done in first.done for deed in done.proposal.actions]
        assert made[:2] == [
            "compute the missing vectors of memories",
            "compute the missing vectors of entities",
        ]
        assert memory.store.vectors.unembedded(embedder.model, 10) == []
        assert memory.store.vectors.unembedded_entities(embedder.model, 10) == []
        assert second.plan.steps == ()
        assert all(entity.momentum > 0 for entity in memory.entities())


def test_without_a_model_no_vectors_are_missing(clock: FixedClock) -> None:
    """Nothing is said of vectors that nobody could make."""
    with open_memory(clock) as memory:
        memory.remember("Ana asked Ben", entities=["person:Ana"])

        assert memory.maintain("entities").run is None


def test_what_has_run_out_is_only_reported(clock: FixedClock) -> None:
    """Recall leaves it out already; the job names it and changes nothing."""
    with open_memory(clock) as memory:
        past = [
            memory.remember(f"Offer {n} holds until March", valid_to=NOW - timedelta(days=1)).id
            for n in range(7)
        ]
        memory.remember("This one holds for ever")
        before = memory.store.admin.generation()

        report = memory.maintain("expire")

        assert report.run is None
        assert "7 expired and no longer recalled" in report.plan.remarks[0].why
        assert sum(one in report.plan.remarks[0].why for one in past) == 5
        assert memory.store.admin.generation() == before


# --- What hinders a successor -------------------------------------------------------------


def test_a_successor_without_a_vector_hides_nothing_yet(
    embedder: Embedder, clock: FixedClock
) -> None:
    """While the model is down the originals stay; once it is back, the next run goes on."""
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        ids = add_cold(memory, clock)
        down = Memory(memory.store, embedder=Down(), clock=clock)

        waiting = down.maintain(Stand(tuple(ids)), share=1.0)
        live = [memory.get(one).live_to is None for one in ids]
        memory.reindex()
        done = memory.maintain(Stand(tuple(ids)), share=1.0)

        assert "cannot be recalled yet" in waiting.left[0].hindrance
        assert all(live)
        assert len(done.done[0].ended) == 6
        assert len(memory.browse(source="maintain:stand")) == 1


def test_a_successor_of_something_erased_meanwhile_is_erased(clock: FixedClock) -> None:
    """It may repeat what was not to be repeated."""
    with open_memory(clock) as memory:
        ids = add_cold(memory, clock)
        add_others(memory, 2)
        store = overtaken(
            memory.store, lambda: memory.store.items.erase([ids[0]], actor="x", now=clock.now)
        )
        other = Memory(store, clock=clock)

        report = other.maintain(Stand(tuple(ids)), share=1.0)

        assert "erased meanwhile" in report.left[0].hindrance
        assert memory.browse(source="maintain:stand") == []
        assert all(memory.get(one).live_to is None for one in ids[1:])


def test_somebodys_own_memory_does_not_become_a_stand_in(clock: FixedClock) -> None:
    """It already says the same, but would go whenever the stand-in does."""
    with open_memory(clock) as memory:
        ids = add_cold(memory, clock)
        there = memory.remember("Atlas in short").id

        first = memory.maintain(Stand(tuple(ids)), share=1.0)
        again = memory.maintain(Stand(tuple(ids)), share=1.0)

        assert first.left[0].hindrance == f"{there} already says the same"
        assert again.left[0].hindrance == f"{there} already says the same"
        assert memory.store.graph.links_of([there], ("derives_from",), incoming=False) == []
        assert all(memory.get(one).live_to is None for one in ids)


def test_nobody_passes_for_a_jobs_own_work(clock: FixedClock) -> None:
    """Metadata that name a job do not lift the protection of a memory."""
    with open_memory(clock) as memory:
        one = memory.remember("Atlas must stay", layer="caveat", metadata={"job": "stand"}).id

        report = memory.maintain(Renew((one,)), share=1.0)

        assert "not made by" in report.left[0].hindrance
        assert memory.get(one).live_to is None


def test_nothing_is_ended_in_favour_of_itself(clock: FixedClock) -> None:
    """Where a successor says what one of its originals says, all stay."""
    with open_memory(clock) as memory:
        ids = add_cold(memory, clock)
        text = memory.get(ids[0]).text

        report = memory.maintain(Stand(tuple(ids), text), share=1.0)

        assert all(memory.get(one).live_to is None for one in ids)
        assert report.done == ()


def test_the_last_write_is_somebodys_not_maintenances(clock: FixedClock) -> None:
    """However many lines maintenance has written since."""
    with open_memory(clock) as memory:
        assert last_user_write(memory.store) is None
        memory.remember("Something of today")
        clock.forward(days=1)
        for number in range(100):
            memory.store.admin.log(
                "test", item=None, actor="maintain", detail=str(number), now=clock.now
            )

        assert last_user_write(memory.store) == NOW
