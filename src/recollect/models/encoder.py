"""Runs a BERT encoder by ONNX Runtime; its graph is written once and kept."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.models.bert import WEIGHTS, Sizes, read_weights
from recollect.models.lazy import Once
from recollect.models.runtime import Session, kept_session, require, run_rows
from recollect.models.tensors import fingerprint

if TYPE_CHECKING:
    from recollect.ports import Matrix

EXTRA = "transformer"
# Goes up with every change of the graph that changes its vectors.
CONVERTER = 1

_log = logging.getLogger(__name__)


class Encoder:
    """The network of a model folder. Loaded at the first text; safe to share."""

    def __init__(self, folder: Path, sizes: Sizes, cache: Path | None = None) -> None:
        """``cache`` is where the graph is kept; without it, in the user's cache folder."""
        self._folder, self._sizes, self._cache = folder, sizes, cache
        self._session = Once(self._load)

    def encode(self, rows: Sequence[Sequence[int]]) -> list[Matrix]:
        """For each row of token ids their vectors in context: length × width."""
        session = self._session()
        return run_rows(lambda ids: session.run({"ids": ids}), rows)

    def _load(self) -> Session:
        require("onnxruntime", "the embedder runs on", EXTRA)
        name = f"{fingerprint(self._folder / WEIGHTS)}-{CONVERTER}.onnx"
        return kept_session(name, self._graph, self._cache)

    def _graph(self) -> bytes:
        require("onnx", "writes the embedder's graph", EXTRA)
        from recollect.models.graph import bert_graph  # start-up time: once in a lifetime

        _log.debug("writing the graph of %s", self._folder)
        return bert_graph(self._sizes, read_weights(self._folder))
