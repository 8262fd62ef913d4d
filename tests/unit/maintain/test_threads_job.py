"""Threads are found by what memories hang on, by links and by time; the same ones every time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.maintain.journal import GENERATED_PREFIX
from bethink.maintain.threads import (
    CLOSED_AFTER,
    DORMANT_AFTER,
    FindThreads,
    StoredThread,
    ThreadMemory,
    event_kind,
    member_role,
    stated_event,
    store_thread,
    thread_events,
    thread_kind,
    thread_lifecycle,
    thread_state,
)
from bethink.model import THREAD_EVENT_KINDS, Item, Link, Member, Node, Thread, ThreadEvent
from bethink.model.item import ThreadEventKind
from bethink.testing import FixedClock
from cold_memories import LONG_AGO, open_memory
from corpus import NOW
from rows import each_row

CASE = (
    (0, "FW-12: the gate broke in the storm"),
    (1, "FW-12: why did nobody hear the alarm?"),
    (2, "FW-12 is blocked by a missing crane"),
    (5, "FW-12: the root cause was a rusty bolt"),
    (6, "FW-12 is fixed: the bolt is made of brass"),
)
HEADLINE = "FW-12: the gate broke in the storm"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with open_memory(clock) as opened:
        yield opened


def tell(memory: Memory, *told: tuple[float, str], **about: Any) -> list[str]:
    """Memories of so many days after the first; the last of them is today's."""
    last = max(day for day, _ in told)
    stored = memory.remember_many(
        [
            {"text": text, "occurred_at": NOW - timedelta(days=last - day), **about}
            for day, text in told
        ]
    )
    return [one.id for one in stored]


def found(memory: Memory) -> dict[str, Thread]:
    """The threads that a run finds, by headline."""
    memory.maintain("threads")
    return {thread.headline: thread for thread in memory.threads(limit=1000)}


def test_a_ticket_is_followed_from_trigger_to_outcome(memory: Memory) -> None:
    """In the order of time, with what each memory tells of, though facts superseded facts."""
    ids = tell(memory, *CASE)

    thread = found(memory)[HEADLINE]

    assert thread.anchor == "ticket:fw-12"
    assert [event.item for event in thread.events] == ids
    assert [event.kind for event in thread.events] == [
        "setback", "question_opened", "blocker_added", "question_closed",
        "resolution_declared",
    ]  # fmt: skip
    assert (thread.kind, thread.state, thread.lifecycle) == ("case", "resolved", "active")
    roles = {member.item: member.role for member in thread.members}
    assert [roles[one] for one in ids] == ["trigger", "core", "core", "outcome", "outcome"]


def test_a_topic_is_a_thread_and_one_memory_is_none(memory: Memory) -> None:
    """Two make one; the headline is the topic."""
    tell(memory, (0, "The weir was measured"), topic="weir")
    tell(memory, (0, "The lock was painted"), (1, "The lock was closed"), topic="lock")

    assert found(memory).keys() == {"lock"}


def test_a_causal_link_joins_what_shares_no_word(memory: Memory) -> None:
    """From the strength a match needs."""
    first, second = tell(memory, (0, "Rain fell for a week"), (3, "Cellars were pumped out"))
    assert found(memory) == {}

    memory.link(first, "causes", second, weight=0.8)

    (thread,) = found(memory).values()
    assert {member.item for member in thread.members} == {first, second}
    assert thread.anchor is None
    assert thread.headline == "Rain fell for a week"


@pytest.mark.parametrize(("days", "joined"), [(0.5, True), (30.0, False)])
def test_the_same_entity_joins_what_is_near_in_time(
    memory: Memory, days: float, joined: bool
) -> None:
    """A day later it goes on, a month later it is something else."""
    tell(
        memory, (0, "Somebody saw a heron there"), (days, "Paint was bought"),
        entities=["project:Boathouse"],
    )  # fmt: skip

    assert len(found(memory)) == joined


