"""A server of embeddings that is down: words do, and the gate still keeps its watch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink import Memory

NOTES = (
    "The staging environment resets every night",
    "Ana Ruiz owns the billing service",
    "Tests run with make test",
)


@pytest.fixture
def down(tmp_path: Path, embedder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """Memories with vectors, opened with a server that nobody listens for."""
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    with Memory.open(path=tmp_path / "space.db", embedder=embedder) as filled:
        filled.remember_many(NOTES)
    with Memory.open(path=tmp_path / "space.db", embedder="ollama:any") as opened:
        yield opened


def test_what_has_the_words_is_found(down: Memory) -> None:
    """The channel that needed the model is degraded, and nothing else is."""
    answer = down.recall("who owns billing?")

    assert answer.hits[0].item.text == "Ana Ruiz owns the billing service"
    assert [part.part for part in answer.degraded] == ["channel.dense"]


def test_one_shared_word_is_not_told_as_found(down: Memory) -> None:
    """It may be related, whether or not the model can be reached."""
    answer = down.recall("the staging of a Shakespeare drama in London")

    assert answer.status == "unsure"
