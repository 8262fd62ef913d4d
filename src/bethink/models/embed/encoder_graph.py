"""The layers of our encoder as a graph for ONNX Runtime, where many texts are embedded.

With instructions for int8 the products by weights are made of them: the weights with a scale
per output, their input with one per text, so that a text gets the same bits in any company.
The last product of a layer stays in float32: its input has values far beyond the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.config.paths import cache_folder, make_private_folder
from bethink.core.arrays import NDArray, np
from bethink.core.atomic_write import atomic_replace
from bethink.core.small_files import file_fingerprint
from bethink.errors import ModelError
from bethink.models.embed.contextual import HEAD_WIDTH, NORM_EPSILON, read_arrays

if TYPE_CHECKING:
    States = NDArray[np.float32]

_GRAPH_VERSION, _OPSET, _IR_VERSION = 1, 20, 9
_CONTRIBUTED = "com.microsoft"  # where the runtime has operators of its own
_WEIGHT_LEVELS = 127
# It would join the sum and the norm into an operator that is nine times slower.
_SLOW_FUSION = "SkipLayerNormFusion"


def open_layers(path: Path) -> Callable[[States], States] | None:
    """Return what runs the layers of a file of weights; None where a library is missing.

    The graph is built the first time, and then read from the cache.
    """
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        return None
    quantised = _has_int8_products()
    kind = "int8" if quantised else "float32"
    name = f"encoder-{file_fingerprint(path)}-{kind}-{_GRAPH_VERSION}.onnx"
    kept = cache_folder() / "models" / name
    if kept.is_file():
        with suppress(ModelError):  # a damaged file is rewritten
            return _open_graph(str(kept))
    try:
        graph = build_layers(read_arrays(path), quantised=quantised)
        _write_cache_file(kept, graph)
        return _open_graph(graph)
    except ModelError:
        return None


def _open_graph(graph: str | bytes) -> Callable[[States], States]:
    """Open a graph from a file name or bytes; raise ModelError where it is invalid."""
    import onnxruntime  # start-up time
    from onnxruntime.capi import onnxruntime_pybind11_state as states

    # The library's errors have no class in common.
    failures = (
        states.EPFail, states.Fail, states.InvalidArgument, states.InvalidGraph,
        states.InvalidProtobuf, states.NoModel, states.NoSuchFile, states.NotImplemented,
        states.RuntimeException, RuntimeError, ValueError,
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    # A thread pool of its own would not survive a fork; several callers still run at once.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Some builds send telemetry; disable it.
    onnxruntime.disable_telemetry_events()
    try:
        # Its own fallback would print to stdout, which carries our answers.
        session = onnxruntime.InferenceSession(
            graph,
            options,
            providers=["CPUExecutionProvider"],
            enable_fallback=0,
            disabled_optimizers=[_SLOW_FUSION],
        )
    except failures as error:
        raise ModelError(f"the model's graph cannot be loaded: {error}") from error

    def run(states: States) -> States:
        try:
            made: States = session.run(None, {"states": states})[0]
        except failures as error:
            raise ModelError(f"the model failed: {error}") from error
        return made

    return run


def _write_cache_file(path: Path, content: bytes) -> None:
    """Write the cache file; if it cannot be, the next process builds the graph again."""
    try:
        make_private_folder(path.parent)
        atomic_replace(path, content)
    except OSError as error:
        import logging  # start-up time: the default encoder needs none

        logging.getLogger(__name__).debug("the graph was not cached: %s", error)


def _has_int8_products() -> bool:
    """Whether the processor adds up products of int8 in 32 bits; others would lose some."""
    features = import_module("numpy._core._multiarray_umath")
    processor: Mapping[str, bool] = getattr(features, "__cpu_features__", {})
    return processor.get("AVX512VNNI", False) or processor.get("ASIMDDP", False)


def build_layers(weights: Mapping[str, NDArray[Any]], *, quantised: bool) -> bytes:
    """Build and serialise the layers: token vectors (texts × length × width) to the same."""
    from onnx import TensorProto, helper  # start-up time: needed only once

    graph = _LayerGraph(weights, quantised=quantised)
    states = "states"
    for number in range(sum(name.endswith(".q_b") for name in weights)):
        states = graph.layer(states, f"layers.{number}.")
    shape: list[str | int] = ["texts", "length", len(weights["ln_w"])]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("states", states)
    ]
    made = helper.make_graph(graph.nodes, "encoder", ends[:1], ends[1:], graph.constants)
    versions = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIBUTED, 1)]
    model = helper.make_model(made, opset_imports=versions, ir_version=_IR_VERSION)
    return bytes(model.SerializeToString())


class _LayerGraph:
    """Nodes and constants of the layers, in order of computation."""

    def __init__(self, weights: Mapping[str, NDArray[Any]], *, quantised: bool) -> None:
        self._weights, self._is_quantised = weights, quantised
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def layer(self, states: str, name: str) -> str:
        """Add self-attention and the feed-forward part, each with a residual connection."""
        heads = len(self._weights[name + "q_b"]) // HEAD_WIDTH
        split = self._node(
            "Split", self._linear(states, name, "qkv"), outputs=3, axis=-1, num_outputs=3
        )
        (seen,) = self._node("MultiHeadAttention", *split, domain=_CONTRIBUTED, num_heads=heads)
        states = self._norm(self._linear(seen, name, "o"), states, name + "ln1")
        (inner,) = self._node("FastGelu", self._linear(states, name, ["fi"]), domain=_CONTRIBUTED)
        return self._norm(self._linear(inner, name, ["fo"], exact=True), states, name + "ln2")

    def _linear(self, states: str, layer: str, names: Sequence[str], *, exact: bool = False) -> str:
        """Multiply by weight matrices, side by side, and add their bias."""
        matrix, bias = (
            np.concatenate(
                [self._weights[f"{layer}{name}_{kind}"] for name in names], dtype=np.float32
            )
            for kind in "wb"
        )
        if exact or not self._is_quantised:
            (product,) = self._node("MatMul", states, self._constant(matrix.T))
            return self._node("Add", product, self._constant(bias))[0]
        scales = np.maximum(np.abs(matrix).max(axis=1), np.float32(1e-30)) / _WEIGHT_LEVELS
        whole = np.rint(matrix / scales[:, np.newaxis]).astype(np.int8).T
        given = self._constant(whole), self._constant(scales), "", self._constant(bias)
        return self._node("DynamicQuantizeMatMul", states, *given, domain=_CONTRIBUTED)[0]

    def _norm(self, states: str, before: str, name: str) -> str:
        (total,) = self._node("Add", states, before)
        given = (self._constant(self._weights[name + kind].astype("f4")) for kind in ("_w", "_b"))
        kind = "LayerNormalization"
        return self._node(kind, total, *given, axis=-1, epsilon=NORM_EPSILON)[0]

    def _node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        from onnx import helper  # start-up time

        names = [f"{kind}.{len(self.nodes)}.{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def _constant(self, value: NDArray[Any]) -> str:
        from onnx import numpy_helper  # start-up time

        name = f"constant.{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value.copy("C"), name))
        return name
