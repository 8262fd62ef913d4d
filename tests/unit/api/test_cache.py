"""Answers kept for a while: found again, never stale, never where they may not be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bethink import Memory
from bethink.api.session import TTL, CacheKey, RecallCache
from bethink.config.settings import Settings
from bethink.ports import Embedder
from corpus import NOTES, NOW
from rows import each_row


class Hands:
    """A clock that is set by hand."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Hands:
    return Hands(NOW)


@pytest.fixture
def keeping(embedder: Embedder, clock: Hands) -> Iterator[Memory]:
    settings = Settings(cache=True)
    with Memory.open(":memory:", embedder=embedder, clock=clock, settings=settings) as opened:
        opened.remember_many(NOTES)
        yield opened


def cached(memory: Memory, text: str = "where is the deploy key?", **options: object) -> bool:
    run = memory.recall(text, **options).run
    assert run is not None
    return run.cached


def test_the_same_question_is_answered_as_before(keeping: Memory) -> None:
    """All of it, the trace of the first walk included; only the mark differs."""
    first = keeping.recall("where is the deploy key?")
    again = keeping.recall("where is the deploy key?")

    assert (first.run.cached, again.run.cached) == (False, True)
    assert (again.hits, again.steps, again.query) == (first.hits, first.steps, first.query)
    assert again.run.id == first.run.id


def test_nothing_is_kept_unless_asked_for(filled: Memory) -> None:
    """Off is the default."""
    assert not cached(filled)
    assert not cached(filled)


WRITES = {
    "remember": lambda memory, item: memory.remember("The deploy key moved to vault C"),
    "update": lambda memory, item: memory.update(item, text="The deploy key lives in vault Z"),
    "forget": lambda memory, item: memory.forget(item),
    "erase": lambda memory, item: memory.forget(item, erase=True),
    "note use": lambda memory, item: memory.store.activity.note_use([item], NOW),
    "thread": lambda memory, item: memory.put_thread("Keys", [item]),
}


@each_row("write", WRITES)
def test_any_write_makes_every_answer_stale(keeping: Memory, write: str) -> None:
    """Whatever was changed: the next answer is of the memory as it is now."""
    item = keeping.recall("where is the deploy key?").hits[0].item.id
    assert cached(keeping)

    WRITES[write](keeping, item)

    assert not cached(keeping)


def test_a_write_by_another_connection_counts_too(tmp_path, embedder: Embedder) -> None:
    """The file says how often it was written to, whoever it was."""
    path, settings = tmp_path / "shared.db", Settings(cache=True)
    with (
        Memory.open(path=path, embedder=embedder, settings=settings) as one,
        Memory.open(path=path, embedder=embedder) as other,
    ):
        one.remember("The deploy key lives in vault B")
        assert not cached(one)
        assert cached(one)
        other.remember("The deploy key moved to vault C")

        assert not cached(one)
        told = [hit.item.text for hit in one.recall("where is the deploy key?").hits]
        assert "The deploy key moved to vault C" in told


@each_row(
    "options",
    [
        {"k": 2}, {"max_tokens": 100}, {"offset": 1}, {"profile": "siftcoder"},
        {"kind": "fact"}, {"as_of": "2026-01-01"}, {"most": {"raw": 1}},
        {"max_classification": 3}, {"context": {"hour": 9}},
    ],
)  # fmt: skip
def test_another_question_is_another_answer(keeping: Memory, options: dict[str, object]) -> None:
    """Every option is part of the question."""
    assert not cached(keeping)

    assert not cached(keeping, **options)
    assert cached(keeping)


def test_a_profile_counts_by_its_content(keeping: Memory) -> None:
    """A changed profile of the same name is another one."""
    profile = keeping.profile("siftcoder")
    changed = profile.without("dense")
    assert not cached(keeping, profile=profile)

    assert not cached(keeping, profile=replace(changed, name=profile.name))
    assert cached(keeping, profile=profile)


