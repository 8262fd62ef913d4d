"""Where the rules for what is remembered begin and end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bethink import Memory
from bethink.errors import NotFound, SomeRefused
from corpus import days_ago
from rows import each_row

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
TEXT = "The standup was moved to ten"


@each_row("field", ["text", "caption", "original", "speaker", "topic", "source"])
def test_a_secret_is_taken_out_of_every_field(memory: Memory, field: str) -> None:
    """Wherever words can stand, a token can stand, and is not kept."""
    written = {"text": TEXT, field: f"said with {SECRET}"}

    kept = memory.remember(**written)

    assert kept.redacted == ("github-token",)
    assert getattr(memory.get(kept.id), field) == "said with [redacted:github-token]"
    assert SECRET not in repr(list(memory.export()))


@pytest.mark.parametrize("field", ["tags", "entities"])
def test_a_secret_is_taken_out_of_every_list(memory: Memory, field: str) -> None:
    """Tags and names are words as well."""
    kept = memory.remember(TEXT, **{field: [SECRET]})

    assert kept.redacted == ("github-token",)
    assert SECRET not in repr(list(memory.export()))


@each_row(
    ("apart", "outcome"),
    [
        (timedelta(seconds=1), "stored"),
        (timedelta(milliseconds=999), "duplicate"),
        (timedelta(0), "duplicate"),
    ],
)
@each_row("at_once", [True, False])
def test_the_same_words_a_second_apart_are_two_memories(
    memory: Memory, apart: timedelta, outcome: str, at_once: bool
) -> None:
    """From a whole second on, in whichever order, in one batch or in two."""
    drafts = [
        {"text": TEXT, "occurred_at": days_ago(3)},
        {"text": TEXT, "occurred_at": days_ago(3) - apart},
    ]

    kept = (
        memory.remember_many(drafts) if at_once else [memory.remember(**draft) for draft in drafts]
    )

    assert [one.status for one in kept] == ["stored", outcome]


def test_a_memory_may_be_made_from_one_before_it_in_the_batch(memory: Memory) -> None:
    """What is stored together can rest on each other, in its order."""
    first = {"text": TEXT, "id": "standup-moved"}
    second = {"text": "Meetings move without notice", "derives_from": ["standup-moved"]}

    kept = memory.remember_many([first, second])

    assert [(link.type, link.dst.id) for link in memory.links(kept[1].id)] == [
        ("derives_from", "standup-moved")
    ]


def test_a_memory_is_not_made_from_one_after_it(memory: Memory) -> None:
    """Nor from itself: it is refused and named, the others of the batch are stored."""
    first = {"text": TEXT, "id": "standup-moved"}
    second = {"text": "Meetings move without notice", "derives_from": ["standup-moved"]}

    with pytest.raises(SomeRefused, match="number 1: there is no memory 'standup-moved'"):
        memory.remember_many([second, first])
    assert [item.id for item in memory.browse()] == ["standup-moved"]

    itself = {"text": "A note of its own", "id": "own-note", "derives_from": ["own-note"]}
    with pytest.raises(NotFound, match="own-note"):
        memory.remember_many([itself])
    assert [item.id for item in memory.browse()] == ["standup-moved"]
