"""Opens and runs graphs by ONNX Runtime; one that was written once is kept in a file."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.errors import MissingExtra, ModelError
from recollect.places import cache_folder, make_private_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.ports import Matrix

    Run = Callable[[NDArray[np.int64]], NDArray[np.float32]]

CPU = "CPUExecutionProvider"
# Hardware worth having, the best first.
_FASTER = ("CUDAExecutionProvider", "CoreMLExecutionProvider")

# Rows of one length go through a network together, up to so many tokens.
_TOKENS_AT_ONCE = 1024
# From so many runs on several threads share them; each run gives the same bits anywhere.
_WORTH_SHARING = 8
_MOST_THREADS = 4

_log = logging.getLogger(__name__)


class Session(NamedTuple):
    """An opened graph: the names of what goes in, where it runs, and a way to run it."""

    inputs: tuple[str, ...]
    hardware: str
    run: Callable[[Mapping[str, Any]], Any]


def require(library: str, purpose: str, extra: str) -> None:
    """MissingExtra where a library is not installed."""
    if find_spec(library) is None:
        raise MissingExtra(f"{library}, which {purpose},", extra=extra)


def hardware() -> str:
    """The fastest kind of hardware that this installation can use."""
    import onnxruntime  # start-up time

    there = onnxruntime.get_available_providers()
    return next((name for name in _FASTER if name in there), CPU)


def open_session(graph: str | bytes, on: str = CPU) -> Session:
    """Opens a graph, given as a file's name or as its bytes; ModelError where it is none."""
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
    # Some builds report their use to the maker; ours never phones anywhere.
    onnxruntime.disable_telemetry_events()
    providers = [on] if on == CPU else [on, CPU]
    try:
        # Its own fallback would print to stdout, where our answers go.
        session = onnxruntime.InferenceSession(
            graph, options, providers=providers, enable_fallback=0
        )
    except failures as error:
        raise ModelError(f"the model's graph cannot be loaded: {error}") from error

    def run(given: Mapping[str, Any]) -> Any:
        try:
            return session.run(None, given)[0]
        except failures as error:
            raise ModelError(f"the model failed: {error}") from error

    inputs = tuple(entry.name for entry in session.get_inputs())
    return Session(inputs, session.get_providers()[0], run)


def kept_session(
    name: str, write: Callable[[], bytes], cache: Path | None, on: str = CPU
) -> Session:
    """The graph of that name, from the cache or, the first time, from ``write``."""
    kept = (cache or cache_folder() / "models") / name
    if kept.is_file():
        with suppress(ModelError):  # a damaged file is written anew
            return open_session(str(kept), on)
    graph = write()
    _keep(kept, graph)
    return open_session(graph, on)


def run_rows(run: Run, rows: Sequence[Sequence[int]]) -> list[Matrix]:
    """For each row of token ids what the network makes of it.

    Rows of one length run together, so nothing is padded and a row gets the same bits
    in any company.
    """
    import numpy as np  # start-up time

    batches = list(_batches(rows))

    def together(batch: list[int]) -> NDArray[np.float32]:
        return run(np.array([rows[place] for place in batch], dtype=np.int64))

    made: dict[int, Matrix] = {}
    for batch, states in zip(batches, _spread(together, batches), strict=True):
        made.update(zip(batch, states, strict=True))
    return [made[place] for place in range(len(rows))]


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The places of the rows, those of one length together, as many as go at once."""
    by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    for length, same in groupby(by_length, key=lambda place: len(rows[place])):
        places = list(same)
        most = max(1, _TOKENS_AT_ONCE // length)
        yield from (places[start : start + most] for start in range(0, len(places), most))


def _spread(
    run: Callable[[list[int]], NDArray[np.float32]], batches: list[list[int]]
) -> Iterator[NDArray[np.float32]]:
    """Runs the batches in order, on several threads where that is worth it."""
    threads = min(_MOST_THREADS, os.cpu_count() or 1)
    if threads < 2 or len(batches) < _WORTH_SHARING:
        yield from map(run, batches)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(run, batches)


def _keep(path: Path, content: bytes) -> None:
    """Writes the file whole or not at all, for its owner only; without a place for it
    the next process writes the graph again."""
    try:
        make_private_folder(path.parent)
        with NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(content)
            except OSError:
                Path(file.name).unlink()
                raise
        Path(file.name).replace(path)
    except OSError as error:
        _log.debug("the graph is not kept: %s", error)
