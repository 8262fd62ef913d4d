"""Near-duplicates are found over the whole store; the newer wins, and only where it is safe."""

from __future__ import annotations

from typing import Any

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.maintain.cleanup import comparable_words, is_same_wording
from bethink.ports import Embedder
from bethink.testing import FixedClock
from cold_memories import add_others, state
from corpus import NOW
from rows import each_row

OLD = "The deploy keys of the north station are kept in vault B on shelf 3"
NEW = "The deploy keys of the north station are kept in the vault B on the shelf 3"


@pytest.fixture
def memory(embedder: Embedder) -> Memory:
    return Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW))


def twins(
    memory: Memory,
    old: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
    text: str = NEW,
) -> tuple[str, str]:
    first = memory.remember(OLD, **(old or {})).id
    clock = memory.session.clock
    assert isinstance(clock, FixedClock)
    clock.forward(hours=1)
    second = memory.remember(text, **(new or {})).id
    add_others(memory, 4)
    return first, second


def test_the_newer_supersedes_the_older_and_undo_takes_it_back(memory: Memory) -> None:
    """A status and a link, nothing more; both go with an undo."""
    old, new = twins(memory)
    before = state(memory)

    report = memory.maintain("duplicates", share=0.5)
    during = memory.get(old).status
    links = memory.store.graph.links_of([new], ("supersedes",))
    memory.undo_run(report.run or "")

    assert during == "superseded"
    assert [(link.src.id, link.dst.id) for link in links] == [(new, old)]
    assert state(memory) == before
    assert memory.store.graph.links_of([new], ("supersedes",)) == []


@each_row(
    "text",
    [
        "The deploy keys of the south station are kept in vault B on shelf 3",
        "The deploy keys of the north station are kept in vault B on shelf 4",
        "The deploy keys of the north station are not kept in vault B on shelf 3",
        "The deploy keys of the north station were kept in vault B on shelf 3",
        "Once the deploy keys of the north station are kept in vault B on shelf 3",
        "The deploy keys of vault B are kept in the north station on shelf 3",
        "The deploy keys of the north station are kept in vault B",
    ],
)
def test_what_says_something_else_stays(memory: Memory, text: str) -> None:
    """Another number, name, tense or order, a denial, or fewer words: both stay."""
    old, _ = twins(memory, text=text)

    assert memory.maintain("duplicates", share=1.0).done == ()
    assert memory.get(old).status == "active"


@each_row(
    ("old", "new"),
    [
        ({"pinned": True}, {}),
        ({"layer": "caveat"}, {"layer": "caveat"}),
        ({}, {"source_class": "web"}),
        ({}, {"classification": 2}),
        ({"tags": ["keys"]}, {}),
        ({"speaker": "Ana"}, {"speaker": "Ben"}),
        ({"occurred_at": "2026-01-01"}, {"occurred_at": "2026-02-01"}),
        ({}, {"valid_to": "2030-01-01"}),
    ],
)
def test_who_saw_the_older_must_be_served_as_well_by_the_newer(
    memory: Memory, old: dict[str, Any], new: dict[str, Any]
) -> None:
    """Pinned and protected ones stay, and what is less trusted, more secret, of another
    time or another voice takes nobody's place."""
    first, _ = twins(memory, old, new)

    assert memory.maintain("duplicates", share=1.0).done == ()
    assert memory.get(first).status == "active"


def test_of_many_the_newest_stays(memory: Memory) -> None:
    """Each older one gives way once, all in one proposal."""
    clock = memory.session.clock
    assert isinstance(clock, FixedClock)
    ids = []
    for words in (OLD, NEW, NEW.replace("the north", "north"), f"So, {NEW}"):
        ids.append(memory.remember(words).id)
        clock.forward(hours=1)
    add_others(memory, 4)

    report = memory.maintain("duplicates", share=1.0)

    assert [memory.get(one).status for one in ids[:3]] == ["superseded"] * 3
    assert memory.get(ids[3]).status == "active"
    assert memory.maintain("duplicates", share=1.0).plan.steps == ()
    assert sum(len(done.ended) for done in report.done) == 3


