"""Run a network on batches of rows; ONNX Runtime for its graph, which is cached in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.config.paths import cache_folder, make_private_folder
from bethink.core.arrays import Matrix, NDArray, np
from bethink.core.atomic_write import atomic_replace
from bethink.errors import ModelError

if TYPE_CHECKING:
    RunBatch = Callable[[NDArray[np.int64]], NDArray[np.float32]]
    RunGraph = Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float32]]


# Rows of one length run in one batch, up to this many tokens.
_MAX_BATCH_TOKENS = 1024
# From this many runs on, several threads share them; results are bit-identical.
_MIN_PARALLEL_BATCHES = 8
max_threads = 4  # of this process


def open_graph(graph: str | bytes, without: Sequence[str] = ()) -> RunGraph:
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
    try:
        # Its own fallback would print to stdout, which carries our answers.
        session = onnxruntime.InferenceSession(
            graph,
            options,
            providers=["CPUExecutionProvider"],
            enable_fallback=0,
            disabled_optimizers=list(without),
        )
    except failures as error:
        raise ModelError(f"the model's graph cannot be loaded: {error}") from error

    def run(given: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        try:
            made: NDArray[np.float32] = session.run(None, given)[0]
        except failures as error:
            raise ModelError(f"the model failed: {error}") from error
        return made

    return run


def open_cached_graph(
    name: str, build: Callable[[], bytes], without: Sequence[str] = ()
) -> RunGraph:
    """Open the graph of that name from the cache; build and cache it the first time."""
    kept = cache_folder() / "models" / name
    if kept.is_file():
        with suppress(ModelError):  # a damaged file is rewritten
            return open_graph(str(kept), without)
    graph = build()
    _write_cache_file(kept, graph)
    return open_graph(graph, without)


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


def _write_cache_file(path: Path, content: bytes) -> None:
    """Write the cache file; if it cannot be, the next process builds the graph again."""
    try:
        make_private_folder(path.parent)
        atomic_replace(path, content)
    except OSError as error:
        import logging  # start-up time: the default encoder needs none

        logging.getLogger(__name__).debug("the graph was not cached: %s", error)
