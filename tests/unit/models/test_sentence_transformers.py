"""Models by way of sentence-transformers.

The library is large and seldom installed, so a small one of the same name and shape
stands in for it; the last test is for the real one.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import exp
from pathlib import Path

import numpy as np
import pytest

from bethink.errors import MissingExtra, ModelError, Refused
from bethink.models.embed.sentence_transformers import SentenceTransformersEmbedder
from bethink.models.rerank.cross_encoder import DEFAULT_MODEL, CrossEncoder
from rows import each_row
from sentence_transformers_stand_in import stand_in_library
from tiny_bert import make_tiny_bert, make_tiny_reader, tiny_weights

ASKED = "where is the key"
TEXTS = ["the key is in vault b", "anna prefers tabs", "", "key", "the key is in vault b"]


@pytest.fixture
def library(tmp_path_factory):
    """The stand-in is installed."""
    with stand_in_library(tmp_path_factory.mktemp("library")):
        yield


def test_without_the_library_the_extra_is_named():
    """When the first text comes, not before."""
    if find_spec("sentence_transformers"):
        pytest.skip("sentence-transformers is installed")
    embedder = SentenceTransformersEmbedder("all-MiniLM-L6-v2")

    assert embedder.model == "sentence-transformers:all-MiniLM-L6-v2"
    for ask in (lambda: embedder.embed(["x"]), lambda: CrossEncoder("name")("x", ["y"])):
        with pytest.raises(MissingExtra, match="is not installed") as caught:
            ask()
        assert caught.value.remedy.startswith("pip install '.[sentence-transformers]'")


def test_code_that_comes_with_a_model_is_never_run(library):
    """The library is told so, for both kinds of model."""
    for made in (SentenceTransformersEmbedder("name")._network(), CrossEncoder("name")._network()):
        assert made.made == ["name", {"trust_remote_code": False}]


@pytest.mark.parametrize(
    "ask",
    [lambda: SentenceTransformersEmbedder("name").embed(["x"]), lambda: CrossEncoder()("x", ["y"])],
)
def test_an_old_library_is_not_used(tmp_path, ask):
    """Before version 6 it ran the code of local folders whatever one said."""
    with (
        stand_in_library(tmp_path, "5.3.1"),
        pytest.raises(ModelError, match=r"5\.3\.1 would run code that comes with a") as caught,
    ):
        ask()

    assert caught.value.remedy == "pip install 'sentence-transformers>=6'"


def test_questions_and_memories_are_read_each_in_their_way(library):
    """Vectors of length 1; zeros for an empty text, which the model never sees."""
    embedder = SentenceTransformersEmbedder("name")

    made = [one.vector for one in (*embedder.embed(["aa", "", "bcd"]), embedder.embed_query("aa"))]

    assert embedder.dim == 3
    assert np.linalg.norm(made, axis=1) == pytest.approx([1, 0, 1, 1])
    assert made[0][2] == -made[3][2] > 0
    assert embedder.embed([]) == []
    assert not embedder.embed_query("").vector.any()


@each_row(
    ("name", "text", "said"),
    [
        ("gone", "x", "gone cannot be loaded: gone is no model$"),
        ("code", "x", "code cannot be loaded: would run code"),
        ("name", "explode", "failed: out of memory"),
    ],
)
def test_what_fails_is_a_sentence(library, name, text, said):
    """A ModelError, so that memories are kept and recalls go on."""
    for ask in (SentenceTransformersEmbedder(name).embed, lambda t: CrossEncoder(name)("x", t)):
        with pytest.raises(ModelError, match=said):
            ask([text])


def test_vectors_that_are_no_numbers_are_refused(library):
    """They would be nearest to nothing, for ever."""
    with pytest.raises(ModelError, match="name returned values that are not finite numbers"):
        SentenceTransformersEmbedder("name").embed(["nan"])


def test_a_folders_name_tells_its_weights_apart(tmp_path):
    """Two folders of one name with other weights are two models."""
    first = make_tiny_bert(tmp_path / "a" / "tiny")
    second = make_tiny_bert(tmp_path / "b" / "tiny", tiny_weights(seed=6))
    names = [SentenceTransformersEmbedder(str(path)).model for path in (first, first, second)]

    assert names[0] == names[1] != names[2]
    assert all(name.startswith("sentence-transformers:tiny-") for name in names)


def test_a_pair_is_scored_by_the_sigmoid_of_its_logit(library):
    """Whatever the model itself would make of it; one that is no number gives 0."""
    scores = CrossEncoder("name")(ASKED, [*TEXTS, "nan"])

    assert scores == pytest.approx(
        [1 / (1 + exp(1.5 - shared)) for shared in (3, 0, 0, 1, 3)] + [0.0]
    )


def test_no_pair_loads_no_model():
    """No texts, no library, no folder."""
    assert CrossEncoder("gone")(ASKED, []) == []


def test_a_classifier_of_several_labels_is_refused(library):
    """It says how many it has, and what to do."""
    with pytest.raises(ModelError, match="returns 2 scores per pair") as caught:
        CrossEncoder("two")(ASKED, TEXTS)

    assert "cross-encoder:NAME_OR_FOLDER" in caught.value.remedy


def test_half_a_character_is_refused(library):
    """In the question and in a text, before the library sees it."""
    for asked, text in (("abc\ud800", "x"), ("x", "abc\ud800")):
        with pytest.raises(Refused):
            CrossEncoder("name")(asked, [text])


def test_the_usual_cross_encoder_is_never_downloaded(library, tmp_path, monkeypatch):
    """It is taken from its folder, or from what the library has; else the remedy says how."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(ModelError, match="is not on this machine") as caught:
        CrossEncoder()(ASKED, TEXTS)
    assert f"hf download {DEFAULT_MODEL}" in caught.value.remedy

    folder = tmp_path / "bethink" / "models" / Path(DEFAULT_MODEL).name
    folder.mkdir(parents=True)
    assert CrossEncoder()._network().made == [str(folder), {"trust_remote_code": False}]


@pytest.mark.slow
def test_the_real_library_reads_a_folder(tmp_path):
    """A sentence encoder and a cross-encoder of random weights; the same in any company."""
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    embedder = SentenceTransformersEmbedder(str(make_tiny_bert(tmp_path / "tiny")))
    reader = CrossEncoder(str(make_tiny_reader(tmp_path / "reader")))

    vectors = [one.vector for one in embedder.embed(TEXTS)]
    scores = reader(ASKED, TEXTS)

    assert float(vectors[0] @ vectors[-1]) == pytest.approx(1.0)
    assert float(vectors[0] @ vectors[1]) < 0.999
    assert scores == pytest.approx([reader(ASKED, [text])[0] for text in TEXTS], abs=1e-5)
    assert len({round(score, 3) for score in scores}) == len(set(TEXTS))
