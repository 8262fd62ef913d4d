"""A cross-encoder: its scores, its cuts, its files, and what it says when something is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from math import exp

import numpy as np
import pytest

from bert_forward import Reference
from bethink.errors import ModelError, Refused
from bethink.models.embed.tokenizers import WordPieceTokenizer
from bethink.models.onnx_network import read_network_sizes
from bethink.models.onnx_runtime import CPU_PROVIDER, best_provider
from bethink.models.rerank.cross_encoder import (
    DEFAULT_MODEL,
    CrossEncoder,
    default_folder,
    split_room,
)
from deferred import Deferred
from needed import skip_without_extra
from rows import each_row
from tiny_bert import POSITIONS, make_tiny_bert, make_tiny_reader, tiny_reader_weights

skip_without_extra("rerank", "onnx", "onnxruntime")
onnx = Deferred("onnx")

ASKED = "where lives the deploy key?"
TEXTS = [
    "the deploy key lives in vault b",
    "anna prefers tabs over spaces",
    "key",
    "release on tuesday. " * 30,
    "[SEP] the key [CLS]",
    "the deploy key lives in vault b",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def reader(folder, cache):
    return CrossEncoder(str(folder), cache=cache)


def expected(folder, text, *, rounded: bool) -> float:
    """The score by the forward pass written out, from the same tokens."""
    split = WordPieceTokenizer(folder / "tokenizer.json")
    asked, told = split(ASKED).ids, split(text).ids
    told = told[: POSITIONS - 3 - len(asked)]
    ids = [split.start_id, *asked, split.end_id, *told, split.end_id]
    kinds = [0] * (len(asked) + 2) + [1] * (len(told) + 1)
    weights = {name.removeprefix("bert."): w for name, w in tiny_reader_weights().items()}
    logit = Reference(weights, read_network_sizes(folder), rounded=rounded).logit(ids, kinds)
    return 1 / (1 + exp(-logit))


def test_a_score_is_what_the_network_says(folder, reader):
    """The sigmoid of the logit of the forward pass, roundings included."""
    scores = reader(ASKED, TEXTS)

    assert scores == pytest.approx(
        [expected(folder, text, rounded=True) for text in TEXTS], abs=2e-3
    )
    assert len({round(score, 3) for score in scores}) == len(set(TEXTS))


def test_in_full_precision_it_is_what_the_weights_say(folder, cache):
    """The graph for faster hardware computes in float32, to the last digits."""
    whole = CrossEncoder(str(folder), cache=cache)
    whole._session._value.append(whole._open_converted("float", CPU_PROVIDER))

    assert whole(ASKED, TEXTS) == pytest.approx(
        [expected(folder, text, rounded=False) for text in TEXTS], abs=1e-5
    )


def test_rounding_hardly_moves_a_score(folder, reader):
    """Whole numbers give nearly what full precision gives."""
    assert reader(ASKED, TEXTS) == pytest.approx(
        [expected(folder, text, rounded=False) for text in TEXTS], abs=0.06
    )


def test_company_and_threads_do_not_matter(reader):
    """A pair gets the same bits alone, among others, and from eight threads at once."""
    many = [f"{text} {number}" for number in range(20) for text in TEXTS]
    together = reader(ASKED, many)

    with ThreadPoolExecutor(8) as threads:
        alone = list(threads.map(lambda text: reader(ASKED, [text])[0], many))

    assert alone == together


def test_nothing_is_loaded_for_nothing(tmp_path):
    """No texts, no model."""
    assert CrossEncoder(str(tmp_path / "nowhere"))(ASKED, []) == []


@each_row(
    ("lengths", "room", "kept"),
    [
        ((3, 4), 10, (3, 4)),
        ((5, 5), 10, (5, 5)),
        ((3, 40), 10, (3, 7)),
        ((5, 6), 10, (5, 5)),
        ((40, 3), 10, (7, 3)),
        ((40, 40), 10, (5, 5)),
        ((40, 40), 11, (6, 5)),
        ((0, 40), 10, (0, 10)),
    ],
)
def test_the_longer_of_the_two_is_cut(lengths, room, kept):
    """A short question is read whole, whatever the memory; together they fill the room."""
    assert split_room(*lengths, room) == kept


def test_a_pair_never_outgrows_the_network(reader):
    """Any two lengths are read, cut where need be."""
    for asked, told in ((1, 500), (500, 1), (500, 500), (40, 40)):
        (score,) = reader("key " * asked, ["vault " * told])
        assert 0.0 <= score <= 1.0


def test_a_broken_network_says_nothing(tmp_path):
    """Weights that end in no number give 0, not an error."""
    weights = tiny_reader_weights()
    weights["classifier.bias"][0] = np.nan
    broken = CrossEncoder(str(make_tiny_reader(tmp_path / "m", weights)), cache=tmp_path)

    assert broken(ASKED, TEXTS[:2]) == [0.0, 0.0]


def test_the_graph_is_kept(folder, reader, cache):
    """Written once under a name of its weights, apart from an encoder's of the same file."""
    scores = reader(ASKED, TEXTS)
    kept = {path.name: path.stat().st_mtime_ns for path in cache.glob("*-judge-int8-1.onnx")}
    assert len(kept) == 1

    again = CrossEncoder(str(folder), cache=cache)(ASKED, TEXTS)

    assert again == scores
    assert kept == {path.name: path.stat().st_mtime_ns for path in cache.glob("*-int8-1.onnx")}