def test_what_nearly_all_speak_of_joins_nothing(memory: Memory) -> None:
    """A hub tells nothing about what belongs together."""
    words = (
        "amber",
        "birch",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "grove",
        "heath",
        "islet",
        "kelp",
    )
    tell(
        memory, *((n / 10, f"Somebody mentioned {word} there") for n, word in enumerate(words)),
        entities=["project:Everything"],
    )  # fmt: skip

    assert found(memory) == {}


def test_between_two_that_fit_alike_it_joins_neither(memory: Memory, clock: FixedClock) -> None:
    """Unless the best is better by the margin."""
    tell(memory, (0, "Alder was cut"), (0.1, "Alder was sold"), entities=["project:Alder"])
    tell(memory, (0, "Birch was cut"), (0.1, "Birch was sold"), entities=["project:Birch"])
    before = {key: len(one.members) for key, one in found(memory).items()}
    clock.forward(hours=1)
    memory.remember(
        "Planks of both arrived", entities=["project:Alder", "project:Birch"], occurred_at=clock.now
    )

    assert len(before) == 2
    assert {key: len(one.members) for key, one in found(memory).items()} == before


def test_a_memory_that_is_unchanged_proposes_nothing(memory: Memory) -> None:
    """Also after one of its memories was forgotten, and the run after that."""
    ids = tell(memory, *CASE)
    found(memory)
    assert memory.maintain("threads", preview=True).plan.steps == ()
    memory.forget(ids[0])
    found(memory)

    assert memory.maintain("threads", preview=True).plan.steps == ()


def test_time_alone_lets_a_thread_fall_asleep(memory: Memory, clock: FixedClock) -> None:
    """Active, dormant after two weeks, closed after six and a half."""
    tell(memory, (0, "The lock was painted"), (1, "The lock was closed"), topic="lock")
    seen = []
    for days in (0, 14, 31):
        clock.forward(days=days)
        memory.remember(f"Somebody wrote something else {days}")
        seen.append(found(memory)["lock"].lifecycle)

    assert seen == ["active", "dormant", "closed"]


def test_corrections_and_gaps_show_by_themselves(memory: Memory) -> None:
    """What is forgotten leaves the thread; with one memory left, it ends."""
    ids = tell(memory, *CASE)
    found(memory)
    memory.forget(*ids[2:])
    shorter = found(memory)[HEADLINE]
    memory.forget(ids[0])

    assert [event.item for event in shorter.events] == ids[:2]
    assert shorter.state != "resolved"
    assert found(memory) == {}
    assert memory.get(ids[1]).live_to is None


def test_an_erased_memory_is_in_no_thread(memory: Memory) -> None:
    """Neither as a member nor in a headline, before and after the next run."""
    ids = tell(
        memory, (0, "A zqx heron was seen"), (0.2, "It came back"), (0.3, "It left"),
        entities=["project:Boathouse"],
    )  # fmt: skip
    assert list(found(memory)) == ["A zqx heron was seen"]

    memory.forget(ids[0], erase=True)
    at_once = memory.threads()
    after = found(memory)

    assert all("zqx" not in thread.headline for thread in at_once)
    assert [member.item for thread in at_once for member in thread.members] == sorted(ids[1:])
    assert list(after) == ["It came back"]


def test_a_thread_somebody_put_stays_theirs(memory: Memory) -> None:
    """Whatever the job finds or does not find."""
    ids = tell(memory, (0, "The weir was measured"), (1, "A heron was seen"))
    mine = memory.put_thread("Birds and water", ids)

    memory.maintain("threads")

    assert memory.thread(mine.id).headline == "Birds and water"


def test_a_part_of_the_memory_is_no_reason_to_drop_the_rest(memory: Memory) -> None:
    """A run over a filter says so and leaves every thread alone."""
    tell(memory, *CASE)
    found(memory)

    report = memory.maintain("threads", where={"topics": ("weir",)})

    assert report.run is None
    assert "all memories" in report.plan.remarks[0].why
    assert len(memory.threads()) == 1


