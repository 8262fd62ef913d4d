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
from bethink.models.rerank.cross_encoder import CrossEncoder
from bethink.ports import Reranker
from bethink.testing import check_reranker
from rerank_server import reranking
from rows import each_row
from tiny_bert import make_tiny_reader

HEAVY = ("numpy", "onnx", "onnxruntime", "tokenizers", "http.client", "ssl")
# What each name or provider is tried with; the cross-encoder's folder is made here.
SAMPLES = {
    "overlap": "overlap",
    "cross-encoder": "cross-encoder",
    "cross-encoder:FOLDER": "cross-encoder:{folder}",
    "http://HOST/PATH": "{url}/rerank",
    "https://HOST/PATH": "https://localhost/rerank",
}
READING = ("overlap", "cross-encoder:FOLDER", "http://HOST/PATH")
ASKED = "where does the deploy key live?"
TEXTS = ["the deploy key lives in vault b", "anna prefers tabs", "", "key " * 200, "鍵 Ключ 🔑"]

texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), max_size=6)


@cache
def opened(label: str) -> Reranker:
    reader = open_reranker(SAMPLES[label].format(**_places()))
    assert reader is not None
    return reader


def _places() -> dict[str, str]:
    return {"folder": str(_FOLDER[0]), "url": _URL[0]}


_FOLDER: list[Path] = []
_URL: list[str] = []


@contextmanager
def _readers() -> Iterator[None]:
    with TemporaryDirectory() as folder, reranking() as server:
        _FOLDER[:] = [make_tiny_reader(Path(folder) / "reader")]
        _URL[:] = [server.url]
        opened.cache_clear()
        yield


@pytest.fixture(scope="module", autouse=True)
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A model folder and a server for as long as these tests run."""
    with pytest.MonkeyPatch.context() as patch, _readers():
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=READING)
def reader(request: pytest.FixtureRequest) -> Reranker:
    return ready(request.param)


def ready(label: str) -> Reranker:
    reader = opened(label)
    if isinstance(reader, CrossEncoder):
        pytest.importorskip("onnx", reason="the extra rerank is not installed")
        pytest.importorskip("onnxruntime", reason="the extra rerank is not installed")
    return reader


each = pytest.mark.parametrize("label", READING)


def test_every_reranker_is_tried() -> None:
    """A new one needs a sample, or no law is tested on it."""
    assert {label.partition(":")[0] for label in SAMPLES} == set(RERANKERS)


@each_row("label", SAMPLES)
def test_opening_loads_nothing(label: str) -> None:
    """Opening imports nothing heavy, reads no file and asks no server."""
    name = SAMPLES[label].format(folder="nowhere", url="http://nowhere.invalid")
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
    check_reranker(ready(label))


@each
@settings(deadline=None, max_examples=25)
@given(asked=st.text(st.characters(exclude_categories=["Cs"]), max_size=60), told=texts)
def test_the_laws_hold_for_any_texts(label: str, asked: str, told: list[str]) -> None:
    """Whatever is asked and stored."""
    check_reranker(ready(label), query=asked, texts=[*TEXTS, *told])


def test_half_a_character_is_read_or_refused(reader: Reranker) -> None:
    """A lone surrogate never ends in a traceback from inside."""
    for asked, told in (("abc\ud800def", TEXTS), (ASKED, ["abc\ud800def"])):
        with suppress(Refused):
            assert len(reader(asked, told)) == len(told)