def test_hardware_that_fails_leaves_the_work_to_the_processor(folder, cache, reader, capfd):
    """The answer is the processor's, and nobody prints."""
    elsewhere = CrossEncoder(str(folder), cache=cache, provider="CUDAExecutionProvider")

    assert best_provider() in (CPU_PROVIDER, "CUDAExecutionProvider", "CoreMLExecutionProvider")
    if best_provider() == CPU_PROVIDER:
        with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
            assert elsewhere(ASKED, TEXTS) == reader(ASKED, TEXTS)
        assert capfd.readouterr() == ("", "")


def ready_made(folder, inputs=("input_ids", "attention_mask", "token_type_ids"), labels=1):
    """A folder without weights, with a graph that adds up the ids of the second text."""
    make_tiny_bert(folder)
    (folder / "model.safetensors").unlink()
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Mul", [inputs[0], inputs[-1]], ["second"])]
    nodes += [
        helper.make_node("Cast", ["second"], ["numbers"], to=kinds.FLOAT),
        helper.make_node("ReduceMean", ["numbers", "axis"], ["mean"], keepdims=1),
        helper.make_node("Concat", ["mean"] * labels, ["logits"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "ready",
        [helper.make_tensor_value_info(name, kinds.INT64, ["n", "length"]) for name in inputs],
        [helper.make_tensor_value_info("logits", kinds.FLOAT, ["n", labels])],
        [onnx.numpy_helper.from_array(np.array([1]), "axis")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (folder / "onnx").mkdir()
    onnx.save(model, str(folder / "onnx" / "model.onnx"))
    return folder


def test_a_graph_that_comes_with_the_model_is_run_as_it_is(tmp_path):
    """It gets the tokens, which of them count, and which are of the second text."""
    folder = ready_made(tmp_path / "ready")
    split = WordPieceTokenizer(folder / "tokenizer.json")
    asked, told = split("key").ids, split("vault").ids
    row = [split.start_id, *asked, split.end_id, *told, split.end_id]
    mean = (told[0] + split.end_id) / len(row)

    (score,) = CrossEncoder(str(folder))("key", ["vault"])

    assert score == pytest.approx(1 / (1 + exp(-mean)), abs=1e-6)


def test_graphs_of_another_kind_are_refused(tmp_path):
    """Other inputs, or more than one number a pair."""
    other = ready_made(tmp_path / "other", inputs=("pixels", "mask"))
    two = ready_made(tmp_path / "two", labels=2)

    with pytest.raises(ModelError, match="has no input for token ids"):
        CrossEncoder(str(other))(ASKED, TEXTS)
    with pytest.raises(ModelError, match="does not return one score"):
        CrossEncoder(str(two))(ASKED, TEXTS)


def test_models_of_another_kind_are_refused(tmp_path):
    """Several labels, no head, another network: each is named."""
    weights = tiny_reader_weights()
    weights["classifier.weight"] = np.concatenate([weights["classifier.weight"]] * 2)
    two = make_tiny_reader(tmp_path / "two", weights)
    headless = make_tiny_bert(tmp_path / "headless")
    other = make_tiny_reader(tmp_path / "other")
    config = json.loads((other / "config.json").read_text()) | {"model_type": "roberta"}
    (other / "config.json").write_text(json.dumps(config))

    for broken, told in (
        (two, "2 scores per pair"),
        (headless, r"lack the tensor 'classifier\.weight'"),
        (other, "not contain a BERT"),
    ):
        with pytest.raises(ModelError, match=told):
            CrossEncoder(str(broken), cache=tmp_path / "cache")(ASKED, TEXTS)


def test_a_missing_folder_says_what_to_put_there(tmp_path, monkeypatch):
    """Which files, of which model, into which folder; with and without a folder named."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    with pytest.raises(ModelError, match="no cross-encoder in") as caught:
        CrossEncoder(str(tmp_path / "nowhere"))(ASKED, TEXTS)
    with pytest.raises(ModelError) as unnamed:
        CrossEncoder()(ASKED, TEXTS)

    for needed in ("config.json", "tokenizer.json", "model.safetensors", DEFAULT_MODEL):
        assert needed in caught.value.remedy
    assert str(tmp_path / "nowhere") in caught.value.message
    assert str(default_folder()) in unnamed.value.message


def test_half_a_character_is_refused(reader):
    """A lone surrogate never ends in a traceback from inside."""
    with pytest.raises(Refused):
        reader("abc\ud800", TEXTS)


@pytest.mark.parametrize("library", ["onnxruntime", "onnx"])
def test_a_missing_library_is_named_with_its_extra(folder, tmp_path, library):
    """What is not installed is said, and how to install it."""
    code = (
        "import sys\n"
        f"sys.modules[{library!r}] = None\n"
        "from pathlib import Path\n"
        "from bethink.errors import MissingExtra\n"
        "from bethink.models.rerank.cross_encoder import CrossEncoder\n"
        "try:\n"
        f"    CrossEncoder({str(folder)!r}, cache=Path({str(tmp_path)!r}))('x', ['y'])\n"
        "except MissingExtra as error:\n"
        "    print(error.message, '|', error.remedy)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "is not installed | pip install '.[rerank]'" in done.stdout, done.stderr
