"""``k`` limits everything that is returned; insights never take a memory's place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bethink import Memory
from rows import each_row

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
QUESTION = "what did Alice say about the harbour crane?"


@pytest.fixture
def memory():
    with Memory.open(":memory:", embedder="encoder", clock=lambda: NOW) as opened:
        for day in range(1, 7):
            opened.remember(
                f"Alice said the harbour crane number {day} needs a new cable",
                occurred_at=f"2026-02-0{day}T09:00:00Z",
            )
        for number in range(3):
            opened.remember(
                f"Alice speaks of the harbour crane {number} times a week and of its cable",
                level="insight",
            )
        yield opened


@each_row("k", [1, 2, 4, 6])
def test_insights_count_and_never_displace(memory, k):
    """With k given there are at most k hits, and no insight while a memory is left out."""
    answer = memory.recall(QUESTION, k=k)
    assert len(answer.hits) == k
    assert answer.insights == ()


def test_insights_fill_what_is_left(memory):
    """Where memories leave room, at most two insights are told, and k still holds."""
    answer = memory.recall(QUESTION, k=7)
    assert (len(answer.items), len(answer.insights)) == (6, 1)
    answer = memory.recall(QUESTION, k=10)
    assert (len(answer.items), len(answer.insights)) == (6, 2)


def test_insights_can_be_asked_for(memory):
    """A filter for insights is not limited by the memories that it leaves out."""
    assert len(memory.recall(QUESTION, k=3, level="insight").hits) == 3


@each_row("profile", ["default", "linksee", "remind", "siftcoder", "abmind"])
@each_row("k", [1, 2, 5])
def test_an_entity_alone_returns_at_most_k(memory, profile, k):
    """The number that the caller gives holds for a question without words, too."""
    answer = memory.recall(entity="Alice", k=k, profile=profile)
    assert 0 < len(answer.hits) <= k
    assert answer.query.k == k


def test_without_a_number_a_question_without_words_returns_more(memory):
    """A low default grows where only filters are given: there is no best match to stop at."""
    wordless = memory.recall(entity="Alice", profile="siftcoder")
    asked = memory.recall(QUESTION, profile="siftcoder")

    assert wordless.query.k > asked.query.k
    assert memory.recall(entity="Alice").query.k >= memory.recall(QUESTION).query.k
