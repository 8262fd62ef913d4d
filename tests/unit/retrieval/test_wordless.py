"""A question without words: what its filters leave, newest first, by every profile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bethink import Memory
from bethink.errors import Refused
from bethink.ports import Embedder
from bethink.retrieval.profile import profile_names
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row


@pytest.fixture(scope="module")
def auth(embedder: Embedder) -> Iterator[Memory]:
    """Fifteen memories of one module, an hour between them, and one of another."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        for number in range(15):
            memory.remember(
                f"Decision {number} about the login",
                id=f"m{number:02d}",
                entities=["module:auth"],
                level="raw" if number % 2 else "item",
                topic="security" if number < 5 else None,
            )
            clock.forward(hours=1)
        memory.remember("Soup on Fridays", entities=["module:kitchen"])
        yield memory


@each_row("profile", sorted(profile_names()))
def test_every_profile_answers(auth: Memory, profile: str) -> None:
    """Newest first among those that mention it, up to k of them."""
    answer = auth.recall(entity="module:auth", profile=profile, k=8)

    assert [hit.item.id for hit in answer.hits] == [f"m{n:02d}" for n in range(14, 6, -1)]
    assert answer.status == "found"
    assert answer.degraded == ()
    assert [step.name for step in answer.steps if step.name.startswith("channel.")] == [
        "channel.newest"
    ]


def test_the_profile_says_how_many_by_its_own_k(auth: Memory) -> None:
    """Three concepts make twelve, and episodes are not counted apart unless asked."""
    answer = auth.recall(entity="module:auth", profile="remind")
    apart = auth.recall(entity="module:auth", profile="remind", episode_k=1)

    assert len(answer.hits) == 12
    assert len(apart.raw) == 1
    assert len(apart.items) == 8


def test_entity_and_words_together(auth: Memory) -> None:
    """Then the words rank and the entity restricts."""
    answer = auth.recall("soup on fridays", entity="module:auth", profile="remind")

    assert all("module:auth" in hit.item.entities for hit in answer.hits)


def test_pages_follow_each_other(auth: Memory) -> None:
    """By cursor and by offset."""
    first = auth.recall(entity="module:auth", k=4)
    second = auth.recall(entity="module:auth", k=4, cursor=first.page.cursor)
    again = auth.recall(entity="module:auth", k=4, offset=4)

    ids = [hit.item.id for hit in second.hits]
    assert ids == ["m10", "m09", "m08", "m07"]
    assert [hit.item.id for hit in again.hits] == ids


def test_any_filter_that_picks_out_will_do(auth: Memory) -> None:
    """A topic, a level; but nothing at all asks for nothing."""
    assert len(auth.recall(topic="security").hits) == 5
    assert auth.recall(entity="module:nobody").reason == "the filters leave no memory"
    for nothing in ({}, {"max_classification": 1}, {"include_expired": True}):
        with pytest.raises(Refused, match="the question is empty"):
            auth.recall("  ", **nothing)


def test_a_reader_has_nothing_to_read_against(auth: Memory) -> None:
    """It is not asked."""

    def never(_: str, texts: object) -> list[float]:
        raise AssertionError(texts)

    assert auth.recall(entity="module:auth", k=1, reranker=never).degraded == ()


def test_why_not_and_explain_take_it(auth: Memory) -> None:
    """As any other question."""
    assert auth.why_not("m00", "", entity="module:auth", k=1).stage == "budget"
    assert "newest" in auth.explain("", "m14", entity="module:auth")