def test_without_vectors_the_words_decide() -> None:
    """Where no model is configured the rule on words is strict enough by itself."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        old, _ = twins(memory)
        memory.maintain("duplicates", share=1.0)

        assert memory.get(old).status == "superseded"


def test_words_are_the_same_in_their_order() -> None:
    """One after the other, with nothing between them but articles."""
    newer = comparable_words("We keep the keys in vault B")

    assert is_same_wording(newer, comparable_words("we keep keys in the vault B."))
    assert not is_same_wording(newer, comparable_words("We keep the vault B in keys"))
    assert not is_same_wording(newer, comparable_words("We keep the keys in vault B, on the left"))
    assert not is_same_wording(newer, ())


WORDINGS = (
    "We fixed the flaky login test by waiting for the cookie banner",
    "The flaky login test was fixed by waiting for the cookie banner",
    "Waiting for the cookie banner fixed the flaky login test",
)


def store_wordings(memory: Memory, *texts: str) -> list[str]:
    clock = memory.session.clock
    assert isinstance(clock, FixedClock)
    ids = []
    for text in texts:
        clock.forward(hours=1)
        ids.append(memory.remember(text, force=True).id)
    return ids


def test_other_wordings_are_duplicates_where_the_run_says_so(memory: Memory) -> None:
    """By the threshold that is named; without one only the same words are."""
    *old, newest = store_wordings(memory, *WORDINGS)

    plain = memory.maintain("duplicates", share=0.9, preview=True).plan
    report = memory.maintain("duplicates", share=0.9, similarity=0.8)
    statuses = [memory.get(item).status for item in (*old, newest)]
    memory.undo_run(report.run or "")

    assert plain.steps == ()
    assert statuses == ["superseded", "superseded", "active"]
    assert {memory.get(item).status for item in old} == {"active"}


@pytest.mark.parametrize(
    "other",
    [
        "The flaky login test was not fixed by waiting for the cookie banner",
        "The flaky login test was fixed by waiting for the cookie banner 3 times",
        "The flaky login test was fixed by Ines waiting for the cookie banner",
    ],
)
def test_another_number_name_or_denial_is_no_other_wording(memory: Memory, other: str) -> None:
    """However near the vectors are, the statements differ."""
    store_wordings(memory, WORDINGS[1], other)

    assert memory.maintain("duplicates", share=0.9, similarity=0.6, preview=True).plan.steps == ()


@each_row("similarity", [0.2, 1.5, "0.9", True])
def test_a_similarity_must_be_a_cosine(memory: Memory, similarity: Any) -> None:
    """Anything else is refused by name."""
    with pytest.raises(Refused, match="similarity"):
        memory.maintain("duplicates", similarity=similarity)


NINE = (
    "Fixed the race in the session store by locking around the write",
    "Fixed the race in the session store by taking a lock around the write",
    "Fixed race in the session store by locking around the write",
    "Fixed the race condition in the session store by locking around the write",
    "Fixed the race in session store, locking around the write",
    "We fixed the race in the session store by locking around the write",
    "Fixed the session store race by locking around the write",
    "Fixed the race in the session store by adding a lock around the write",
    "Fixed the race in the session store: lock around the write",
)


def test_a_setting_supersedes_the_nine_wordings_of_one_fix() -> None:
    """A group above the limit of a run is not left whole: each run takes a part of it."""
    settings = Settings(duplicate_similarity="0.95")
    with Memory.open(":memory:", settings=settings, clock=FixedClock(NOW)) as memory:
        store_wordings(memory, *NINE)

        left = [len(memory.maintain("duplicates").done) and len(memory.browse()) for _ in range(3)]

        assert left == [5, 2, 0]


def test_the_background_supersedes_as_often_as_a_setting_says() -> None:
    """Every five minutes, as siftcoder does, instead of once a day."""
    settings = Settings(duplicate_similarity="0.95", maintain_every=5)
    clock = FixedClock(NOW)
    with Memory.open(":memory:", settings=settings, clock=clock) as memory:
        store_wordings(memory, *NINE)
        assert memory.maintain_due() is not None
        assert len(memory.browse()) == 5

        memory.maintain_due()
        assert len(memory.browse()) == 5
        clock.forward(minutes=6)
        memory.remember("The cranes of the harbour are painted blue")
        memory.maintain_due()

        assert len(memory.browse()) == 3