def test_a_headline_tells_nothing_confidential(memory: Memory) -> None:
    """Whoever lists threads may not be one who may read their memories."""
    about = {"entities": ["project:Boathouse"], "classification": 2}
    tell(memory, (0, "A zqx heron was seen"), (0.2, "It came back"), **about)

    (thread,) = found(memory).values()

    assert thread.headline == "memories since 2026-03-02"


def test_a_ticket_is_told_in_words_that_its_reader_may_see(tmp_path: Path) -> None:
    """Its headline is in the words of the first memory that its reader may read."""
    told = ("FW-12: the zqx gate broke", "FW-12 waits for a crane", "FW-12 waits for rain")
    for ceiling, headline in ((1, told[0]), (0, told[1])):
        settings = Settings(embedder="none", max_classification=ceiling)
        with Memory.open(path=tmp_path / "a.db", settings=settings) as memory:
            if ceiling:
                memory.remember(told[0], classification=1)
                memory.remember(told[1], classification=0)
                memory.remember(told[2], classification=0)
                memory.maintain("threads")

            (thread,) = memory.threads()

        assert thread.headline == headline
        assert thread.state == "blocked"


def test_what_maintenance_made_joins_a_thread_by_its_name_alone(
    memory: Memory, clock: FixedClock
) -> None:
    """A learning tells of many days: it begins no thread, and is no neighbour of anything."""
    clock.now = LONG_AGO
    for name, topic in (("Birch", None), ("Cedar", "locks")):
        about = {"layer": "context", "entities": [f"project:{name}"], "importance": 0.1}
        said = [f"Crew {n} of {name.lower()} saw {n * 7} boats" for n in range(4)]
        memory.remember_many([{"text": text, "topic": topic, **about} for text in said])
    clock.now = NOW
    memory.maintain("consolidate", share=1.0, clock_is_right=True)
    beside = LONG_AGO + timedelta(days=1)
    memory.remember("A new boat came", entities=["project:Birch"], occurred_at=beside)
    memory.remember("The gate was painted", topic="locks")

    (thread,) = found(memory).values()

    assert thread.headline == "locks"
    assert {memory.get(one.item).source_class for one in thread.members} == {"user", "derived"}


def test_a_headline_is_never_outdated(memory: Memory) -> None:
    """The first memory that still holds gives it; what is outdated stays in the thread, marked."""
    old, new = tell(memory, (0, "FW-12 opens at five"), (1, "FW-12 opens at seven"))
    assert found(memory).keys() == {"FW-12 opens at five"}

    ends = Node("item", new), Node("item", old)
    memory.store.graph.add_links([Link(*ends, "supersedes")], actor="user", now=NOW)

    (thread,) = found(memory).values()
    assert thread.headline == "FW-12 opens at seven"
    assert [event.item for event in thread.events] == [old, new]


def test_what_few_may_see_outdates_no_headline_of_all(memory: Memory) -> None:
    """Else its readers could tell that there is something."""
    old, _ = tell(memory, (0, "FW-12 opens at five"), (1, "FW-12 has a new gate"))
    (new,) = tell(memory, (2, "FW-12 opens at seven"), classification=2)

    ends = Node("item", new), Node("item", old)
    memory.store.graph.add_links([Link(*ends, "supersedes")], actor="user", now=NOW)

    assert found(memory).keys() == {"FW-12 opens at five"}
    (thread,) = memory.store.below(1).activity.threads(limit=9)
    assert thread.headline == "FW-12 opens at five"


def test_undoing_a_run_takes_its_threads_back(memory: Memory) -> None:
    """They are not found again until another memory joins them."""
    tell(memory, *CASE)
    run = memory.maintain("threads").run
    assert run is not None
    (thread,) = memory.threads()

    undone = memory.undo_run(run)

    assert undone.threads == (thread.id,)
    assert memory.threads() == []
    assert [begun.undone for begun in memory.maintenance()] == [True]
    with pytest.raises(Refused, match="already undone"):
        memory.undo_run(run)
    assert memory.maintain("threads").run is None
    tell(memory, (0, "FW-12 broke again"))
    assert len(found(memory)[HEADLINE].members) == len(CASE) + 1


