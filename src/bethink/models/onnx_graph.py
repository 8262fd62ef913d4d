"""Export a BERT network as an ONNX graph with int8 matrix multiplications.

Built for each model rather than shipped as a file: a folder may hold a BERT of any width and
number of layers, for an encoder or a cross-encoder, in int8 or float32.

Every weight matrix is int8 with a scale per output; its input is quantised to uint8 with a
scale per token. Scales per token rather than per batch mean that a text gets the same bits
whichever texts are encoded with it, and lose less precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from bethink.core.arrays import Matrix, NDArray, Vector
from bethink.errors import ModelError

if TYPE_CHECKING:
    from bethink.models.onnx_network import BertSizes


# Weights use seven of eight bits: CPUs without VNNI add pairs of products in sixteen
# bits, and 2 × 255 × 64 still fits. So all CPUs get the same sums.
WEIGHT_LEVELS = 63
_TOKEN_LEVELS = 127
_OPSET = 20
_IR_VERSION = 9

IDS, TOKENS, LOGIT = "ids", "tokens", "logit"
_ATTENTION_PARTS = ("query", "key", "value")


def build_encoder_graph(sizes: BertSizes, weights: Mapping[str, Matrix]) -> bytes:
    """Build and serialise the encoder: ids (texts × length) to token vectors.

    The output has the shape texts × length × width. Texts of one batch have the same length,
    so nothing is masked.
    """
    graph = _GraphBuilder(sizes, weights)
    try:
        states = graph.embed(IDS)
        for layer in range(sizes.layers):
            states = graph.layer(states, f"encoder.layer.{layer}.")
        return graph.serialise(states, TOKENS, ["length", sizes.width])
    except KeyError as error:
        raise ModelError(f"the weights lack the tensor {error}") from error


def build_cross_encoder_graph(
    sizes: BertSizes, weights: Mapping[str, Matrix], *, separator: int, quantised: bool = True
) -> bytes:
    """Build and serialise a one-label classifier: ids (texts × length) to logits.

    A row is a pair: the tokens after the first ``separator`` are of the second type. Without
    ``quantised`` it computes in float32, for hardware made for that.
    """
    graph = _GraphBuilder(sizes, weights, quantised=quantised)
    try:
        if len(weights["classifier.weight"]) != 1:
            labels = len(weights["classifier.weight"])
            raise ModelError(f"the model returns {labels} scores per pair, not one")
        states = graph.embed(IDS, separator)
        for layer in range(sizes.layers):
            # Only the first token is scored, so the last layer computes no other.
            states = graph.layer(
                states, f"encoder.layer.{layer}.", first_only=layer == sizes.layers - 1
            )
        return graph.serialise(graph.classify(states), LOGIT, [1])
    except KeyError as error:
        raise ModelError(f"the weights lack the tensor {error}") from error


class _GraphBuilder:
    """Nodes and constants of the graph, in order of computation."""

    def __init__(
        self, sizes: BertSizes, weights: Mapping[str, Matrix], *, quantised: bool = True
    ) -> None:
        self._sizes, self._weights, self._is_quantised = sizes, weights, quantised
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def embed(self, ids: str, separator: int | None = None) -> str:
        """Add token, position and type embeddings, then normalise."""
        own = self._token_embedding(ids)
        places = self._weights["embeddings.position_embeddings.weight"]
        kinds = self._weights["embeddings.token_type_embeddings.weight"]
        if separator is None:
            # One sentence only: every token is of the first kind.
            places = places + kinds[0]
        length = self._node("Shape", ids, start=1, end=2)
        first = self._constant("first", np.zeros(1, dtype=np.int64))
        place = self._node("Slice", self._constant("places", places), first, length)
        states = self._node("Add", own, place)
        if separator is not None:
            kind = self._node(
                "Gather", self._constant("kinds", kinds), self._token_type(ids, separator)
            )
            states = self._node("Add", states, kind)
        return self._normalise(states, "embeddings.LayerNorm")

    def layer(self, states: str, name: str, *, first_only: bool = False) -> str:
        """Add self-attention and the feed-forward part, each with a residual connection."""
        seen = self._attend(states, name + "attention.self.")
        if first_only:
            seen, states = self._first_token(seen), self._first_token(states)
        seen = self._linear(seen, name + "attention.output.dense")
        states = self._add_and_normalise(seen, states, name + "attention.output.LayerNorm")
        inner = self._node("Gelu", self._linear(states, name + "intermediate.dense"))
        inner = self._linear(inner, name + "output.dense")
        return self._add_and_normalise(inner, states, name + "output.LayerNorm")

    def classify(self, states: str) -> str:
        """Add the pooler and the classifier on the first token, in float32."""
        pooled = self._node("Tanh", self._float_linear(states, "pooler.dense"))
        shape = self._constant("a number each", np.array([-1, 1]))
        return self._node("Reshape", self._float_linear(pooled, "classifier"), shape)

    def serialise(self, states: str, name: str, shape: list[str | int]) -> bytes:
        """Serialise the model, with its last value under the given output name."""
        self._nodes.append(helper.make_node("Identity", [states], [name]))
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [helper.make_tensor_value_info(IDS, TensorProto.INT64, ["texts", "length"])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", *shape])],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
        )
        return bytes(model.SerializeToString())

    def _token_embedding(self, ids: str) -> str:
        """Look up the token embeddings."""
        words = self._weights["embeddings.word_embeddings.weight"]
        if not self._is_quantised:
            return self._node("Gather", self._constant("words", words), ids)
        scales = np.abs(words).max(axis=1, keepdims=True) / _TOKEN_LEVELS
        rows = self._node("Gather", self._constant("words", _quantise(words, scales)), ids)
        scale = self._node("Gather", self._constant("words.scale", scales), ids)
        return self._node("Mul", self._node("Cast", rows, to=TensorProto.FLOAT), scale)

    def _token_type(self, ids: str, separator: int) -> str:
        """Compute token types: 0 up to and including the first separator, then 1."""
        ends = self._node("Equal", ids, self._constant("separator", np.int64(separator)))
        ends = self._node("Cast", ends, to=TensorProto.INT64)
        before = self._node("CumSum", ends, self._constant("along", np.int64(1)), exclusive=1)
        return self._node("Min", before, self._constant("second", np.int64(1)))

    def _first_token(self, states: str) -> str:
        """Slice the first token."""
        bounds = [
            self._constant(name, np.array([value]))
            for name, value in (("from", 0), ("to", 1), ("tokens' axis", 1))
        ]
        return self._node("Slice", states, *bounds)

    def _attend(self, states: str, name: str) -> str:
        """Add multi-head self-attention; the query weights are already scaled."""
        sizes = self._sizes
        scales = {"query": np.float32(sizes.head_width**-0.5)}
        matrix, bias = (
            np.concatenate(
                [
                    self._weights[f"{name}{part}.{kind}"] * scales.get(part, 1)
                    for part in _ATTENTION_PARTS
                ]
            )
            for kind in ("weight", "bias")
        )
        split = [f"{name}{part}" for part in _ATTENTION_PARTS]
        mixed = self._quantised_product(states, name + "mixed", matrix, bias)
        self._nodes.append(helper.make_node("Split", [mixed], split, axis=-1, num_outputs=3))
        by_head = self._constant("by head", np.array([0, 0, sizes.heads, sizes.head_width]))
        query, key, value = (
            self._node("Transpose", self._node("Reshape", part, by_head), perm=order)
            for part, order in zip(split, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        share = self._node("Softmax", self._node("MatMul", query, key), axis=-1)
        seen = self._node("Transpose", self._node("MatMul", share, value), perm=[0, 2, 1, 3])
        joined = self._constant("joined", np.array([0, 0, sizes.width]))
        return self._node("Reshape", seen, joined)

    def _linear(self, states: str, name: str) -> str:
        matrix, bias = self._weights[name + ".weight"], self._weights[name + ".bias"]
        return self._quantised_product(states, name, matrix, bias)

    def _quantised_product(self, states: str, name: str, matrix: Matrix, bias: Vector) -> str:
        """Multiply by a weight matrix in int8, and add the bias."""
        if not self._is_quantised:
            return self._float_product(states, name, matrix, bias)
        scales = np.abs(matrix).max(axis=1, keepdims=True) / WEIGHT_LEVELS
        rounded, scale = self._quantise_tokens(states)
        product = self._node(
            "MatMulInteger",
            rounded,
            self._constant(name + ".weight", _quantise(matrix, scales).T),
            self._constant("zero", np.uint8(_TOKEN_LEVELS + 1)),
        )
        product = self._node("Mul", self._node("Cast", product, to=TensorProto.FLOAT), scale)
        product = self._node("Mul", product, self._constant(name + ".scale", scales[:, 0]))
        return self._node("Add", product, self._constant(name + ".bias", bias))

    def _float_linear(self, states: str, name: str) -> str:
        matrix, bias = self._weights[name + ".weight"], self._weights[name + ".bias"]
        return self._float_product(states, name, matrix, bias)

    def _float_product(self, states: str, name: str, matrix: Matrix, bias: Vector) -> str:
        product = self._node("MatMul", states, self._constant(name + ".weight", matrix.T))
        return self._node("Add", product, self._constant(name + ".bias", bias))

    def _quantise_tokens(self, states: str) -> tuple[str, str]:
        """Quantise each token's values to 128 ± 127; return them and the scale."""
        last = self._constant("last", np.array([-1]))
        peak = self._node("ReduceMax", self._node("Abs", states), last, keepdims=1)
        level = self._constant("level", np.float32(1 / _TOKEN_LEVELS))
        least = self._constant("least", np.float32(1e-30))
        scale = self._node("Max", self._node("Mul", peak, level), least)
        rounded = self._node("Round", self._node("Div", states, scale))
        zero = self._constant("zero as float", np.float32(_TOKEN_LEVELS + 1))
        return self._node("Cast", self._node("Add", rounded, zero), to=TensorProto.UINT8), scale

    def _add_and_normalise(self, states: str, before: str, name: str) -> str:
        return self._normalise(self._node("Add", states, before), name)

    def _normalise(self, states: str, name: str) -> str:
        return self._node(
            "LayerNormalization",
            states,
            self._constant(name + ".weight", self._weights[name + ".weight"]),
            self._constant(name + ".bias", self._weights[name + ".bias"]),
            axis=-1,
            epsilon=self._sizes.epsilon,
        )

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}.{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        if name not in self._constants:
            whole = np.ascontiguousarray(value).reshape(np.shape(value))
            self._constants[name] = numpy_helper.from_array(whole, name)
        return name


def _quantise(matrix: Matrix, scales: Matrix | Vector) -> NDArray[np.int8]:
    """Quantise a matrix to int8 by its row scales; a row of zeros stays zero."""
    whole = np.divide(matrix, scales, out=np.zeros_like(matrix), where=scales > 0)
    return np.rint(whole).astype(np.int8)
