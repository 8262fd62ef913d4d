"""Questions that name a time and little else are answered by the memories of that time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from bethink import Memory
from bethink.testing import FixedClock
from rows import each_row

NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)


def on(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, 10, tzinfo=UTC)


RELEASE = "Release 2.4 went live for all customers"
HOTFIX = "Hotfix for the login page"
BACKUPS = "Backups moved to disk"
CATS = "The cats were moved to the new flat"
CAKE = "Grandma baked gingerbread for everybody"
CHAIRS = "The canteen got new chairs"
PRINTER = "Ada fixed the printer"
HEATING = "The heating broke down"
TRAM = "The tram line was extended"
NOTES = [
    {"text": RELEASE, "kind": "event", "occurred_at": on(2026, 10, 16)},
    {"text": HOTFIX, "occurred_at": on(2026, 10, 17)},
    {"text": BACKUPS, "occurred_at": on(2026, 10, 19)},
    {"text": CATS, "occurred_at": on(2026, 6, 21)},
    {"text": CAKE, "occurred_at": on(2025, 12, 25)},
    {"text": CHAIRS, "occurred_at": on(2026, 11, 4)},
    {"text": PRINTER, "occurred_at": on(2026, 11, 13)},
    {"text": HEATING, "occurred_at": on(2026, 11, 12)},
    {"text": TRAM, "occurred_at": on(2026, 11, 8)},
    {"text": "Ines prefers tea"},
]


@pytest.fixture(scope="module")
def told(embedder) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember_many(NOTES)
        yield memory


@each_row(
    ("question", "answer"),
    [
        # Any verb with "about"; other verbs that no memory has.
        ("what did we chat about on June 21st?", CATS),
        ("what did we gossip about on June 21st?", CATS),
        ("what did we discuss on June 21st?", CATS),
        ("what did we brainstorm on June 21st?", CATS),
        ("what did we work on on June 21st?", CATS),
        ("what did you do on June 21st?", CATS),
        ("worüber haben wir am 21. Juni geplaudert?", CATS),
        ("de quoi avons-nous bavardé le 21 juin ?", CATS),
        ("what happened last Christmas?", CAKE),
        ("what happened over the holidays?", CAKE),
        ("was geschah über Weihnachten?", CAKE),
        ("what happened in calendar week 43?", BACKUPS),
        ("what happened this time last week?", TRAM),
        ("what happened a week ago today?", TRAM),
        ("que s'est-il passé avant-hier ?", PRINTER),
        ("que s'est-il passé il y a trois jours ?", HEATING),
        ("qué pasó anteayer?", PRINTER),
        ("cosa è successo l'altro ieri?", PRINTER),
        ("o que aconteceu há três dias?", HEATING),
        ("wat is er drie dagen geleden gebeurd?", HEATING),
        ("what happened on 11/13?", PRINTER),
        ("was geschah am 12.11.?", HEATING),
        ("what happened the day after the release?", HOTFIX),
        ("what happened three days after the release?", BACKUPS),
        ("was geschah am Tag nach dem Release?", HOTFIX),
    ],
)
def test_the_memories_of_that_time_are_the_answer(told, question, answer):
    """First the one that happened then, whatever verb asks for it; nothing of other times."""
    found = told.recall(question)

    assert [hit.item.text for hit in found.hits][:1] == [answer]
    day = next(note["occurred_at"] for note in NOTES if note["text"] == answer)
    assert all(abs(hit.item.when - day).days <= 7 for hit in found.hits)


def test_since_an_event_named_by_its_number(told):
    """The release is a memory; all that came after it is told, nothing that came before."""
    hits = {hit.item.text for hit in told.recall("what happened since release 2.4?").hits}

    assert hits >= {HOTFIX, BACKUPS, CHAIRS, PRINTER, HEATING, TRAM}
    assert not {CATS, CAKE}.intersection(hits)


@pytest.mark.parametrize(
    "question",
    [
        "what did we say about bread on June 21st?",
        "which bread did we eat on June 21st?",
        "what about bread on June 21st?",
    ],
)
def test_a_topic_is_more_than_a_time(told, question):
    """A noun beside the time is looked for, so that the question is not for the time alone."""
    notes = " ".join(step.note for step in told.recall(question).steps)

    assert "names a time and nothing else" not in notes