def test_undoing_a_run_takes_out_only_what_it_added_to_a_thread(memory: Memory) -> None:
    """The thread is again as it was before, for every reader."""
    tell(memory, *CASE[:2], classification=0)
    tell(memory, CASE[2], classification=2)
    before = found(memory)
    tell(memory, CASE[3], classification=0)
    tell(memory, CASE[4], classification=2)
    run = memory.maintain("threads").run
    assert run is not None
    low = memory.store.below(1).activity
    assert [len(one.members) for one in (*memory.threads(), *low.threads())] == [5, 3]

    memory.undo_run(run)

    assert {thread.headline: thread for thread in memory.threads()} == before
    assert [len(one.members) for one in low.threads()] == [2]
    assert [begun.undone for begun in memory.maintenance()] == [True, False]
    assert memory.maintain("threads").run is None


def test_one_erased_meanwhile_does_not_stop_a_run(memory: Memory, clock: FixedClock) -> None:
    """Its thread waits for the next run; the others are stored."""
    ids = tell(memory, *CASE)
    tell(memory, (0, "The lock was painted"), (1, "The lock was closed"), topic="lock")
    plan = memory.maintain("threads", preview=True).plan
    memory.forget(ids[0], erase=True)

    memory.carry_out(plan)

    assert [thread.headline for thread in memory.threads()] == ["lock"]
    assert found(memory).keys() == {"FW-12: why did nobody hear the alarm?", "lock"}


def test_the_order_of_storing_within_a_day_changes_nothing(clock: FixedClock) -> None:
    """The same memories make the same threads: headlines, members, events, states."""
    told: list[dict[str, Any]] = [
        {"text": f"{name} {what}", "entities": [f"project:{name}"], "occurred_at": NOW}
        for name in ("Alder", "Birch", "Cedar")
        for what in ("was cut", "was sold", "broke in the storm")
    ]
    seen = []
    for seed in (1, 2, 3):
        random.Random(seed).shuffle(told)
        with open_memory(clock) as memory:
            memory.remember_many(told)
            texts = {item.id: item.text for item in memory.browse(limit=100)}
            seen.append(
                {
                    (name, thread.state, thread.kind): [
                        (event.kind, texts[event.item or ""]) for event in thread.events
                    ]
                    for name, thread in found(memory).items()
                }
            )

    assert seen[0] == seen[1] == seen[2]
    assert seen[0]


# -- tables of rules -------------------------------------------------------


def item(text: str, kind: str = "note", when: datetime = NOW) -> Item:
    return Item(id=text, text=text, stored_at=when, source="user", kind=kind)


@each_row(
    ("text", "kind", "tells"),
    [
        ("We go with NATS", "decision", "decision_made"),
        ("It works now", "outcome", "resolution_declared"),
        ("Version 2", "milestone", "milestone_reached"),
        ("We are unblocked since noon", "note", "blocker_cleared"),
        ("The job is no longer blocked by the crane", "note", "blocker_cleared"),
        ("It turned out to be the cable", "note", "question_closed"),
        ("The leak is fixed", "note", "resolution_declared"),
        ("The leak is not fixed", "note", "update"),
        ("The leak isn't really fixed", "note", "update"),
        ("The leak has never been resolved, we are stuck with it", "note", "blocker_added"),
        ("The leak is not fixed here but fixed there", "note", "resolution_declared"),
        ("We are waiting for the crane", "note", "blocker_added"),
        ("The new page went live", "note", "milestone_reached"),
        ("The build failed twice", "note", "setback"),
        ("We settled on brass", "note", "decision_made"),
        ("Who has the key?", "note", "question_opened"),
        ("Is this the key? It is.", "note", "update"),
        ("The key moved to vault B", "note", "state_change"),
        ("Nothing happened", "note", "update"),
    ],
)
def test_words_and_kinds_tell_what_happened(text: str, kind: str, tells: ThreadEventKind) -> None:
    """The kind first; a denial tells of nothing; the first memory is an observation."""
    assert event_kind(stated_event(kind, text), first=False) == tells
    assert tells in THREAD_EVENT_KINDS
    first = event_kind(stated_event(kind, text), first=True)
    assert first == ("observation" if tells == "update" else tells)


