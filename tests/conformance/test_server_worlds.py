"""On a server, too: nothing above a ceiling, and nothing of another space, is ever told."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import test_people_worlds as people
import test_twin_histories as histories
import test_twin_worlds as worlds

from bethink import Memory
from bethink.models import open_embedder
from postgres_server import CITUS, open_space
from rows import each_row

LIMIT_S = 1200 if CITUS else 180


@pytest.fixture(autouse=True)
def _on_a_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The worlds open their memories on a server."""
    opened: list[Memory] = []

    class OnServer(Memory):
        @classmethod
        def open(cls, _: str, *, embedder: str, **rest: Any) -> Any:  # type: ignore[override]
            store = open_space(tmp_path / f"{len(opened)}")
            memory = Memory(store, embedder=open_embedder(embedder), **rest)
            memory.session.open_shelf = _Shelves(tmp_path / f"shelves of {len(opened)}")
            opened.append(memory)
            return memory

    monkeypatch.setattr(worlds, "Memory", OnServer)
    monkeypatch.setattr(worlds.ids, "_random", lambda _: 1)
    # Of five neighbours each query and each profile has one; in memory all of them are asked.
    some = partial(worlds.python_operations, one_of=5)
    monkeypatch.setattr(worlds, "python_operations", some)
    yield
    for memory in opened:
        memory.close()


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("seed", [1])
def test_twin_worlds_answer_alike(seed: int) -> None:
    """What is above the ceiling changes no answer below it, nor is it changed from there."""
    worlds.test_twin_worlds_answer_alike_in_python(seed)


class _Shelves:
    """Opens what only some people see on the server, too."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, set[str]()

    def __call__(self, key: str, *, create: bool) -> Any:
        if not create and key not in self._made:
            return None
        self._made.add(key)
        return open_space(self._folder / key)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("seed", [1])
def test_worlds_of_people_answer_alike(seed: int, tmp_path: Path) -> None:
    """What others keep for themselves changes no answer, nor is it changed."""
    people.test_worlds_of_people_answer_alike_in_python(seed, tmp_path)


@pytest.mark.timeout(LIMIT_S)
def test_a_space_tells_nothing_of_another(tmp_path: Path) -> None:
    """What other spaces of the same database hold changes no answer of this one."""
    worlds.test_a_space_tells_nothing_of_another(tmp_path)


@pytest.mark.timeout(LIMIT_S)
@each_row("name", histories.HISTORIES)
def test_a_history_above_leaves_no_trace_below(name: str, tmp_path: Path) -> None:
    """The histories in which something once was left behind."""
    steps = histories.HISTORIES[name]
    histories.live_through(steps, _OnServer(tmp_path), compare_each=False)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("seed", range(2))
def test_any_history_above_leaves_no_trace_below(seed: int, tmp_path: Path) -> None:
    """Whatever is done in whatever order."""
    steps = histories.random_history(seed, 16)
    histories.live_through(steps, _OnServer(tmp_path), compare_each=False)


class _OnServer:
    """Opens memories on a server, each in a space of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._opened = folder, 0

    def __call__(self, **given: Any) -> Memory:
        self._opened += 1
        store = open_space(self._folder / f"history {self._opened}")
        return Memory(store, embedder=open_embedder("none"), **given)


def test_a_check_below_the_ceiling_tells_nothing() -> None:
    """It is of the whole store; what is wrong with a secret, and how much there is, is not said."""
    worlds.test_a_check_below_the_ceiling_is_right_and_tells_nothing()


@pytest.mark.timeout(LIMIT_S)
def test_what_the_owner_maintains_leaves_no_trace_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its lines in the journal are of one classification each, here as well."""
    monkeypatch.setattr(histories, "Memory", worlds.Memory)
    histories.compare_maintained(1)
