"""Fixtures every kind of test may use."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

# No setting of Bethink: under that name what the tests start would take it for a misspelt one.
if given := os.environ.pop("BETHINK_TEST_CITUS", ""):
    os.environ["TEST_CITUS_URL"] = given

from bethink import Memory
from bethink.models.name_model import NameModel, name_model
from bethink.models.update_model import UpdateModel, update_model
from bethink.ports import Embedder, FoundName, PairVerdict
from bethink.testing import FixedClock
from corpus import CONVERSATION, NOTES, NOW
from shared_embedder import SHARED, encoded_once

pytest_plugins = ["rows", "slow"]

# Tests start many processes: as with `make test`, none of them compiles everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# As the command has it: what tests make is rarely garbage that only a search finds.
gc.set_threshold(100_000, 50, 50)


def _memory_disk() -> str | None:
    """A disk in memory with room, on which programs may run; Docker's own has neither."""
    place = Path("/dev/shm")
    if "TMPDIR" in os.environ or not place.is_dir() or not os.access(place, os.W_OK):
        return None
    found = os.statvfs(place)
    roomy = found.f_bavail * found.f_frsize >= 4 << 30
    return str(place) if roomy and not found.f_flag & os.ST_NOEXEC else None


# A store waits for its disk with every commit: where it can be that is one in memory. What a
# disk does that fails is told by the tests that make it fail.
tempfile.tempdir = _memory_disk()

# What passed here must pass there: the examples are the same every time. Looking for new
# ones is `make shuffle`.
settings.register_profile("fixed", deadline=None, max_examples=30, derandomize=True)
settings.register_profile("shuffled", deadline=None, max_examples=60)
settings.load_profile(os.environ.get("TEST_EXAMPLES", "fixed"))


class _JudgedOnce:
    """The model of two memories, asked once for each pair: tests store the same texts often."""

    def __init__(self, model: UpdateModel) -> None:
        self._judge = model.judge
        self._known: dict[tuple[str, str], PairVerdict] = {}

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        self._known.update(zip(unknown, self._judge(unknown), strict=True))
        return [self._known[pair] for pair in pairs]


class _FoundOnce:
    """The model of names, asked once for each text."""

    def __init__(self, model: NameModel) -> None:
        self._find = model.find
        self._known: dict[str, tuple[FoundName, ...]] = {}

    def __call__(self, text: str) -> list[FoundName]:
        if text not in self._known:
            self._known[text] = tuple(self._find(text))
        return list(self._known[text])


update_model.judge = _JudgedOnce(update_model)  # type: ignore[method-assign]
name_model.find = _FoundOnce(name_model)  # type: ignore[method-assign]


def pytest_collection_finish() -> None:
    """Some hundred thousand objects of collected tests are not looked through for garbage."""
    gc.collect()
    gc.freeze()


# The tests of models ask the encoder itself.
_ENCODERS_OWN = ("models", "test_embedder_laws.py", "test_worker_equality.py")


@pytest.fixture(scope="module", autouse=True)
def _encoded_once(request: pytest.FixtureRequest) -> Iterator[None]:
    with nullcontext() if {*request.path.parts} & {*_ENCODERS_OWN} else encoded_once():
        yield


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """The default embedder, loaded once."""
    return SHARED


@pytest.fixture
def memory(embedder: Embedder) -> Iterator[Memory]:
    """An empty memory whose clock stands still."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        yield opened


@pytest.fixture(scope="module")
def filled(embedder: Embedder) -> Iterator[Memory]:
    """The shared corpus; for tests that only read."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        stored = opened.remember_many([*NOTES, *CONVERSATION])
        opened.put_thread("Keys, tokens and where they live", [one.id for one in stored[::3]])
        opened.put_thread("The standup", [one.id for one in stored[-8:]], kind="work")
        yield opened