def test_no_event_is_overlooked() -> None:
    """Each of these phrases but the last tells what happened."""
    phrases = """unblocked / no longer waiting / answered / turns out / it turned out / the answer is
        / root cause was / caused by / RESOLVED / fixed / solved / closed the ticket / blocked by
        / waits for / waiting on / stuck with / shipped / released / launched / went live / merged
        / completed / finished / migrated / failed / failing / outage / rolled back / regression
        / broke / broken / crash / crashes / timed out / decided / we chose / agreed to
        / settled on / going with / who knows? / moved to / switched from / is now / changed to
        / Fixed\u017f? / it rained"""
    texts = [f"So {' '.join(phrase.split())}" for phrase in phrases.split("/")]

    assert [text for text in texts if stated_event("note", text) is None] == texts[-1:]


@each_row(
    ("text", "score", "first", "becomes"),
    [
        ("The leak is fixed", 1.0, True, "trigger"),
        ("The leak is fixed", 0.1, False, "outcome"),
        ("We shipped it", 0.9, False, "outcome"),
        ("It rained", 0.78, False, "core"),
        ("It rained", 0.77, False, "context"),
    ],
)
def test_roles_go_by_place_outcome_and_fit(
    text: str, score: float, first: bool, becomes: str
) -> None:
    """The first began it, outcomes end it, what fits well is its core."""
    assert member_role(stated_event("note", text), score, first=first, match=0.78) == becomes


def happened(*kinds: ThreadEventKind, days_ago: float = 0) -> list[ThreadEvent]:
    at = NOW - timedelta(days=days_ago)
    return [ThreadEvent(seq, kind, at, str(seq)) for seq, kind in enumerate(kinds)]


@each_row(
    ("kinds", "days", "anchored", "stands"),
    [
        (("observation", "blocker_added", "update"), 0, False, "blocked"),
        (("blocker_added", "blocker_cleared", "update"), 0, False, "ongoing"),
        (("setback", "resolution_declared", "update"), 0, False, "resolved"),
        (("resolution_declared", "setback", "update"), 0, False, "ongoing"),
        (("resolution_declared", "blocker_added"), 0, False, "blocked"),
        (("observation", "update"), 0, False, "uncertain"),
        (("observation", "update"), 0, True, "ongoing"),
        (("observation", "update", "update"), 13.9, False, "ongoing"),
        (("observation", "update", "update"), 14, False, "stable"),
    ],
)
def test_the_last_word_decides_how_it_stands(
    kinds: tuple[ThreadEventKind, ...], days: float, anchored: bool, stands: str
) -> None:
    """Blocked, resolved, ongoing, stable; too little to tell is uncertain."""
    assert thread_state(happened(*kinds, days_ago=days), NOW, anchored=anchored) == stands


@each_row(
    ("days", "state", "life"),
    [
        (0, "resolved", "active"),
        (13.9, "ongoing", "active"),
        (14, "ongoing", "dormant"),
        (14, "resolved", "closed"),
        (44.9, "ongoing", "dormant"),
        (45, "blocked", "closed"),
    ],
)
def test_quiet_threads_sleep_and_close(days: float, state: Any, life: str) -> None:
    """To the hour; what is resolved does not wait as long."""
    assert thread_lifecycle(happened("update", days_ago=days), state, NOW) == life
    assert DORMANT_AFTER < CLOSED_AFTER


