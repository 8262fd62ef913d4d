"""Times that a question names: what they do to the answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bethink import Memory
from bethink.lang.dates import find_events, find_times, parse_moment
from bethink.models import open_embedder
from bethink.testing import FixedClock
from fallible import Down
from rows import each_row

NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


NOTES = [
    {"text": "Release 2.0 went live for all customers", "kind": "event", "occurred_at": days_ago(30)},
    {"text": "Release 1.0 went live for two customers", "kind": "event", "occurred_at": days_ago(300)},
    {"text": "We agreed on nightly backups to tape", "kind": "decision", "occurred_at": days_ago(60)},
    {"text": "We agreed on hourly backups to disk", "kind": "decision", "occurred_at": days_ago(10)},
    {"text": "The release checklist lives in the wiki", "kind": "fact"},
    {"text": "Prepare the next release", "kind": "task", "occurred_at": days_ago(1)},
    {"text": "We moved the ledger to Postgres on 3 May 2026", "kind": "event"},
    {"text": "The ledger backups were slow", "kind": "fact", "occurred_at": datetime(2026, 5, 3, tzinfo=UTC)},
]  # fmt: skip


@pytest.fixture(scope="module")
def told(embedder):
    """A memory in which two releases, a move and some decisions are stored."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember_many(NOTES)
        yield opened


def steps(answer):
    return {step.name: step for step in answer.steps}


def leaned(answer) -> set[str]:
    """The memories that the stage leaned to with all its weight."""
    return {
        hit.item.text
        for hit in steps(answer)["adjust.period"].pool
        if (reason := hit.reason("period")) and reason.value > 0.2
    }


def test_a_stored_event_gives_the_window(told):
    """Of two releases the latest; the step says which memory was taken."""
    since = told.recall("Which backups did we agree on since the release?")
    before = told.recall("Which backups did we agree on before the release?")

    assert "We agreed on hourly backups to disk" in leaned(since)
    assert "We agreed on nightly backups to tape" not in leaned(since)
    assert "We agreed on nightly backups to tape" in leaned(before)
    assert "We agreed on hourly backups to disk" not in leaned(before)
    for answer in (since, before):
        assert "Release 2.0 went live" in steps(answer)["adjust.period"].note
        assert "Release 2.0 went live" in steps(answer)["channel.temporal"].note


def test_an_event_tells_its_own_date(told):
    """Where nobody said when it happened, the text may."""
    answer = told.recall("what was slow when we moved the ledger to Postgres?")

    assert "The ledger backups were slow" in leaned(answer)
    assert "We agreed on hourly backups to disk" not in leaned(answer)


@pytest.mark.parametrize(
    "question",
    [
        "Which backups did we agree on since the earthquake?",
        "Which backups did we agree on after the checklist?",
        "Which backups should we agree on before the release?",
        "Which backups did we agree on before that?",
        "When did we agree on backups?",
        "What is slow when the ledger is moved to Postgres?",
        "Which backups did we agree on after the ledger backups were slow?",
    ],
)
def test_without_a_fitting_event_nothing_leans(told, question):
    """Unknown events, things that did not happen, advice, pronouns, plain questions."""
    assert leaned(told.recall(question)) == set()


def test_only_what_may_be_seen_can_be_an_event(told):
    """A filter holds for the event as for everything else."""
    answer = told.recall("Which backups did we agree on since the release?", kind="decision")

    assert "Release" not in steps(answer)["adjust.period"].note


def test_a_wrong_guess_drops_nothing(told):
    """A time in the question leans; it never filters."""
    answer = told.recall("hourly backups to disk in March 2019")

    assert answer.hits[0].item.text == "We agreed on hourly backups to disk"


def test_a_guess_leans_less_than_a_date(told):
    """Recently counts 0.7 of what last month does."""
    vague = told.recall("which release task was prepared recently")
    (found,) = [hit for hit in steps(vague)["adjust.period"].pool if hit.item.kind == "task"]

    assert found.reason("period").value == pytest.approx(0.316 * 0.7)


def test_beside_a_date_recently_says_nothing(told):
    """The date is meant."""
    answer = told.recall("which backups were recently agreed on in September 2026?")

    assert leaned(answer) == {"We agreed on nightly backups to tape"}


def test_a_failing_embedder_leaves_the_time(told, embedder):
    """Neither a model that is down nor vectors of another model leave a time unfound."""
    with Memory.open(":memory:", embedder=Down(), clock=FixedClock(NOW)) as memory:
        memory.remember_many(NOTES)
        answer = memory.recall("what happened in September 2026?")
    step = steps(answer)["channel.temporal"]

    assert [hit.item.text for hit in step.pool] == ["We agreed on nightly backups to tape"]
    assert step.status == "ok"
    assert "ranked by time only" in step.note


def test_vectors_of_another_model_leave_the_time(tmp_path, embedder):
    """The question's vector fits none of the stored ones, its time does."""
    path = tmp_path / "space.db"
    with Memory.open("moved", path=path, embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember_many(NOTES)
    with Memory.open(
        "moved", path=path, embedder=open_embedder("hash"), clock=FixedClock(NOW)
    ) as memory:
        answer = memory.recall("what happened in September 2026?")
    step = steps(answer)["channel.temporal"]

    assert [hit.item.text for hit in step.pool] == ["We agreed on nightly backups to tape"]
    assert "ranked by time only" in step.note


@each_row(
    ("words", "start"),
    [
        ("last Friday", "2026-11-13"),
        ("vor zwei Wochen", "2026-10-26"),
        ("la semana pasada", "2026-11-02"),
        ("il y a trois jours", "2026-11-12"),
        ("上周五", "2026-11-06"),
        ("the last few weeks", "2026-10-12"),
        ("since Tuesday", "2026-11-10"),
        ("2026-03-01", "2026-03-01"),
        ("in 2024", "2024-01-01"),
    ],
)
def test_a_caller_may_write_a_moment_in_words(words, start):
    """As one would write it in a question."""
    assert parse_moment(words, NOW) == datetime.fromisoformat(start).replace(tzinfo=UTC)


@each_row("words", ["", "soon", "until Friday", "Bob last Friday", "yesterday and today"])
def test_what_is_no_moment_is_refused_in_words(words):
    """The message repeats what was given and shows what would do."""
    with pytest.raises(ValueError, match="is not a valid time; write 2026-03-01"):
        parse_moment(words, NOW)


def test_phrases_are_told_from_questions():
    """What may name an event, and what cannot."""
    assert [event.phrase for event in find_events("What changed after the outage, Bob?")] == [
        "the outage"
    ]
    assert [event.phrase for event in find_events("What broke after the v2.7.0 rollback?")] == [
        "the v2.7.0 rollback"
    ]
    assert [event.core for event in find_events("since the fix of feature/x-y on main")] == [
        "the fix of feature/x-y"
    ]
    assert find_events("When did it change?") == []
    assert find_events("since when?") == []
    text = "What changed since last week?"
    assert find_events(text, find_times(text, NOW)) == []
    assert [event.core for event in find_events("Was haben wir seit dem Umzug beschlossen?")] == [
        "dem Umzug"
    ]


def test_an_event_that_has_not_happened_yet_opens_no_period(embedder):
    """ "since" a future event leaves no time to look at, so it is not taken as a period."""
    opening = {
        "text": "The grand opening of the lab",
        "kind": "event",
        "occurred_at": days_ago(-10),
    }
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember_many([*NOTES, opening])

        answer = memory.recall("Which backups did we agree on since the grand opening?")

    assert "grand opening" not in steps(answer)["adjust.period"].note
