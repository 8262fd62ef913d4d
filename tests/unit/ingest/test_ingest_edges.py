"""Where the rules for what is remembered begin and end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bethink import Memory
from bethink.errors import NotFound, SomeRefused
from bethink.ingest.facts import extract_fact
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


@pytest.mark.parametrize(("words", "is_fact"), [(40, True), (41, False)])
def test_a_sentence_states_a_fact_up_to_forty_words(words: int, is_fact: bool) -> None:
    """What goes on longer is more than one fact."""
    said = ["The", "deploy", "key", "is", "in", "vault", "B", "because"]
    text = " ".join([*said, *["so"] * (words - len(said))])

    assert (extract_fact(text) is not None) is is_fact


@pytest.mark.parametrize(("length", "is_fact"), [(300, True), (301, False)])
def test_a_sentence_states_a_fact_up_to_300_characters(length: int, is_fact: bool) -> None:
    """However few words they make."""
    text = "The deploy key is in vault B, ".ljust(length, "x")

    assert (extract_fact(text) is not None) is is_fact


@pytest.mark.parametrize(("words", "is_fact"), [(8, True), (9, False)])
def test_a_value_has_up_to_eight_words(words: int, is_fact: bool) -> None:
    """A longer one is a story."""
    value = ["Bright", "Red", "Blue", "Green", "Grey", "Pink", "Teal", "Cyan", "Lime"][:words]

    assert (extract_fact(f"The team's motto is {' '.join(value)}") is not None) is is_fact


def test_a_schedule_is_read_from_the_word_after_its_preposition() -> None:
    """ "scheduled for Friday" states Friday, a single word, as the time."""
    fact = extract_fact("The release is scheduled for Friday")

    assert fact is not None
    assert fact.value == "friday"
