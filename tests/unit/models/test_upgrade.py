"""A space that was filled with the embedder of an earlier version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink import Memory
from bethink.config.settings import load_settings
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.models.embed.hashing import HashEmbedder
from bethink.testing import FixedClock
from corpus import NOTES, NOW

QUESTION = "where is the deploy key?"
NOTE = "The deploy key lives in vault B"


class FormerEmbedder(HashEmbedder):
    """Vectors under the name and of the size that the former default had."""

    model = "wordllama-l2-supercat-256"
    dim = 256


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file whose vectors and entities are all the former embedder's."""
    path = tmp_path / "old.db"
    with Memory.open(path=path, embedder=FormerEmbedder(), clock=FixedClock(NOW)) as memory:
        memory.remember_many([NOTE, *NOTES])
    return path


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    """That file, opened with the default."""
    with Memory.open(path=path, clock=FixedClock(NOW)) as opened:
        yield opened


def test_it_answers_by_words_and_says_what_to_do(memory):
    """Nothing fails: the answer is there, and the remedy with it."""
    answer = memory.recall(QUESTION)

    assert answer.hits[0].item.text == NOTE
    lost = [problem for problem in answer.degraded if "dense" in str(problem)]
    assert "wordllama-l2-supercat-256" in str(lost)
    assert "bethink reindex" in str(lost)


def test_it_can_be_written_to(memory):
    """What is stored, changed and forgotten meanwhile is found by words."""
    new = memory.remember("The spare deploy key lies in drawer 7").id
    memory.update(new, text="The spare deploy key lies in drawer 9")

    assert new in [hit.item.id for hit in memory.recall("spare deploy key").hits]


def test_reindexing_makes_all_vectors_anew(memory):
    """Then meaning counts again and no vector of the former embedder is left."""
    memory.remember("The spare deploy key lies in drawer 7")

    memory.reindex()

    answer = memory.recall(QUESTION)
    assert not answer.degraded
    assert list(memory.stats()["models"]) == [EncoderEmbedder.model]
    assert memory.reindex() == 0


def test_reindexing_tells_how_far_it_is(memory):
    """Memories done, of all that lack a vector; the last call says all of them."""
    memory.remember("The spare deploy key lies in drawer 7")
    told = []

    made = memory.reindex(progress=lambda done, total: told.append((done, total)))

    assert made == 1 + len(NOTES)
    assert told[-1] == (made, made)


def test_an_import_tells_how_far_its_vectors_are(memory):
    """An export has none: they are made at the end of the import."""
    told = []
    with Memory.open(":memory:") as other:
        stored = other.import_(memory.export(), progress=lambda *counts: told.append(counts))

    assert stored == 1 + len(NOTES)
    assert told[-1] == (stored, stored)


def test_maintenance_makes_them_too(memory):
    """A run works on such a space, and reindexing is part of it."""
    memory.maintain()

    assert not memory.recall(QUESTION).degraded


def test_the_former_setting_is_the_default_now(tmp_path: Path):
    """A file that names it is read as before."""
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    named = load_settings(tmp_path, {**home, "BETHINK_EMBEDDER": "wordllama"})

    assert named.embedder == load_settings(tmp_path, home).embedder == "encoder"
