"""Corrections of common kinds take the place of what they correct, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.model import Remembered
from bethink.testing import FixedClock
from corpus import NOW
from fact_pairs import FLAGGED, SUPERSEDED, TRAPS, pairs
from rows import each_row

LIKENESS = ("near", "related")
# One of each kind of statement that corrects something.
SOME = pairs(SUPERSEDED)[::9]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none", settings=Settings(), clock=clock) as opened:
        yield opened


def told(
    memory: Memory, clock: FixedClock, first: str, second: str, **about: object
) -> tuple[Remembered, Remembered]:
    """Both remembered, the second a minute later and with what is said about it."""
    old = memory.remember(first)
    clock.forward(minutes=1)
    return old, memory.remember(second, **about)


def met(answer: Remembered) -> list[tuple[str, str]]:
    return [(one.kind, one.id) for one in answer.collisions if one.kind not in LIKENESS]


def statuses(memory: Memory, *answers: Remembered) -> list[str]:
    return [memory.get(answer.id).status for answer in answers]


@each_row(("first", "second"), pairs(SUPERSEDED))
def test_a_correction_supersedes_and_can_be_taken_back(memory, clock, first, second):
    """The old one leaves recall; the command that is offered brings it back as it was."""
    old = memory.remember(first)
    before = memory.get(old.id)
    clock.forward(minutes=1)
    new = memory.remember(second)

    assert met(new) == [("supersedes", old.id)]
    assert statuses(memory, old, new) == ["superseded", "active"]
    remedy = next(one.resolve for one in new.collisions if one.kind == "supersedes")
    assert remedy == f"bethink undo {old.id}"
    memory.undo(old.id)
    assert memory.get(old.id) == before


@each_row(("first", "second"), pairs(SUPERSEDED))
def test_a_correction_stands_whichever_is_stored_first(memory, clock, first, second):
    """An older statement that comes late is stored as superseded."""
    new = memory.remember(second, occurred_at=NOW)
    clock.forward(minutes=1)
    old = memory.remember(first, occurred_at=NOW - timedelta(days=3))

    assert met(old) == [("superseded", new.id)]
    assert statuses(memory, old, new) == ["superseded", "active"]


@each_row(("first", "second"), pairs(FLAGGED))
def test_what_is_only_likely_is_flagged_on_both_sides(memory, clock, first, second):
    """Both stay, each names the other, and the command that settles it is offered."""
    old, new = told(memory, clock, first, second)

    assert met(new) == [("contradicts", old.id)]
    assert statuses(memory, old, new) == ["active", "active"]
    remedy = next(one.resolve for one in new.collisions if one.kind == "contradicts")
    assert remedy == f"bethink forget {old.id}"
    relations = {
        (one.item, one.type, one.other) for one in memory.recall(first, min_relevance=0).relations
    }
    assert relations >= {(old.id, "contradicts", new.id), (new.id, "contradicts", old.id)}


@each_row(("first", "second"), pairs(TRAPS))
def test_what_may_both_be_so_is_left_alone(memory, clock, first, second):
    """Whichever of the two is told first."""
    for one, other in ((first, second), (second, first)):
        old, new = told(memory, clock, one, other)

        assert met(new) == []
        assert statuses(memory, old, new) == ["active", "active"]
        memory.forget(old.id, new.id, erase=True)


@each_row(("first", "second"), SOME)
@each_row(
    "about",
    [{"source": "a page", "source_class": "web"}, {"classification": 3}, {"confidence": 0.3}],
    ids=["hearsay", "secret", "doubtful"],
)
def test_what_may_not_correct_is_flagged(memory, clock, first, second, about):
    """The word of somebody less trusted hides nothing, and what few may see does not either."""
    old, new = told(memory, clock, first, second, **about)

    assert [kind for kind, _ in met(new)] in (["contradicts"], [])
    assert statuses(memory, old, new) == ["active", "active"]


@each_row(("first", "second"), SOME)
@each_row(
    "about",
    [
        {"level": "raw", "session": "talk"},
        {"valid_from": NOW + timedelta(days=90)},
        {"valid_to": NOW + timedelta(days=3)},
        {"kind": "question"},
        {"kind": "goal"},
        {"layer": "caveat"},
    ],
    ids=["a turn", "later", "for a while", "question", "goal", "caveat"],
)
def test_what_states_no_fact_of_today_hides_nothing(memory, clock, first, second, about):
    """A turn is kept as it was said, and a plan is no fact."""
    old, new = told(memory, clock, first, second, **about)

    assert met(new) == []
    assert statuses(memory, old, new) == ["active", "active"]


@each_row(("first", "second"), SOME)
def test_other_topics_and_projects_are_other_things(memory, clock, first, second):
    """Their names are the same, not they."""
    for one, other in (({"topic": "a"}, {"topic": "b"}),
                       ({"entities": ("project:a",)}, {"entities": ("project:b",)})):  # fmt: skip
        old = memory.remember(first, **one)
        clock.forward(minutes=1)
        new = memory.remember(second, **other)

        assert statuses(memory, old, new) == ["active", "active"]
        memory.forget(old.id, new.id, erase=True)


@each_row(("first", "second"), SOME)
def test_a_later_session_corrects_an_earlier_one(memory, clock, first, second):
    """That is when corrections are made."""
    old = memory.remember(first, session="monday")
    clock.forward(days=1)
    new = memory.remember(second, session="tuesday")

    assert met(new) == [("supersedes", old.id)]


def test_a_correction_is_one_to_the_last_of_a_chain(memory, clock):
    """Each statement replaces the one before it, in whatever words."""
    chain = []
    for text in (
        "We use Jenkins for CI",
        "We now use GitHub Actions for CI",
        "We switched from GitHub Actions to Buildkite for CI",
        "We now use Dagger for CI",
    ):
        chain.append(memory.remember(text))
        clock.forward(minutes=1)

    assert statuses(memory, *chain) == ["superseded", "superseded", "superseded", "active"]


def test_a_deadline_is_a_fact_though_it_belongs_to_a_task(memory):
    """Other tasks hold no slot."""
    dated = memory.get(memory.remember("The project deadline is March 15").id)
    task = memory.get(memory.remember("We need to move the port to 5433").id)

    assert (dated.kind, dated.subject, dated.attribute) == ("task", "project deadline", "time")
    assert task.subject is None


def test_a_thousand_doubts_about_one_thing_are_told_in_part(memory):
    """A memory names eight others and is named by eight: a batch of one slot takes no longer."""
    names = [f"{a}{b}{c}" for a in "BCDFGHKLMN" for b in "aeiou" for c in "bcdfghklmn"]

    answers = memory.remember_many([f"We use {name} for tests" for name in names])

    assert max(len(met(answer)) for answer in answers) == 16
    assert {memory.get(answer.id).status for answer in answers} == {"active"}
