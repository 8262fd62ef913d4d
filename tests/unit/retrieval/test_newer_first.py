"""Newer statements come directly before older ones of the same thing, and the older are marked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bethink import Memory
from bethink.core.words import differs_only_in_values
from bethink.model import OLDER, replay
from bethink.render.quoting import quote_hit
from bethink.render.wire import recall_json
from bethink.retrieval.answer_text import render_text
from rows import each_row

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
THEN, LATER = "2026-11-02T10:00:00Z", "2026-11-09T10:00:00Z"
PAIRS = [
    ("The CI takes 14 minutes", "CI is down to 6 minutes now", "how long does CI take?"),
    ("Jo is the designer", "Priya takes over the design from Jo", "who is the designer?"),
    (
        "Our staging server is in Frankfurt",
        "Correction: our staging server is in Dublin, not in Frankfurt",
        "where is the staging server?",
    ),
    (
        "We decided to use MongoDB",
        "We no longer use MongoDB, we use PostgreSQL",
        "which database do we use?",
    ),
    (
        "Let's use redis for the stock counters",
        "Drop the redis idea, we stay with Postgres advisory locks",
        "do we use redis for stock?",
    ),
    (
        "My favourite editor is vim",
        "Actually I now prefer Helix over vim",
        "which editor do I prefer?",
    ),
    (
        "Python 3.11 is the minimum version",
        "The minimum version is Python 3.12",
        "what is the minimum python version?",
    ),
    (
        "The release is on 1 December",
        "The release was postponed to 15 December",
        "when is the release?",
    ),
    (
        "Refunds need one approval",
        "Refunds need two approvals from now on",
        "how many approvals does a refund need?",
    ),
    (
        "Das Büro ist in der Hauptstraße 4",
        "Das Büro ist jetzt in der Gartenstraße 9",
        "wo ist das Büro?",
    ),
]


@pytest.fixture
def memory():
    with Memory.open(":memory:", embedder="encoder", clock=lambda: NOW) as opened:
        opened.remember("Lunch was soup on that day", occurred_at="2026-11-03T10:00:00Z")
        opened.remember("The office plants need water twice a week", occurred_at=THEN)
        yield opened


def _told(memory, older, newer, **about):
    first = memory.remember(older, occurred_at=THEN)
    second = memory.remember(newer, occurred_at=LATER, **about)
    return first.id, second.id


OTHERS = [
    "Unit tests run with make check, they need Docker",
    "The queue is RabbitMQ, one exchange per service",
    "PDFs are rendered by a headless browser",
    "Deploys go out on weekdays before three",
    "Roll back with the previous image tag",
    "Secrets come from the vault, never from files",
    "Every branch is named after its ticket",
    "The hospital pays by invoice once a year",
    "Fonts are served from our own host",
    "Backups are made each night and kept for a month",
    "Logs are kept for two weeks",
    "GraphQL was rejected, we stay with REST",
]


def test_memories_far_from_the_question_are_no_rivals(memory):
    """Others that name the same person are closer to the newer one, and not asked for."""
    for other in OTHERS:
        memory.remember(other, occurred_at=THEN)
    memory.remember("On call this quarter is Jonas, his backup is Priya", occurred_at=THEN)
    memory.remember("From now on Priya is on call, with Tomek as her backup", occurred_at=LATER)
    memory.remember("Priya works from Goa until February, so meetings before noon UTC")
    older, newer = _told(
        memory, "The daily stand-up is at 9:30", "Stand-up moved to 11:00 so that Priya can join"
    )

    found = [hit.item.id for hit in memory.recall("at what time is the stand-up?").hits]

    assert found.index(newer) < found.index(older)


@each_row(("older", "newer", "question"), PAIRS)
def test_the_newer_statement_comes_first(memory, older, newer, question):
    """A statement is never shown below an older one that it corrects, understood or not."""
    first, second = _told(memory, older, newer)
    answer = memory.recall(question, include_superseded=True)
    order = [hit.item.id for hit in answer.hits]
    assert order.index(second) < order.index(first)
    assert next(hit for hit in answer.hits if hit.item.id == first).see_newer == second


def test_the_mark_is_on_every_surface_and_the_score_can_be_replayed(memory):
    """JSON, text and quotes name the newer memory; evidence still adds up to the score."""
    first, second = _told(memory, *PAIRS[0][:2])
    answer = memory.recall(PAIRS[0][2])
    assert [hit.item.id for hit in answer.hits][:2] == [second, first]
    older = answer.hits[1]
    assert f"{OLDER} {second}" in render_text(answer)
    assert f"{OLDER} {second}" in quote_hit(older).head
    shown = {hit["id"]: hit["see_newer"] for hit in recall_json(answer)["items"]}
    assert (shown[first], shown[second]) == (second, None)
    for hit in answer.hits:
        assert replay(hit.evidence) == pytest.approx(hit.score)
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)


def test_of_three_statements_the_newest_is_first(memory):
    """Each statement comes above the one before it; the oldest names the newest."""
    texts = [
        "The worker pool limit is 4 threads",
        "The worker pool limit is now 8 threads, raised for the sale",
        "The worker pool limit is now 12 threads, raised again",
    ]
    ids = [
        memory.remember(text, occurred_at=f"2026-11-0{day}T10:00:00Z").id
        for day, text in enumerate(texts, start=2)
    ]
    answer = memory.recall("what is the worker pool limit?", include_superseded=True)
    order = [hit.item.id for hit in answer.hits if hit.item.id in ids]
    assert order == ids[::-1]


def test_a_less_trusted_memory_does_not_come_before_a_more_trusted_one(memory):
    """An untrusted source cannot place its statement above the owner's."""
    first, second = _told(memory, *PAIRS[0][:2], trust=0, source="web", source_class="web")
    answer = memory.recall(PAIRS[0][2])
    older = next(hit for hit in answer.hits if hit.item.id == first)
    assert older.see_newer is None
    assert [hit.item.id for hit in answer.hits].index(first) == 0
    assert second != first


def test_one_speaker_does_not_correct_another(memory):
    """What one person says of themselves does not replace what another said."""
    first = memory.remember("I live in Lisbon near the river", occurred_at=THEN, speaker="Ana").id
    memory.remember("I moved, I now live in Porto near the river", occurred_at=LATER, speaker="Ben")
    answer = memory.recall("who lives near the river?")
    assert all(hit.see_newer is None for hit in answer.hits if hit.item.id == first)


def test_a_question_for_the_past_keeps_the_order(memory):
    """Who asks how it was before is not shown the newer one first for being newer."""
    _told(memory, *PAIRS[0][:2])
    answer = memory.recall("how long did CI originally take?")
    step = next(step for step in answer.steps if step.name == "diversify.newer_first")
    assert step.status == "skipped"


@each_row(
    ("one", "other", "differ"),
    [
        ("The timeout is 30 s", "The timeout is 60 s", True),
        ("Ask Ana about it", "Ask Ben about it", True),
        ("We met in the park", "We met at the park", False),
        ("Kept 30 days", "Kept", False),
        ("Python 3.11 is the minimum", "The minimum is Python 3.12", True),
        ("The CEO is Maria Lopez", "The CEO is Tom Berg", True),
        ("Ana looked after billing on Monday", "Ana looked after search on Friday", False),
        ("Ana showed Ben the test", "Kim showed Lee the test", False),
    ],
)
def test_values_are_numbers_and_names(one, other, differ):
    """Another value is one number or name in the place of another, with nothing else changed."""
    assert differs_only_in_values(one, other) is differ
