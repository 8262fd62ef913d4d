"""Remind's forgetting: ticks, grace and regaining, as the original's loop would do them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.ports import UsageDecay
from bethink.retrieval.profile import load_profile
from bethink.retrieval.stages.assemble import Track
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock
from compass import Compass
from corpus import NOW
from records import at, record
from thorough import examples

REMIND = load_profile("remind")
RATE, GRACE_S, REGAIN = 0.1, 60.0, 0.3
NAMES = ("a", "b", "c")


@dataclass
class Loop:
    """The original: every so many recalls it goes through all concepts and lowers each."""

    interval: int
    left: dict[str, float] = field(default_factory=dict)
    last: dict[str, datetime] = field(default_factory=dict)
    recalls: int = 0

    def recall(self, returned: Mapping[str, float], now: datetime) -> None:
        for name, score in returned.items():
            self.left[name] = min(1.0, self.left[name] + REGAIN * score)
            self.last[name] = now
        self.recalls += 1
        if self.recalls % self.interval == 0:
            for name, left in self.left.items():
                used = self.last.get(name)
                if used is None or (now - used).total_seconds() >= GRACE_S:
                    self.left[name] = max(0.0, left - RATE)


def fading(interval: int, returned: Mapping[str, float]) -> UsageDecay:
    gains = {name: REGAIN * score for name, score in returned.items()}
    return UsageDecay(interval, RATE, GRACE_S, gains)


def left(store: SqliteStore) -> dict[str, float]:
    return {name: item.decay for name, item in store.items.get(list(NAMES)).items()}


returned = st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1), max_size=2)
happenings = st.lists(
    st.tuples(st.sampled_from((1, 30, 60, 61, 3600)), st.sampled_from(NAMES) | returned),
    max_size=40,
)


@settings(max_examples=examples(60, 150))
@given(st.integers(1, 4), happenings)
def test_the_closed_form_is_the_loop(
    interval: int, happened: list[tuple[int, str | dict[str, float]]]
) -> None:
    """Whatever is stored and recalled when, every memory is left with what the loop leaves."""
    store, loop, now_s = SqliteStore.open(None, space="test"), Loop(interval), 0
    try:
        for seconds, what in happened:
            now_s += seconds
            now = at(seconds=now_s)
            if isinstance(what, str):
                if what not in loop.left:
                    store.items.put([record(what, stored_at=now)], actor="x", now=now)
                    loop.left[what] = 1.0
                continue
            known = {name: score for name, score in what.items() if name in loop.left}
            store.activity.note_use(list(known), now, fading=fading(interval, known))
            loop.recall(known, now)

        assert left(store) == pytest.approx(loop.left, abs=1e-8)
    finally:
        store.close()


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="test")
    opened.items.put([record("a"), record("b", level="insight")], actor="x", now=NOW)
    yield opened
    opened.close()


def recall(store: SqliteStore, times: int, seconds: float = 0.0, **returned: float) -> None:
    for _ in range(times):
        store.activity.note_use(list(returned), at(seconds=seconds), fading=fading(20, returned))


def test_every_twentieth_recall_takes_a_tenth(store: SqliteStore) -> None:
    """Not the nineteenth; nothing falls below 0."""
    recall(store, 19)
    assert left(store) == {"a": 1.0, "b": 1.0}

    recall(store, 1)
    assert left(store) == {"a": 0.9, "b": 0.9}

    recall(store, 20 * 12)
    assert left(store) == {"a": 0.0, "b": 0.0}


@pytest.mark.parametrize(("seconds", "expected"), [(59.9, 1.0), (60.0, 0.9)])
def test_what_was_just_recalled_is_spared(
    store: SqliteStore, seconds: float, expected: float
) -> None:
    """For sixty seconds."""
    recall(store, 1, a=0.5)
    recall(store, 19, seconds=seconds)

    assert left(store) == {"a": expected, "b": 0.9}


def test_a_recalled_memory_regains_by_its_score(store: SqliteStore) -> None:
    """0.3 × its score, up to 1."""
    recall(store, 60)
    recall(store, 1, seconds=1, a=0.5)
    recall(store, 1, seconds=1, b=1.0)
    assert left(store) == pytest.approx({"a": 0.7 + 0.15, "b": 1.0})

    recall(store, 1, seconds=2, a=1.0)
    assert left(store)["a"] == 1.0


def test_every_way_of_looking_sees_the_same(store: SqliteStore) -> None:
    """A tick touches no memory, and yet what was read before it is not believed after it."""
    from records import scope

    def seen() -> set[float]:
        found = store.search.entities(["person:x"], 5, scope()).matches
        looked = [*store.items.browse(scope(), limit=5), *(match.item for match in found)]
        return {
            item.decay
            for item in (*looked, *store.items.history("a"), *store.items.get(["b"]).values())
        }

    assert seen() == {1.0}
    recall(store, 20)
    assert seen() == {0.9}


def test_a_clock_that_goes_back_takes_nothing_twice(store: SqliteStore) -> None:
    """What a tick has taken is not taken again from who is recalled at an earlier time."""
    recall(store, 20, seconds=1000)
    recall(store, 1, seconds=0, a=0.0)

    assert left(store) == {"a": 0.9, "b": 0.9}
    recall(store, 19, seconds=500)
    assert left(store)["b"] == pytest.approx(0.8)


def test_forgetting_outlives_the_process(tmp_path: Path) -> None:
    """The count to the next tick, the ticks and what each memory has left."""
    path = tmp_path / "space.db"
    for times, expected in ((19, 1.0), (1, 0.9), (20, 0.8)):
        opened = SqliteStore.open(path, space="test")
        if not opened.admin.count():
            opened.items.put([record("a")], actor="x", now=NOW)
        recall(opened, times)
        assert opened.items.get(["a"])["a"].decay == expected
        opened.close()


def test_an_export_keeps_what_is_left(store: SqliteStore) -> None:
    """In an empty space with its ticks; in one with ticks of its own as it was."""
    recall(store, 45)
    recall(store, 1, a=0.1)
    fresh, other = (SqliteStore.open(None, space="test") for _ in range(2))
    other.items.put([record("c")], actor="x", now=NOW)
    recall(other, 60)
    for target in (fresh, other):
        target.admin.load(list(store.admin.dump()), actor="x", now=at(days=1))

    assert left(fresh) == left(store) == {"a": pytest.approx(0.83), "b": 0.8}
    assert left(other) == {**left(store), "c": pytest.approx(0.7)}
    # 46 recalls were counted: the 60th ticks, which spares "a" no more.
    recall(fresh, 14, seconds=90_000)
    assert left(fresh) == {"a": pytest.approx(0.73), "b": pytest.approx(0.7)}
    fresh.close()
    other.close()


# Through the walk


@pytest.fixture
def memory() -> Iterator[Memory]:
    likeness = {"near": 0.9, "other": 0.0}
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=Compass(likeness), clock=clock) as opened:
        opened.remember("near", id="near")
        opened.remember("other", id="other")
        clock.forward(hours=1)
        yield opened


def test_a_tracked_recall_counts_and_another_profile_does_not(memory: Memory) -> None:
    """Only the profile that fades makes memories fade."""
    open_ = replace(REMIND, gate=())
    for _ in range(20):
        memory.recall("near", profile="siftcoder", track=True)
        memory.recall("near", profile=open_, track=False)
    assert memory.get("other").decay == 1.0

    for _ in range(20):
        memory.recall("near", profile=open_, track=True)

    assert memory.get("other").decay == pytest.approx(0.9)
    assert memory.get("near").decay == 1.0


def test_a_recall_that_finds_nothing_counts_too(memory: Memory) -> None:
    """As in the original: it is recalls that are counted, not finds."""
    nothing = replace(REMIND, track=Track(decay_interval=2, decay_rate=0.25))
    for _ in range(2):
        memory.recall("zzz", profile=nothing, track=True, topic="nowhere", level="insight")

    assert memory.get("near").decay == 0.75


def test_forgetting_lowers_activation(memory: Memory) -> None:
    """What is left multiplies the next activation."""
    fast = replace(REMIND, gate=(), track=Track(decay_interval=1, decay_rate=0.5))
    first = memory.recall("near", profile=fast).hits[0]
    memory.store.activity.note_use([], NOW, fading=UsageDecay(1, 0.5, 60.0, {}))
    memory.store.activity.note_use([], memory.session.clock(), fading=UsageDecay(1, 0.5, 60.0, {}))
    memory.store.activity.note_use(
        ["near"], memory.session.clock(), fading=UsageDecay(0, 0.5, 60.0, {"near": 0.4})
    )
    again = memory.recall("near", profile=fast).hits[0]

    assert memory.get("near").decay == pytest.approx(0.4)
    assert again.score == pytest.approx(first.score * 0.4)
    assert again.reason("fuse.decay") is not None
