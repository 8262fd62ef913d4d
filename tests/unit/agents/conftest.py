"""A memory with a place of its own for what is kept of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink.config.settings import Settings
from bethink.memory import Memory
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def kept(tmp_path: Path, project: Path, embedder: Embedder, clock: FixedClock) -> Iterator[Memory]:
    """An empty memory of a project, in a folder of its own."""
    settings = Settings(data_dir=tmp_path / "data", project=project, actor="claude-code")
    with Memory.open(
        path=tmp_path / "m.db", embedder=embedder, settings=settings, clock=clock
    ) as opened:
        yield opened
