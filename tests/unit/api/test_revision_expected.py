"""A change that expects a revision: nobody overwrites what came in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import Conflict
from bethink.ports import PutResult, Record
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


Change = Callable[[Memory, str], Any]


@pytest.mark.parametrize(
    "change",
    [
        lambda memory, item: memory.boost(item, 0.5),
        lambda memory, item: memory.update(item, tags=["mine"]),
    ],
    ids=["boost", "update"],
)
def test_a_change_without_a_revision_is_repeated(
    tmp_path: Path, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others who change the same memory meanwhile are nothing a caller has to know of."""
    settings = Settings(embedder="none")
    path = tmp_path / "space.db"
    with (
        Memory.open("s", path=path, settings=settings) as memory,
        Memory.open("s", path=path, settings=settings) as other,
    ):
        stored = memory.remember("The deploy runs on Monday").id
        put, meanwhile = memory.store.items.put, iter(range(3))

        def put_second(records: Sequence[Record], **about: Any) -> list[PutResult]:
            if next(meanwhile, None) is not None:
                other.boost(stored, 1.0)
            return put(records, **about)

        monkeypatch.setattr(memory.store.items, "put", put_second)
        change(memory, stored)

        item = memory.get(stored)
        assert item.rev == 5
        assert item.relevance == (3.5 if not item.tags else 3.0)


def test_a_conflict_that_is_no_race_is_told(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeating cannot help where nobody else has changed the memory."""
    stored = memory.remember("The deploy runs on Monday").id
    calls = []

    def refuse(records: Sequence[Record], **about: Any) -> list[PutResult]:
        calls.append(records)
        raise Conflict("no")

    monkeypatch.setattr(memory.store.items, "put", refuse)
    with pytest.raises(Conflict):
        memory.boost(stored)
    assert len(calls) == 1


def test_the_same_values_again_are_no_revision(memory: Memory) -> None:
    """Neither in the history nor in the journal; one other value is."""
    stored = memory.remember("The key is in vault A", tags=("hw",), topic="print", importance=0.7)
    same: dict[str, Any] = {"text": "The key is in vault A", "tags": ["hw"], "topic": "print"}
    lines = memory.events(limit=99)

    for changes in ({}, same, same | {"importance": 0.7, "pinned": False}, {"force": True}):
        assert memory.update(stored.id, **changes).rev == 1
    assert memory.update(stored.id, revision=1, **same).rev == 1
    with pytest.raises(Conflict):
        memory.update(stored.id, revision=2, **same)
    assert memory.events(limit=99) == lines

    assert memory.update(stored.id, **same | {"tags": ["hw", "office"]}).rev == 2
