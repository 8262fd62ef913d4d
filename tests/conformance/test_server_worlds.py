"""On a server, too: nothing above a ceiling, and nothing of another space, is ever told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import test_twin_worlds as worlds

from bethink import Memory
from bethink.models import open_embedder
from postgres_server import open_space


@pytest.fixture(autouse=True)
def _on_a_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The worlds open their memories on a server."""
    opened: list[Memory] = []

    class OnServer(Memory):
        @classmethod
        def open(cls, _: str, *, embedder: str, **rest: Any) -> Any:  # type: ignore[override]
            store = open_space(tmp_path / f"{len(opened)}")
            opened.append(Memory(store, embedder=open_embedder(embedder), **rest))
            return opened[-1]

    monkeypatch.setattr(worlds, "Memory", OnServer)
    monkeypatch.setattr(worlds.ids, "_random", lambda _: 1)
    yield
    for memory in opened:
        memory.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [1])
def test_twin_worlds_answer_alike(seed: int) -> None:
    """What is above the ceiling changes no answer below it, nor is it changed from there."""
    worlds.test_twin_worlds_answer_alike_in_python(seed)


@pytest.mark.timeout(180)
def test_a_space_tells_nothing_of_another(tmp_path: Path) -> None:
    """What other spaces of the same database hold changes no answer of this one."""
    worlds.test_a_space_tells_nothing_of_another(tmp_path)