@each_row(
    ("anchor", "kinds", "becomes"),
    [
        ("person:nadia", ("setback",), "relationship"),
        ("topic:x", ("setback",), "case"),
        (None, ("blocker_added",), "case"),
        ("ticket:fw-1", ("update",), "work"),
        ("topic:x", ("update",), "topic"),
        (None, ("update",), "topic"),
    ],
)
def test_kinds_go_by_anchor_and_trouble(
    anchor: str | None, kinds: tuple[ThreadEventKind, ...], becomes: str
) -> None:
    """People relate, trouble makes a case, tickets are work."""
    assert thread_kind(anchor, happened(*kinds)) == becomes


def test_events_count_from_nought_and_say_what_matters() -> None:
    """Observations and updates do not."""
    events = thread_events(
        [ThreadMemory.of(item(text)) for text in ("It rained", "We shipped it", "It rained on")]
    )

    assert [(one.seq, one.kind, one.meaningful) for one in events] == [
        (0, "observation", False), (1, "milestone_reached", True), (2, "update", False),
    ]  # fmt: skip


def test_storing_a_thread_twice_comes_to_the_same(memory: Memory) -> None:
    """A deed may be repeated by a run that is taken up again."""
    ids = tell(memory, (0, "The weir was measured"), (1, "A heron was seen"))
    key = f"{GENERATED_PREFIX}1"
    wanted = StoredThread(key, Thread(key, "Birds", members=tuple(Member(one) for one in ids)))
    work = memory.session.job_context()

    store_thread(wanted, work)
    once = memory.threads()
    store_thread(wanted, work)

    assert memory.threads() == once
    assert FindThreads().name == "threads"


@pytest.mark.parametrize("level", [1, 2])
def test_a_memory_that_becomes_secret_stays_in_the_thread_of_those_who_see_it(
    memory: Memory, level: int
) -> None:
    """The thread goes for those who see less, and for nobody else."""
    *_, last = tell(
        memory, (0, "Nora Vik checked the pump in Bergen"), (1, "Nora Vik left Bergen for good")
    )
    memory.maintain("threads", clock_is_right=True)
    before = [one.members for one in memory.threads()]
    memory.update(last, classification=level)
    memory.maintain("threads", clock_is_right=True)

    assert [len(members) for members in before] == [2]
    assert [one.members for one in memory.threads()] == before
    assert memory.below(0).threads() == []


@pytest.mark.parametrize("level", [2, 3])
def test_a_memory_that_is_secret_no_more_shows_its_thread_to_all(
    memory: Memory, level: int
) -> None:
    """Though its members are the same: what hid it was the classification of one."""
    first, last = tell(
        memory, (0, "Nora Vik checked the pump in Bergen"), (1, "Nora Vik left Bergen for good")
    )
    memory.update(first, classification=0)
    memory.update(last, classification=level)
    memory.maintain("threads", clock_is_right=True)
    hidden = memory.below(1).threads()
    memory.update(last, classification=0)
    memory.maintain("threads", clock_is_right=True)

    assert hidden == []
    assert [len(one.members) for one in memory.below(0).threads()] == [2]
    assert memory.below(0).threads() == memory.threads()
    assert not memory.maintain("threads", clock_is_right=True).done


def test_a_thread_whose_secret_memory_left_does_not_stay_with_one_memory(memory: Memory) -> None:
    """Also where the one that is left is of another classification than all views."""
    first, last = tell(memory, (0, "The gate was painted"), (1, "The gate broke"), topic="gate")
    tell(memory, (0, "The crane is old"), classification=0)
    memory.update(first, classification=2)
    memory.update(last, classification=3)
    memory.maintain("threads", clock_is_right=True)
    shown = [len(one.members) for one in memory.store.activity.threads()]
    memory.forget(last)
    memory.maintain("threads", clock_is_right=True)

    assert shown == [2]
    assert memory.store.activity.threads() == []


