"""What left recall in favour of something that is erased comes back: nothing falls into a hole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bethink import Memory
from bethink.errors import Refused
from bethink.testing import FixedClock
from cold_memories import add_cold, open_memory
from corpus import NOW
from fallible import Dying, Killed


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with open_memory(clock) as opened:
        yield opened


def consolidate(memory: Memory) -> str:
    """The learning that a run makes or uses."""
    (done,) = memory.maintain("consolidate", share=1.0, clock_is_right=True).done
    assert done.successor is not None
    return done.successor


def is_live(memory: Memory, *ids: str) -> list[bool]:
    return [memory.get(one).live_to is None for one in ids]


def test_erasing_the_learning_brings_its_originals_back(memory: Memory, clock: FixedClock) -> None:
    """Who erases a summary does not mean what it summed up."""
    ids = add_cold(memory, clock, 3)
    learning = consolidate(memory)

    done = memory.forget(learning, erase=True)

    assert sorted(done.restored) == sorted(ids)
    assert is_live(memory, *ids) == [True] * 3


def test_a_learning_that_was_used_again_is_known_for_it(memory: Memory, clock: FixedClock) -> None:
    """Restored and consolidated once more, into the learning of an earlier run."""
    ids = add_cold(memory, clock, 3)
    first = consolidate(memory)
    memory.restore(*ids)
    again = consolidate(memory)

    done = memory.forget(ids[0], erase=True)

    assert first == again
    assert sorted(done.restored) == sorted(ids[1:])
    assert is_live(memory, *ids[1:]) == [True, True]


def test_what_another_learning_stands_for_stays_with_it(memory: Memory, clock: FixedClock) -> None:
    """Two of them once stood for the memory; only the last one's end brings it back."""
    ids = add_cold(memory, clock, 2)
    first = consolidate(memory)
    memory.restore(*ids)
    memory.update(ids[0], text="Atlas was painted green by the crew")
    second = consolidate(memory)
    assert first != second

    memory.forget(first, erase=True)
    still = is_live(memory, *ids)
    memory.forget(second, erase=True)

    assert still == [False, False]
    assert is_live(memory, *ids) == [True, True]


def test_what_was_forgotten_by_hand_stays_so(memory: Memory, clock: FixedClock) -> None:
    """It was not ended in anybody's favour."""
    ids = add_cold(memory, clock, 3)
    learning = consolidate(memory)
    memory.restore(ids[0])
    memory.forget(ids[0])

    memory.forget(learning, erase=True)

    assert is_live(memory, *ids) == [False, True, True]


def test_a_run_that_did_nothing_can_be_named(memory: Memory, clock: FixedClock) -> None:
    """Begun and cut off before its first step: it is listed, and undoing it is refused."""

    add_cold(memory, clock, 3)
    dying = Memory(Dying(memory.store, 1), clock=lambda: NOW)  # type: ignore[arg-type]
    with pytest.raises(Killed):
        dying.maintain("consolidate", share=1.0, clock_is_right=True)

    (begun,) = memory.maintenance()

    with pytest.raises(Refused, match="no change that can be undone"):
        memory.undo_run(begun.run)
