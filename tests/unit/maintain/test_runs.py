"""A run shows what it will do, does exactly that, within bounds, and can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import apsw
import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import ModelError, NotFound, Refused
from bethink.maintain.consolidate import Consolidate
from bethink.maintain.job import JobContext, Proposal
from bethink.model import Draft
from bethink.ports import Prompt
from bethink.testing import FixedClock, ScriptedModel
from cold_memories import add_cold, add_others, open_memory, said, state
from corpus import NOW
from rows import each_row


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with open_memory(clock) as opened:
        yield opened


def test_the_preview_is_what_happens(memory: Memory, clock: FixedClock) -> None:
    """The same proposals, in the same order, and nothing changes before."""
    add_cold(memory, clock)
    add_others(memory)
    before = state(memory)

    shown = memory.maintain("consolidate", preview=True, share=0.5).plan
    untouched = state(memory)
    done = memory.maintain("consolidate", share=0.5, token=shown.token)

    assert untouched == before
    assert [one.proposal for one in done.done] == [step.proposal for step in shown.steps]
    assert len(done.done) == 1


def test_a_plan_that_no_longer_holds_is_not_carried_out(memory: Memory, clock: FixedClock) -> None:
    """Who names a token gets what was shown or nothing."""
    ids = add_cold(memory, clock)
    add_others(memory)
    shown = memory.maintain("consolidate", preview=True, share=0.5).plan
    memory.update(ids[0], text="Atlas reads nothing any more")

    with pytest.raises(Refused, match="out of date"):
        memory.maintain("consolidate", share=0.5, token=shown.token)


def test_undo_returns_the_exact_originals(memory: Memory, clock: FixedClock) -> None:
    """Text, facts, links and standing as before; what the run made is gone."""
    add_cold(memory, clock)
    add_others(memory)
    before = state(memory)
    run = memory.maintain("consolidate", share=0.5).run
    assert run is not None
    during = state(memory)

    undone = memory.undo_run(run)

    assert len(during) == len(before) - 5
    assert state(memory) == before
    assert len(undone.restored) == 6
    assert len(undone.ended) == 1
    with pytest.raises(Refused, match="already undone"):
        memory.undo_run(run)


def test_what_was_undone_is_not_done_again(memory: Memory, clock: FixedClock) -> None:
    """The undoing is somebody's word; another run respects it and says so."""
    add_cold(memory, clock)
    add_others(memory)
    run = memory.maintain("consolidate", share=0.5).run
    assert run is not None
    memory.undo_run(run)

    again = memory.maintain("consolidate", share=0.5)

    assert again.run is None
    assert [left.hindrance for left in again.left] == ["it was done before and then undone"]


def test_an_unknown_run_is_not_found(memory: Memory) -> None:
    """And the message says where runs are listed."""
    with pytest.raises(NotFound, match="no run"):
        memory.undo_run("run-nothing")


def test_at_most_a_share_leaves(memory: Memory, clock: FixedClock) -> None:
    """Two per cent of a hundred is two, however much is ripe."""
    ids = add_cold(memory, clock, 40)
    add_others(memory, 60)

    report = memory.maintain("consolidate", share=0.02)

    gone = [one for one in ids if memory.get(one).live_to is not None]
    assert report.plan.limit == 2
    assert len(gone) == 2


@each_row("kept", [{"pinned": True}, {"layer": "goal"}, {"layer": "caveat"}, {"level": "raw"}])
def test_some_memories_never_leave(
    memory: Memory, clock: FixedClock, kept: dict[str, object]
) -> None:
    """Pinned ones, goals, caveats and verbatim episodes, whatever a job proposes."""
    one = memory.remember("Atlas must never lose a reading", **kept).id
    add_others(memory)

    report = memory.maintain(_Insistent((one,)), share=1.0)

    assert report.done == ()
    assert memory.get(one).live_to is None
    assert "is exempt" in report.left[0].hindrance


def test_what_changes_under_way_stays(memory: Memory, clock: FixedClock) -> None:
    """A plan carried out later leaves alone what somebody has touched since."""
    ids = add_cold(memory, clock)
    add_others(memory)
    plan = memory.maintain("consolidate", preview=True, share=0.5).plan
    memory.update(ids[2], pinned=True)
    before = state(memory)

    report = memory.carry_out(plan)

    assert report.done == ()
    assert "changed meanwhile" in report.left[0].hindrance
    assert state(memory) == before


def test_nothing_is_hidden_by_what_cannot_be_stored(memory: Memory, clock: FixedClock) -> None:
    """A successor that is refused leaves its originals in recall."""
    ids = add_cold(memory, clock)

    report = memory.maintain(_Insistent(tuple(ids), Draft("   ")), share=1.0)

    assert report.done == ()
    assert "refused" in report.left[0].hindrance
    assert all(memory.get(one).live_to is None for one in ids)


