"""Writes a BERT network as an ONNX graph whose multiplications run on whole numbers.

Every weight matrix is kept as int8 with a scale for each output; what goes into it is
made uint8 with a scale for each token. Scales by token rather than by batch mean that
a text gets the same bits whichever texts are encoded with it, and lose less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from recollect.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.models.bert import Sizes
    from recollect.ports import Matrix, Vector

# Of a weight's eight bits seven are used: processors without VNNI add pairs of products
# in sixteen bits, and 2 × 255 × 64 still fits. So all processors get the same sums.
WEIGHT_LEVELS = 63
_TOKEN_LEVELS = 127
_OPSET = 20
_IR_VERSION = 9

IDS, TOKENS, LOGIT = "ids", "tokens", "logit"
_PARTS = ("query", "key", "value")


def bert_graph(sizes: Sizes, weights: Mapping[str, Matrix]) -> bytes:
    """The graph, serialised: token ids (texts × length) to vectors (texts × length × width).

    Texts that go in together have the same length, so nothing is masked.
    """
    graph = _Graph(sizes, weights)
    try:
        states = graph.embed(IDS)
        for layer in range(sizes.layers):
            states = graph.layer(states, f"encoder.layer.{layer}.")
        return graph.serialised(states, TOKENS, ["length", sizes.width])
    except KeyError as error:
        raise ModelError(f"the weights lack the tensor {error}") from error


def judge_graph(
    sizes: Sizes, weights: Mapping[str, Matrix], *, separator: int, rounded: bool = True
) -> bytes:
    """The graph of a classifier with one label: token ids (texts × length) to logits (texts × 1).

    A row is a pair: what stands after the first ``separator`` is of the second kind.
    Without ``rounded`` it computes in float32, for hardware that is made for that.
    """
    graph = _Graph(sizes, weights, rounded=rounded)
    try:
        if len(weights["classifier.weight"]) != 1:
            labels = len(weights["classifier.weight"])
            raise ModelError(f"the model gives {labels} numbers for a pair, not one")
        states = graph.embed(IDS, separator)
        for layer in range(sizes.layers):
            # Only the first token is judged, so the last layer makes no other.
            states = graph.layer(
                states, f"encoder.layer.{layer}.", first_only=layer == sizes.layers - 1
            )
        return graph.serialised(graph.judge(states), LOGIT, [1])
    except KeyError as error:
        raise ModelError(f"the weights lack the tensor {error}") from error


class _Graph:
    """Nodes and constants, added in the order in which they are computed."""

    def __init__(
        self, sizes: Sizes, weights: Mapping[str, Matrix], *, rounded: bool = True
    ) -> None:
        self._sizes, self._weights, self._is_rounded = sizes, weights, rounded
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def embed(self, ids: str, separator: int | None = None) -> str:
        """Each token's own vector plus those of its place and its kind, normalised."""
        own = self._own(ids)
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
            kind = self._node("Gather", self._constant("kinds", kinds), self._kind(ids, separator))
            states = self._node("Add", states, kind)
        return self._normalise(states, "embeddings.LayerNorm")

    def layer(self, states: str, name: str, *, first_only: bool = False) -> str:
        """Attention, then a widening and a narrowing, each added to what came in."""
        seen = self._attend(states, name + "attention.self.")
        if first_only:
            seen, states = self._first(seen), self._first(states)
        seen = self._linear(seen, name + "attention.output.dense")
        states = self._add_normalised(seen, states, name + "attention.output.LayerNorm")
        inner = self._node("Gelu", self._linear(states, name + "intermediate.dense"))
        inner = self._linear(inner, name + "output.dense")
        return self._add_normalised(inner, states, name + "output.LayerNorm")

    def judge(self, states: str) -> str:
        """The first token's verdict: pooled, then one number. Too little to be rounded."""
        pooled = self._node("Tanh", self._exact(states, "pooler.dense"))
        shape = self._constant("a number each", np.array([-1, 1]))
        return self._node("Reshape", self._exact(pooled, "classifier"), shape)

    def serialised(self, states: str, name: str, shape: list[str | int]) -> bytes:
        """The whole model, its last value under the name it is asked for by."""
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

    def _own(self, ids: str) -> str:
        """What each token is worth by itself."""
        words = self._weights["embeddings.word_embeddings.weight"]
        if not self._is_rounded:
            return self._node("Gather", self._constant("words", words), ids)
        scales = np.abs(words).max(axis=1, keepdims=True) / _TOKEN_LEVELS
        rows = self._node("Gather", self._constant("words", _rounded(words, scales)), ids)
        scale = self._node("Gather", self._constant("words.scale", scales), ids)
        return self._node("Mul", self._node("Cast", rows, to=TensorProto.FLOAT), scale)

    def _kind(self, ids: str, separator: int) -> str:
        """0 up to the first separator and with it, 1 after that."""
        ends = self._node("Equal", ids, self._constant("separator", np.int64(separator)))
        ends = self._node("Cast", ends, to=TensorProto.INT64)
        before = self._node("CumSum", ends, self._constant("along", np.int64(1)), exclusive=1)
        return self._node("Min", before, self._constant("second", np.int64(1)))

    def _first(self, states: str) -> str:
        """The first token alone."""
        bounds = [
            self._constant(name, np.array([value]))
            for name, value in (("from", 0), ("to", 1), ("tokens' axis", 1))
        ]
        return self._node("Slice", states, *bounds)

    def _attend(self, states: str, name: str) -> str:
        """Each head's tokens look at each other; queries come scaled from their weights."""
        sizes = self._sizes
        scales = {"query": np.float32(sizes.head_width**-0.5)}
        matrix, bias = (
            np.concatenate(
                [self._weights[f"{name}{part}.{kind}"] * scales.get(part, 1) for part in _PARTS]
            )
            for kind in ("weight", "bias")
        )
        split = [f"{name}{part}" for part in _PARTS]
        mixed = self._product(states, name + "mixed", matrix, bias)
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
        return self._product(states, name, matrix, bias)

    def _product(self, states: str, name: str, matrix: Matrix, bias: Vector) -> str:
        """The product with a weight matrix, in whole numbers, plus its bias."""
        if not self._is_rounded:
            return self._product_in_full(states, name, matrix, bias)
        scales = np.abs(matrix).max(axis=1, keepdims=True) / WEIGHT_LEVELS
        rounded, scale = self._rounded_tokens(states)
        product = self._node(
            "MatMulInteger",
            rounded,
            self._constant(name + ".weight", _rounded(matrix, scales).T),
            self._constant("zero", np.uint8(_TOKEN_LEVELS + 1)),
        )
        product = self._node("Mul", self._node("Cast", product, to=TensorProto.FLOAT), scale)
        product = self._node("Mul", product, self._constant(name + ".scale", scales[:, 0]))
        return self._node("Add", product, self._constant(name + ".bias", bias))

    def _exact(self, states: str, name: str) -> str:
        matrix, bias = self._weights[name + ".weight"], self._weights[name + ".bias"]
        return self._product_in_full(states, name, matrix, bias)

    def _product_in_full(self, states: str, name: str, matrix: Matrix, bias: Vector) -> str:
        product = self._node("MatMul", states, self._constant(name + ".weight", matrix.T))
        return self._node("Add", product, self._constant(name + ".bias", bias))

    def _rounded_tokens(self, states: str) -> tuple[str, str]:
        """Each token's values as 128 ± 127, and what 1 of that stands for."""
        last = self._constant("last", np.array([-1]))
        peak = self._node("ReduceMax", self._node("Abs", states), last, keepdims=1)
        level = self._constant("level", np.float32(1 / _TOKEN_LEVELS))
        least = self._constant("least", np.float32(1e-30))
        scale = self._node("Max", self._node("Mul", peak, level), least)
        rounded = self._node("Round", self._node("Div", states, scale))
        zero = self._constant("zero as float", np.float32(_TOKEN_LEVELS + 1))
        return self._node("Cast", self._node("Add", rounded, zero), to=TensorProto.UINT8), scale

    def _add_normalised(self, states: str, before: str, name: str) -> str:
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


def _rounded(matrix: Matrix, scales: Matrix | Vector) -> NDArray[np.int8]:
    """Whole numbers that times their row's scale give the matrix; a row of zeros stays so."""
    whole = np.divide(matrix, scales, out=np.zeros_like(matrix), where=scales > 0)
    return np.rint(whole).astype(np.int8)
