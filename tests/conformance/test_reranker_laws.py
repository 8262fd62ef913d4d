"""What every reranker promises, whoever reads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.errors import Refused
from bethink.models.rerank import RERANKERS, open_reranker
from bethink.ports import Reranker
from bethink.testing import check_reranker
from rerank_server import reranking
from rows import each_row
from sentence_transformers_stand_in import stand_in_library

HEAVY = ("numpy", "onnx", "onnxruntime", "torch", "sentence_transformers", "http.client", "ssl")
# What each name or provider is tried with; a small library stands in for the cross-encoder's.
SAMPLES = {
    "overlap": "overlap",
    "cross-encoder": "cross-encoder",
    "cross-encoder:NAME": "cross-encoder:name",
    "http://HOST/PATH": "{url}/rerank",
    "https://HOST/PATH": "https://localhost/rerank",
}
READING = ("overlap", "cross-encoder:NAME", "http://HOST/PATH")
ASKED = "where does the deploy key live?"
TEXTS = ["the deploy key lives in vault b", "anna prefers tabs", "", "key " * 200, "鍵 Ключ 🔑"]

texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), max_size=6)


@cache
def opened(label: str) -> Reranker:
    reader = open_reranker(SAMPLES[label].format(url=_URL[0]))
    assert reader is not None
    return reader


_URL: list[str] = []


@contextmanager
def _readers() -> Iterator[None]:
    with TemporaryDirectory() as folder, stand_in_library(Path(folder)), reranking() as server:
        _URL[:] = [server.url]
        opened.cache_clear()
        yield


@pytest.fixture(scope="module", autouse=True)
def readers() -> Iterator[None]:
    """A library and a server for as long as these tests run."""
    with _readers():
        yield


@pytest.fixture(params=READING)
def reader(request: pytest.FixtureRequest) -> Reranker:
    return opened(request.param)


each = pytest.mark.parametrize("label", READING)


def test_every_reranker_is_tried() -> None:
    """A new one needs a sample, or no law is tested on it."""
    assert {label.partition(":")[0] for label in SAMPLES} == set(RERANKERS)


@each_row("label", SAMPLES)
def test_opening_loads_nothing(label: str) -> None:
    """Opening imports nothing heavy, reads no file and asks no server."""
    name = SAMPLES[label].format(url="http://nowhere.invalid")
    code = (
        "import sys\n"
        "from bethink.models.rerank import open_reranker\n"
        f"assert open_reranker({name!r}) is not None\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[]", done.stderr


@each
def test_a_reranker_keeps_the_laws(label: str) -> None:
    """Scores from 0 to 1, the same at every call and in whatever order the texts come."""
    check_reranker(opened(label))


@each
@settings(deadline=None, max_examples=25)
@given(asked=st.text(st.characters(exclude_categories=["Cs"]), max_size=60), told=texts)
def test_the_laws_hold_for_any_texts(label: str, asked: str, told: list[str]) -> None:
    """Whatever is asked and stored."""
    check_reranker(opened(label), query=asked, texts=[*TEXTS, *told])


def test_half_a_character_is_read_or_refused(reader: Reranker) -> None:
    """A lone surrogate never ends in a traceback from inside."""
    for asked, told in (("abc\ud800def", TEXTS), (ASKED, ["abc\ud800def"])):
        with suppress(Refused):
            assert len(reader(asked, told)) == len(told)