def test_the_successor_hands_down_the_least_trust(memory: Memory, clock: FixedClock) -> None:
    """As trusted as the least trusted of its parents, as secret as the most secret."""
    sure = memory.remember("Atlas is ours", source_class="owner", trust=3, classification=0).id
    web = memory.remember("Atlas is theirs", source_class="web", classification=2).id

    report = memory.maintain(_Insistent((sure, web), Draft("Atlas is somebody's")), share=1.0)

    made = memory.get(report.done[0].successor or "")
    assert (made.trust, made.classification) == (0, 2)
    assert made.source_class == "derived"


def test_the_journal_holds_no_word_of_a_memory(memory: Memory, clock: FixedClock) -> None:
    """Ids and rules are written down, names and texts are not."""
    add_cold(memory, clock)
    add_others(memory)

    memory.maintain("consolidate", share=0.5)

    told = " ".join(event.detail for event in memory.events(limit=1000)).casefold()
    assert "run-" in told
    assert "atlas" not in told


def test_a_clock_that_jumped_ends_nothing(memory: Memory, clock: FixedClock) -> None:
    """Until somebody writes at the new time, or says that it is right."""
    add_cold(memory, clock)
    add_others(memory)
    clock.forward(days=3650)

    wary = memory.maintain("consolidate", share=0.5)
    due = memory.maintain_due()
    sure = memory.maintain("consolidate", share=0.5, clock_is_right=True)

    assert wary.run is None
    assert "may have jumped" in wary.left[0].hindrance
    assert due is None or all(one.job != "consolidate" for one in due.done)
    assert len(sure.done) == 1


def test_due_work_is_done_once_a_day_and_in_small_parts(memory: Memory, clock: FixedClock) -> None:
    """One job at a call; what has nothing to do is not planned again before a write."""
    add_cold(memory, clock, 60)
    add_others(memory, 40)

    reports = [memory.maintain_due() for _ in range(6)]
    clock.forward(hours=25)
    memory.remember("The clock is right")
    later = memory.maintain_due()

    jobs = [report.done[0].job for report in reports if report is not None]
    assert jobs == list(dict.fromkeys(jobs))
    assert reports[-1] is None
    assert later is not None


def test_an_undone_run_leaves_no_link_to_what_it_made(memory: Memory, clock: FixedClock) -> None:
    """A memory lists no link to one that is gone; what is gone still tells its origin."""
    ids = add_cold(memory, clock)
    add_others(memory)
    report = memory.maintain("consolidate", share=0.5)
    made = report.done[0].successor
    assert made is not None
    assert report.run is not None

    memory.undo_run(report.run)

    assert all(memory.links(one) == [] for one in ids)
    assert {link.dst.id for link in memory.links(made)} == set(ids)


def test_runs_are_listed_newest_first(memory: Memory, clock: FixedClock) -> None:
    """With the jobs that took part."""
    add_cold(memory, clock)
    add_others(memory)
    first = memory.maintain("consolidate", share=0.5).run
    clock.forward(seconds=1)
    memory.remember("FW-12: the gate broke in the storm")
    memory.remember("FW-12 waits for a crane")
    second = memory.maintain("threads").run

    listed = memory.maintenance()

    assert [begun.run for begun in listed] == [second, first]
    assert listed[1].jobs == {"consolidate": 1}


def test_what_a_run_made_tells_where_it_comes_from(memory: Memory, clock: FixedClock) -> None:
    """Its lineage leads to every original, and it says who made it."""
    ids = add_cold(memory, clock)
    add_others(memory)
    report = memory.maintain("consolidate", share=0.5)
    made = memory.get(report.done[0].successor or "")

    links = memory.store.graph.links_of([made.id], ("derives_from",), incoming=False)

    assert {link.dst.id for link in links} == set(ids)
    assert made.metadata["made_by"] == "rules"
    assert made.metadata["run"] == report.run
    assert made.protected
    assert said(made)


def test_share_and_jobs_are_checked(memory: Memory) -> None:
    """By name, with what is allowed."""
    with pytest.raises(Refused, match="share"):
        memory.maintain(share=0.0)
    with pytest.raises(NotFound, match="no job"):
        memory.maintain("tidy up")
    assert isinstance(Consolidate(), Consolidate)


@dataclass(frozen=True)
class _Insistent:
    """A job that wants some memories gone, whatever they are."""

    ids: tuple[str, ...]
    successor: Draft | None = None
    name: str = "insistent"
    by_age: bool = False

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        yield Proposal("it insists", "insisting", ends=self.ids, successor=self.successor)


def test_the_time_between_runs_does_not_matter(memory: Memory, clock: FixedClock) -> None:
    """A second run over what is unchanged proposes nothing."""
    add_cold(memory, clock)
    add_others(memory)
    memory.maintain("consolidate", "duplicates", share=0.5)
    clock.now += timedelta(minutes=1)

    again = memory.maintain("consolidate", "duplicates", share=0.5)

    assert (again.run, again.plan.steps) == (None, ())