def test_a_run_that_ended_in_the_middle_is_made_good_by_the_next(memory: Memory) -> None:
    """Also far behind what changed, where the threads that were stored tell of no change."""
    days = [(year * 365, day) for year in range(6) for day in (0, 40, 80, 120, 160)]
    ids = tell(memory, *((year + day, f"a tree fell on {year}, {day}") for year, day in days))
    for cause, effect in pairwise(ids):
        memory.link(cause, "causes", effect, weight=0.9)
    firsts = ids[::5]
    for before, first in zip(ids[4::5], firsts[1:], strict=False):
        memory.unlink(before, "causes", first)
    memory.maintain("threads")
    memory.forget(*firsts)
    plan = memory.maintain("threads", preview=True).plan
    stored = [step for step in plan.steps if step.proposal.actions[-1].value.thread]
    memory.carry_out(plan._replace(steps=tuple(stored), places=()))
    memory.maintain("threads")

    assert len(stored) == len(firsts)
    assert [len(one.members) for one in memory.threads()] == [4] * len(firsts)


def test_a_generated_thread_that_somebody_replaced_is_found_again(memory: Memory) -> None:
    """Its id is the job's: the next run stores what the memories form."""
    tell(memory, *CASE)
    memory.maintain("threads")
    before = memory.threads()
    memory.put_thread("mine", [before[0].members[0].item], id=before[0].id)
    memory.maintain("threads")

    assert memory.threads() == before


def test_threads_of_an_import_are_those_of_all_memories(memory: Memory) -> None:
    """An older export brings threads back that the memories no longer form."""
    tell(memory, (0, "The gate was painted"), (1, "The gate broke"), topic="gate")
    memory.maintain("threads")
    exported = list(memory.export())
    memory.update(memory.threads()[0].members[0].item, topic="door")
    memory.maintain("threads")
    gone = memory.threads()
    memory.import_(exported)
    memory.maintain("threads")

    assert gone == memory.threads() == []


def test_a_memory_that_was_changed_before_it_was_erased_leaves_no_doubt(memory: Memory) -> None:
    """What was between two threads joins the one that is left."""
    tell(memory, *((day, f"filler {day}") for day in range(12)))
    first, second = (
        tell(memory, (0, f"the {topic} was painted"), (2, "later"), topic=topic)[0]
        for topic in ("gate", "lock")
    )
    for one in (first, second):
        memory.update(one, entities=["project:Alder"])
    (doubtful,) = tell(memory, (1, "the crane is here"), entities=["project:Alder"])
    memory.update(doubtful, occurred_at=NOW - timedelta(days=1))
    memory.maintain("threads")
    before = {len(one.members) for one in memory.threads()}
    memory.update(second, entities=["project:Birch"])
    memory.forget(second, erase=True)
    memory.maintain("threads")

    assert before == {2}
    (thread,) = memory.threads()
    assert {first, doubtful} < {member.item for member in thread.members}


def test_a_thread_most_of_which_was_erased_at_once_is_told_anew(memory: Memory) -> None:
    """Whichever of its memories are left."""
    days = range(6)
    ids = tell(memory, *((day, f"the gate was number {day}") for day in days), topic="gate")
    memory.maintain("threads")
    in_order = sorted(ids)
    kept = in_order[2:4]
    memory.forget(*(one for one in ids if one not in kept), erase=True)
    memory.maintain("threads")

    (thread,) = memory.threads()
    assert sorted(member.item for member in thread.members) == kept
    assert thread.updated_at == max(memory.get(one).when for one in kept)
    assert not memory.maintain("threads", preview=True).plan.steps


def test_no_view_is_made_that_would_show_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To hide every memory takes long, and below the lowest classification there is no thread."""
    tell(memory, *CASE, classification=1)
    store, asked = type(memory.store), []
    below = store.below

    def note(self: Any, ceiling: int) -> Any:
        asked.append(ceiling)
        return below(self, ceiling)

    monkeypatch.setattr(store, "below", note)

    plan = memory.maintain("threads", preview=True).plan

    assert len(plan.steps) == 1
    assert 0 not in asked