@pytest.mark.parametrize(
    "options",
    [
        {"track": True},
        {"boost": lambda item: 1.0},
        {"reranker": lambda question, texts: [0.5 for _ in texts]},
    ],
)
def test_what_depends_on_more_is_not_kept(keeping: Memory, options: dict[str, object]) -> None:
    """Functions may say something else each time, and tracking must happen each time."""
    cached(keeping, **options)

    assert not cached(keeping, **options)


def test_an_answer_lives_five_minutes(keeping: Memory, clock: Hands) -> None:
    """Up to the last second of them, and not from a clock that was set back."""
    assert not cached(keeping)
    clock.now = NOW + TTL - timedelta(seconds=1)
    assert cached(keeping)
    clock.now = NOW + TTL
    assert not cached(keeping)
    clock.now = NOW - timedelta(hours=1)
    assert not cached(keeping)


def test_a_new_day_is_another_question(keeping: Memory, clock: Hands) -> None:
    """ "Yesterday" means another day after midnight."""
    clock.now = NOW.replace(hour=23, minute=59)
    assert not cached(keeping, "what happened yesterday?")
    clock.now += timedelta(minutes=2)

    assert not cached(keeping, "what happened yesterday?")


def test_a_named_moment_must_be_the_same(keeping: Memory) -> None:
    """Who says when it is gets the answer for that moment, not one for nearby."""
    assert not cached(keeping, now=NOW)
    assert cached(keeping, now=NOW)
    assert not cached(keeping, now=NOW + timedelta(seconds=1))
    assert not cached(keeping)


def test_what_ran_out_is_not_told(keeping: Memory, clock: Hands) -> None:
    """A hit whose validity ends in between is not repeated."""
    keeping.remember("The guest wifi code is maple", valid_to=NOW + timedelta(minutes=1))
    assert keeping.recall("what is the guest wifi code?").hits
    clock.now = NOW + timedelta(minutes=2)

    answer = keeping.recall("what is the guest wifi code?")

    assert "maple" not in " ".join(hit.item.text for hit in answer.hits)


def test_a_degraded_answer_is_not_kept(clock: Hands) -> None:
    """The part that was missing may be back."""
    settings = Settings(cache=True)
    with Memory.open(":memory:", embedder="none", clock=clock, settings=settings) as plain:
        plain.remember("The deploy key lives in vault B")
        assert plain.recall("where is the deploy key?").degraded

        assert not cached(plain)


def test_only_so_many_are_kept(keeping: Memory) -> None:
    """The one that was not asked for longest goes first."""
    cache = RecallCache(max_entries=2)
    answer = keeping.recall("where is the deploy key?")
    keys = [CacheKey("s", 1, f"q{n}", keeping.profile(), "") for n in range(3)]

    cache.store(keys[0], answer, NOW)
    cache.store(keys[1], answer, NOW)
    assert cache.find(keys[0], NOW)
    cache.store(keys[2], answer, NOW)

    assert len(cache) == 2
    assert [bool(cache.find(key, NOW)) for key in keys] == [True, False, True]


def test_what_came_before_a_write_is_not_held_on_to(keeping: Memory) -> None:
    """It can never be found again, and may tell of what has been erased since."""
    cache = RecallCache()
    answer = keeping.recall("where is the deploy key?")
    old, new = (CacheKey("s", generation, "q", keeping.profile(), "") for generation in (1, 2))
    cache.store(old, answer, NOW)

    assert cache.find(new, NOW) is None
    assert len(cache) == 0


def test_an_answer_says_that_memories_have_no_vector(tmp_path: Path) -> None:
    """As an import leaves them that was stopped before it had embedded them."""
    path = tmp_path / "space.db"
    with Memory.open("s", path=path, embedder="none") as memory:
        memory.remember("The heron plan is ready")
    with Memory.open("s", path=path, embedder="hash") as memory:
        (lacking,) = memory.recall("heron plan").degraded
        assert "1 memory without a vector" in lacking.reason
        memory.remember("The kestrel plan is late")
        assert memory.recall("heron plan").degraded == (lacking,)
        memory.reindex()
        assert memory.recall("heron plan").degraded == ()