def test_a_model_that_fails_stops_nothing_else(clock: FixedClock, tmp_path: Path) -> None:
    """What it should have read waits for the next run; the other jobs are done, by rules."""

    def fail(_: Prompt) -> NoReturn:
        raise ModelError("it cannot be reached")

    settings = Settings(embedder="none", notes_dir=tmp_path)
    model = ScriptedModel(fail)
    with Memory.open(":memory:", settings=settings, llm=model, clock=clock) as memory:
        memory.remember("FW-12: the gate broke in the storm")
        memory.remember("FW-12 waits for a crane")
        clock.forward(hours=23)
        memory.remember("Something of the next day")

        report = memory.maintain()
        again = memory.maintain("extract", preview=True).plan

    assert "a model failed: it cannot be reached" in {one.hindrance for one in report.left}
    assert {"threads", "notes"} <= {one.job for one in report.done}
    assert again.steps


def journal_below(memory: Memory) -> str:
    """All that the journal tells one who may see up to 1."""
    return repr(memory.below(1).store.admin.changes(item=None, actor=None, limit=1_000))


def test_a_run_never_names_a_secret_that_was_erased(memory: Memory, clock: FixedClock) -> None:
    """Lines of a run carry the classification of what they name, which outlives the memory."""
    secret = add_cold(memory, clock, classification=3)
    add_others(memory)
    made = memory.maintain("consolidate", share=0.5).done[0].successor
    assert made is not None

    memory.forget(made, erase=True)

    told = journal_below(memory)
    assert memory.get(secret[0]) is not None
    assert not [item for item in (*secret, made) if item in told]
    for item in secret:
        memory.forget(item, erase=True)
    assert not [item for item in (*secret, made) if item in journal_below(memory)]


def test_a_run_never_counts_secrets_below_a_ceiling(memory: Memory) -> None:
    """A line that names no memory is for those who see all that the run saw."""
    for number in range(4):
        level = 3 if number > 1 else 1
        fields = {"topic": "harbour", "classification": level}
        memory.remember(f"Step {number} of the harbour crane repair on dock {number}", **fields)
    assert memory.maintain("threads").done
    lines = repr(memory.events(limit=1_000))

    assert "4 memories of one thread" in lines
    assert "of one thread" not in journal_below(memory)
    low = memory.below(1)
    memory.remember("Step 5 of the harbour crane repair on dock 5", topic="harbour")
    assert low.maintain("threads").done
    assert "3 memories of one thread" in journal_below(memory)


def test_lines_of_earlier_versions_never_name_an_erased_secret(memory: Memory) -> None:
    """Where a line does not say its classification, what it names decides."""
    ids = [memory.remember(f"Old plan {n}", classification=n).id for n in (1, 3)]
    log = memory.store.admin.log
    for number, item in enumerate(ids):
        detail = f'{{"job":"consolidate","ends":["{item}"]}}'
        log("maintained", item=f"run-{number}", actor="maintain", detail=detail, now=NOW)
    log("maintained", item="run-3", actor="maintain", detail='{"deeds":7}', now=NOW)

    for item in ids:
        memory.forget(item, erase=True)

    told = journal_below(memory)
    assert ids[0] in told
    assert ids[1] not in told
    assert "deeds" not in told


def test_erased_memories_are_looked_up_once_for_all_lines(memory: Memory) -> None:
    """A reader below a ceiling pays for lines and erased memories, not for each pair of them."""
    ids = [memory.remember(f"Old plan {n} of the yard").id for n in range(60)]
    for number in range(200):
        detail = '{"job":"consolidate","ends":["another"]}'
        memory.store.admin.log(
            "maintained", item=f"run-{number}", actor="maintain", detail=detail, now=NOW
        )
    low = memory.below(1)

    def steps() -> int:
        """How much SQLite does to count the lines."""
        done = list[int]()
        with low.store._connections.read_transaction() as db:

            def note(told: Any) -> None:
                done.append(told["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

            db.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
            db.execute("SELECT count(*) FROM event").fetchall()
            db.trace_v2(0, None)
        return sum(done)

    before = steps()
    memory.forget(*ids, erase=True)

    assert steps() < before + 60 * 200


def test_the_share_below_a_ceiling_is_of_what_is_visible(memory: Memory) -> None:
    """How many secrets there are does not show in how much a run may do."""
    add_others(memory)
    before = memory.below(1).maintain(preview=True, share=0.5).plan
    for number in range(60):
        memory.remember(f"Vault {number} holds the plan {number * 7}", classification=3)

    assert memory.below(1).maintain(preview=True, share=0.5).plan[:2] == before[:2] == (20, 10)
