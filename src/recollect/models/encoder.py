"""Runs a BERT encoder by ONNX Runtime; its graph is written once and kept."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from recollect.errors import MissingExtra, ModelError
from recollect.models.bert import WEIGHTS, Sizes, read_weights
from recollect.models.lazy import Once
from recollect.models.tensors import fingerprint
from recollect.places import APP, make_private_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.ports import Matrix

    Run = Callable[[NDArray[np.int64]], NDArray[np.float32]]

EXTRA = "transformer"
# Goes up with every change of the graph that changes its vectors.
CONVERTER = 1

# Texts of one length go through the network together, up to so many tokens.
_TOKENS_AT_ONCE = 1024
# From so many runs on several threads share them; each run gives the same bits anywhere.
_WORTH_SHARING = 8
_MOST_THREADS = 4

_log = logging.getLogger(__name__)


class Encoder:
    """The network of a model folder. Loaded at the first text; safe to share."""

    def __init__(self, folder: Path, sizes: Sizes, cache: Path | None = None) -> None:
        """``cache`` is where the graph is kept; without it, in the user's cache folder."""
        self._folder, self._sizes, self._cache = folder, sizes, cache
        self._session = Once(self._load)

    def encode(self, rows: Sequence[Sequence[int]]) -> list[Matrix]:
        """For each row of token ids their vectors in context: length × width."""
        import numpy as np  # start-up time

        run = self._session()
        batches = list(_batches(rows))

        def states(batch: list[int]) -> NDArray[np.float32]:
            return run(np.array([rows[place] for place in batch], dtype=np.int64))

        made: dict[int, Matrix] = {}
        for batch, together in zip(batches, _spread(states, batches), strict=True):
            made.update(zip(batch, together, strict=True))
        return [made[place] for place in range(len(rows))]

    def _load(self) -> Run:
        if find_spec("onnxruntime") is None:
            raise MissingExtra("ONNX Runtime, which the embedder runs on,", extra=EXTRA)
        name = f"{fingerprint(self._folder / WEIGHTS)}-{CONVERTER}.onnx"
        kept = (self._cache or _cache_folder()) / name
        if kept.is_file():
            with suppress(ModelError):  # a damaged file is written anew
                return _session(str(kept))
        graph = self._graph()
        _keep(kept, graph)
        return _session(graph)

    def _graph(self) -> bytes:
        if find_spec("onnx") is None:
            raise MissingExtra("onnx, which writes the embedder's graph,", extra=EXTRA)
        from recollect.models.graph import bert_graph  # start-up time: once in a lifetime

        _log.debug("writing the graph of %s", self._folder)
        return bert_graph(self._sizes, read_weights(self._folder))


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


def _session(graph: str | bytes) -> Run:
    """What runs the graph: token ids in, vectors out."""
    import onnxruntime  # start-up time
    from onnxruntime.capi import onnxruntime_pybind11_state as states

    # The library's errors have no class in common.
    failures = (
        states.Fail, states.InvalidArgument, states.InvalidGraph, states.InvalidProtobuf,
        states.NoModel, states.NoSuchFile, states.NotImplemented, states.RuntimeException,
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    # A thread pool of its own would not survive a fork; several callers still run at once.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Some builds report their use to the maker; ours never phones anywhere.
    onnxruntime.disable_telemetry_events()
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except failures as error:
        raise ModelError(f"the embedder's graph cannot be loaded: {error}") from error

    def run(ids: NDArray[np.int64]) -> NDArray[np.float32]:
        try:
            made: NDArray[np.float32] = session.run(None, {"ids": ids})[0]
        except failures as error:
            raise ModelError(f"the embedder failed: {error}") from error
        return made

    return run


def _cache_folder() -> Path:
    from platformdirs import user_cache_dir  # start-up time

    return Path(user_cache_dir(APP, appauthor=False)) / "models"


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
