"""A change that expects a revision: nobody overwrites what came in between."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.errors import Conflict
from corpus import NOW


def test_an_expected_revision_must_be_the_one_that_stands(memory: Memory) -> None:
    """The second of two who have read the same is told so, and nothing is lost."""
    stored = memory.remember("The deploy runs on Monday")

    changed = memory.update(stored.id, revision=1, text="The deploy runs on Tuesday")
    with pytest.raises(Conflict, match="no longer in revision 1"):
        memory.update(stored.id, revision=1, text="The deploy runs on Friday")

    assert changed.rev == 2
    assert memory.get(stored.id).text == "The deploy runs on Tuesday"


def test_what_was_forgotten_is_in_no_revision(memory: Memory) -> None:
    """Who expects one is told that something came in between."""
    stored = memory.remember("The deploy runs on Monday")
    memory.forget(stored.id)

    with pytest.raises(Conflict, match="no longer in revision 1"):
        memory.update(stored.id, revision=1, text="The deploy runs on Friday")


def test_a_memory_tells_the_time_by_its_own_clock(memory: Memory) -> None:
    """The same that its memories are dated by."""
    assert memory.now == NOW
