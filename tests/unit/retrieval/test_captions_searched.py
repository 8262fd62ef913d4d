"""Captions are searched as the text is: by their words and by their meaning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bethink import Memory
from bethink.core.speakers import own_caption, searched_text
from bethink.model import Draft
from bethink.models import open_embedder
from rows import each_row

TITLED = {"text": "Use PostgreSQL for concurrent writers", "caption": "Database choice"}
PROFILES = ("default", "remind", "abmind", "memind-simple", "linksee", "siftcoder")


@pytest.fixture(scope="module")
def titled(embedder) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=embedder) as memory:
        memory.remember_many([TITLED, *(f"Lock {n} was painted {n} times" for n in range(20))])
        yield memory


@each_row("profile", PROFILES)
def test_a_caption_finds_its_memory(titled, profile):
    """In every profile, by words that the text does not have."""
    answer = titled.recall("Database choice", profile=profile)

    assert answer.hits[0].item.text == TITLED["text"]


def test_a_caption_counts_in_the_meaning():
    """The vector is that of the caption and the text, also after a correction and a reindex."""
    embedder = open_embedder("hash")
    with Memory.open(":memory:", embedder=embedder) as memory:
        stored = memory.remember(**TITLED).id
        untitled = memory.remember("Lunch is at noon").id
        memory.update(untitled, caption="Canteen hours")

        vectors = memory.store.vectors.embeddings([stored, untitled], embedder.model)

    wanted = embedder.embed(["Database choice\nUse PostgreSQL for concurrent writers",
                             "Canteen hours\nLunch is at noon"])  # fmt: skip
    for found, expected in zip((stored, untitled), wanted, strict=True):
        assert vectors[found].vector @ expected.vector == pytest.approx(1.0, abs=1e-3)


def test_a_corrected_caption_is_found_and_the_old_one_is_not(titled):
    """The index follows the revision."""
    item = titled.remember("Ferries leave every hour", caption="Timetable").id
    titled.update(item, caption="Schedule")

    assert titled.recall("Schedule").hits[0].item.id == item
    assert item not in [hit.item.id for hit in titled.recall("Timetable", profile="abmind").hits]


@each_row(
    ("draft", "own"),
    [
        (Draft("We met. Tea was served.", caption="We met."), ""),
        (Draft("Tea was served", speaker="Ann", caption="Ann: Tea was served"), ""),
        (Draft("Tea was served in the gar den", caption="Tea was served in the g…"), ""),
        (Draft("Tea was served"), ""),
        (Draft("Tea was served", caption="Breakfast"), "Breakfast"),
    ],
)
def test_a_caption_that_repeats_the_text_adds_nothing(draft, own):
    """What is made from the text itself would only count its words twice."""
    assert own_caption(draft) == own
    assert searched_text(draft).startswith(own)
