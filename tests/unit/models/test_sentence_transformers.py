"""Models by way of sentence-transformers.

The library is large and seldom installed, so a small one of the same name and shape
stands in for it in a process of its own; the last test is for the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from bethink.errors import MissingExtra
from bethink.models.embed.sentence_transformers import SentenceTransformersEmbedder
from rows import each_row
from tiny_bert import make_tiny_bert, tiny_weights

STAND_IN = '''
import numpy as np

class SentenceTransformer:
    """Vectors by length and vowels; notes how it was made."""

    def __init__(self, place, **options):
        if "gone" in place:
            raise OSError(f"{place} is no model")
        if "code" in place:
            raise ValueError("would run code")
        self.made = [place, options]

    def get_embedding_dimension(self):
        return 3

    def _vectors(self, texts, sign):
        if "explode" in texts:
            raise RuntimeError("out of memory")
        rows = [[len(text), sum(map(text.count, "aeiou")), sign] for text in texts]
        if "nan" in texts:
            rows = [[float("nan")] * 3 for _ in texts]
        return np.array(rows, dtype=np.float64)

    def encode_document(self, texts, convert_to_numpy, show_progress_bar):
        assert convert_to_numpy and not show_progress_bar
        return self._vectors(texts, 1)

    def encode_query(self, texts, convert_to_numpy, show_progress_bar):
        assert convert_to_numpy and not show_progress_bar
        return self._vectors(texts, -1)
'''


@pytest.fixture
def run(tmp_path: Path):
    """Runs code with the stand-in installed, at a version; gives what it prints."""

    def run(code: str, version: str = "6.2.0") -> str:
        (tmp_path / "sentence_transformers.py").write_text(STAND_IN)
        about = tmp_path / f"sentence_transformers-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Name: sentence-transformers\nVersion: {version}\n")
        opening = (
            "from bethink.errors import ModelError\n"
            "from bethink.models import open_embedder\n"
            "def open_(name): return open_embedder('sentence-transformers:' + name)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", opening + code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_without_the_library_the_extra_is_named():
    """When the first text comes, not before."""
    if find_spec("sentence_transformers"):
        pytest.skip("sentence-transformers is installed")
    embedder = SentenceTransformersEmbedder("all-MiniLM-L6-v2")

    assert embedder.model == "sentence-transformers:all-MiniLM-L6-v2"
    with pytest.raises(MissingExtra, match="is not installed") as caught:
        embedder.embed(["x"])
    assert caught.value.remedy.startswith("pip install '.[sentence-transformers]'")


def test_code_that_comes_with_a_model_is_never_run(run):
    """The library is told so, and one too old to listen is not used."""
    made = run("e = open_('name'); e.embed(['x']); print(e._network().made)")

    assert made == "['name', {'trust_remote_code': False}]"


def test_an_old_library_is_not_used(run):
    """Before version 6 it ran the code of local folders whatever one said."""
    said = run(
        "try: open_('name').embed(['x'])\nexcept ModelError as e: print(e.message, e.remedy)",
        version="5.3.1",
    )

    assert said == (
        "sentence-transformers 5.3.1 would run code that comes with a model "
        "pip install 'sentence-transformers>=6'"
    )


def test_questions_and_memories_are_read_each_in_their_way(run):
    """Vectors of length 1; zeros for an empty text, which the model never sees."""
    code = (
        "e = open_('name'); import json\n"
        "made = [x.vector.tolist() for x in (*e.embed(['aa', '', 'bcd']), e.embed_query('aa'))]\n"
        "print(json.dumps([e.dim, made, e.embed([]), e.embed_query('').vector.tolist()]))"
    )

    dim, made, none, empty = json.loads(run(code))

    assert dim == 3
    assert np.linalg.norm(made, axis=1) == pytest.approx([1, 0, 1, 1])
    assert made[0][2] == -made[3][2] > 0
    assert none == []
    assert empty == [0, 0, 0]


@each_row(
    ("name", "text", "said"),
    [
        ("gone", "x", "gone cannot be loaded"),
        ("code", "x", "code cannot be loaded: would run code"),
        ("name", "explode", "name failed: out of memory"),
        ("name", "nan", "name returned values that are not finite numbers"),
    ],
)
def test_what_fails_is_a_sentence(run, name, text, said):
    """A ModelError, so that memories are kept and recalls go on."""
    code = f"try: open_({name!r}).embed([{text!r}])\nexcept ModelError as e: print(e.message)"

    assert said in run(code)


def test_a_folders_name_tells_its_weights_apart(tmp_path):
    """Two folders of one name with other weights are two models."""
    first = make_tiny_bert(tmp_path / "a" / "tiny")
    second = make_tiny_bert(tmp_path / "b" / "tiny", tiny_weights(seed=6))
    names = [SentenceTransformersEmbedder(str(path)).model for path in (first, first, second)]

    assert names[0] == names[1] != names[2]
    assert all(name.startswith("sentence-transformers:tiny-") for name in names)


@pytest.mark.slow
def test_the_real_library_reads_a_folder(tmp_path):
    """Our own encoder and the library agree on the same weights."""
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    pytest.importorskip("onnxruntime", reason="the extra transformer is not installed")
    from bethink.models.embed.transformer import TransformerEmbedder

    folder = make_tiny_bert(tmp_path / "tiny")
    texts = ["the deploy key lives in vault b", "anna prefers tabs"]
    theirs = SentenceTransformersEmbedder(str(folder)).embed(texts)
    ours = TransformerEmbedder(str(folder), cache=tmp_path).embed(texts)

    for one, other in zip(theirs, ours, strict=True):
        assert float(one.vector @ other.vector) > 0.99
