"""Run ONNX graphs with ONNX Runtime; an exported graph is cached in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.config.paths import cache_folder, make_private_folder
from bethink.core.arrays import Matrix, NDArray, np
from bethink.core.atomic_write import atomic_replace
from bethink.core.lazy import Lazy
from bethink.core.named_tuple import NamedTuple
from bethink.errors import MissingExtra, ModelError

if TYPE_CHECKING:
    from bethink.models.onnx_network import BertSizes

    RunBatch = Callable[[NDArray[np.int64]], NDArray[np.float32]]


CPU_PROVIDER = "CPUExecutionProvider"
# Execution providers, the fastest first.
_ACCELERATORS = ("CUDAExecutionProvider", "CoreMLExecutionProvider")

# Rows of one length run in one batch, up to this many tokens.
_MAX_BATCH_TOKENS = 1024
# From this many runs on, several threads share them; results are bit-identical.
_MIN_PARALLEL_BATCHES = 8
max_threads = 4  # of this process


class OnnxSession(NamedTuple):
    """An open graph: its input names, its execution provider and a run function."""

    inputs: tuple[str, ...]
    hardware: str
    run: Callable[[Mapping[str, Any]], Any]


def require_library(library: str, purpose: str, extra: str) -> None:
    """Raise MissingExtra where a library is not installed."""
    if find_spec(library) is None:
        raise MissingExtra(f"{library}, which {purpose},", extra=extra)


def best_provider() -> str:
    """Return the fastest execution provider that is available."""
    import onnxruntime  # start-up time

    there = onnxruntime.get_available_providers()
    return next((name for name in _ACCELERATORS if name in there), CPU_PROVIDER)


def open_session(
    graph: str | bytes, provider: str = CPU_PROVIDER, without: Sequence[str] = ()
) -> OnnxSession:
    """Open a graph from a file name or bytes; raise ModelError where it is invalid.

    ``without`` are optimisations that it is slower with.
    """
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
    providers = [provider] if provider == CPU_PROVIDER else [provider, CPU_PROVIDER]
    try:
        # Its own fallback would print to stdout, which carries our answers.
        session = onnxruntime.InferenceSession(
            graph,
            options,
            providers=providers,
            enable_fallback=0,
            disabled_optimizers=list(without),
        )
    except failures as error:
        raise ModelError(f"the model's graph cannot be loaded: {error}") from error

    def run(given: Mapping[str, Any]) -> Any:
        try:
            return session.run(None, given)[0]
        except failures as error:
            raise ModelError(f"the model failed: {error}") from error

    inputs = tuple(entry.name for entry in session.get_inputs())
    return OnnxSession(inputs, session.get_providers()[0], run)


def cached_session(
    name: str,
    build: Callable[[], bytes],
    cache: Path | None = None,
    provider: str = CPU_PROVIDER,
    without: Sequence[str] = (),
) -> OnnxSession:
    """Open the graph of that name from the cache; build and cache it the first time."""
    kept = (cache or cache_folder() / "models") / name
    if kept.is_file():
        with suppress(ModelError):  # a damaged file is rewritten
            return open_session(str(kept), provider, without)
    graph = build()
    _write_cache_file(kept, graph)
    return open_session(graph, provider, without)


def run_batched(
    run: RunBatch, rows: Sequence[Sequence[int]], most_tokens: int = _MAX_BATCH_TOKENS
) -> list[Matrix]:
    """Run the network on each row of token ids; return the outputs in order.

    Rows of one length run together, up to so many tokens: nothing is padded, and a row gets
    the same bits in any batch.
    """
    batches = list(_batches_by_length(rows, most_tokens))

    def together(batch: list[int]) -> NDArray[np.float32]:
        return run(np.array([rows[place] for place in batch], dtype=np.int64))

    made: dict[int, Matrix] = {}
    for batch, states in zip(batches, _run_batches(together, batches), strict=True):
        made.update(zip(batch, states, strict=True))
    return [made[place] for place in range(len(rows))]


def _batches_by_length(rows: Sequence[Sequence[int]], most_tokens: int) -> Iterator[list[int]]:
    """Yield row positions in batches of equal length, up to the token limit."""
    by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    for length, same in groupby(by_length, key=lambda place: len(rows[place])):
        places = list(same)
        most = max(1, most_tokens // length)
        yield from (places[start : start + most] for start in range(0, len(places), most))


def _run_batches(
    run: Callable[[list[int]], NDArray[np.float32]], batches: list[list[int]]
) -> Iterator[NDArray[np.float32]]:
    """Run the batches in order, on several threads where that pays off."""
    threads = min(max_threads, os.cpu_count() or 1)
    if threads < 2 or len(batches) < _MIN_PARALLEL_BATCHES:
        yield from map(run, batches)
        return
    from concurrent.futures import ThreadPoolExecutor  # start-up time: a question needs none

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(run, batches)


def _log_debug(message: str, *values: object) -> None:
    import logging  # start-up time: the default encoder needs none

    logging.getLogger(__name__).debug(message, *values)


def _write_cache_file(path: Path, content: bytes) -> None:
    """Write the cache file; if it cannot be, the next process builds the graph again."""
    try:
        make_private_folder(path.parent)
        atomic_replace(path, content)
    except OSError as error:
        _log_debug("the graph was not cached: %s", error)


TRANSFORMER_EXTRA = "transformer"
# Increased with every change of the graph that changes its vectors.
GRAPH_VERSION = 1


class OnnxEncoder:
    """The network of a model folder. Loaded on first use; safe to share."""

    def __init__(self, folder: Path, sizes: BertSizes, cache: Path | None = None) -> None:
        """Set the model folder; ``cache`` defaults to the user's cache folder."""
        self._folder, self._sizes, self._cache = folder, sizes, cache
        self._session = Lazy(self._load)

    def encode(self, rows: Sequence[Sequence[int]]) -> list[Matrix]:
        """Return the contextual token vectors of each row: length × width."""
        session = self._session()
        return run_batched(lambda ids: session.run({"ids": ids}), rows)

    def _load(self) -> OnnxSession:
        require_library("onnxruntime", "the embedder runs on", TRANSFORMER_EXTRA)
        # start-up time: our own encoder needs only the batches of this module
        from bethink.models.onnx_network import WEIGHTS_FILE, file_fingerprint

        name = f"{file_fingerprint(self._folder / WEIGHTS_FILE)}-{GRAPH_VERSION}.onnx"
        return cached_session(name, self._build_graph, self._cache)

    def _build_graph(self) -> bytes:
        require_library("onnx", "writes the embedder's graph", TRANSFORMER_EXTRA)
        from bethink.models.onnx_graph import build_encoder_graph  # start-up time
        from bethink.models.onnx_network import read_weights

        _log_debug("writing the graph of %s", self._folder)
        return build_encoder_graph(self._sizes, read_weights(self._folder))
