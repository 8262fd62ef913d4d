"""Reads question and memory together: a cross-encoder, run by ONNX Runtime.

``reranker = "cross-encoder"`` or ``"cross-encoder:FOLDER"``. The folder is the user's;
nothing is ever fetched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import ModelError
from recollect.models.bert import CONFIG, TOKENIZER, WEIGHTS, network_sizes, read_weights
from recollect.models.lazy import Once
from recollect.models.readable import readable
from recollect.models.rerankers import sigmoid
from recollect.models.runtime import (
    CPU,
    Session,
    hardware,
    kept_session,
    open_session,
    require,
    run_rows,
)
from recollect.models.tensors import fingerprint
from recollect.models.wordpieces import WordPieces
from recollect.places import data_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.models.runtime import Run

EXTRA = "rerank"
MODEL = "ms-marco-MiniLM-L-6-v2"
# A folder as exporters leave it has one of these and may have no weights.
_READY = ("model.onnx", "onnx/model.onnx")
# Goes up with every change of the graph that changes its scores.
_CONVERTER = 1
_MARKS = 3
_REMEDY = (
    f"put {CONFIG}, {TOKENIZER} and {WEIGHTS} of cross-encoder/{MODEL}, or of another BERT "
    'cross-encoder, there, or name its folder: reranker = "cross-encoder:FOLDER"'
)


class CrossEncoder:
    """Scores of 0 to 1 for pairs, each read by the whole network (Nogueira & Cho, 2019).

    The folder holds a BERT classifier with one label. Making one costs nothing; it is
    loaded at the first pair. Safe to share between threads.
    """

    def __init__(self, folder: str = "", *, cache: Path | None = None, on: str = "") -> None:
        """``cache`` is where the graph is kept; without it, in the user's cache folder.
        ``on`` names ONNX Runtime's hardware; without it, the best there is."""
        self._given, self._cache, self._wanted = folder, cache, on
        self._folder = Once(self._find)
        self._sizes = Once(lambda: network_sizes(self._folder(), _REMEDY))
        self._pieces = Once(lambda: WordPieces(self._folder() / TOKENIZER))
        self._session = Once(self._load)

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query; the same for a text in any company."""
        if not texts:
            return []
        session = self._session()
        pairs = self._pairs(query, texts)
        return [_sigmoid(float(row[0])) for row in run_rows(self._judge(session), pairs)]

    def _pairs(self, query: str, texts: Sequence[str]) -> list[list[int]]:
        """Both one after the other, cut to what the network reads at once."""
        split, room = self._pieces(), self._sizes().window - _MARKS
        asked = split(readable(query)).ids
        rows = []
        for text in texts:
            told = split(readable(text)).ids
            first, second = share(len(asked), len(told), room)
            rows.append([split.first, *asked[:first], split.last, *told[:second], split.last])
        return rows

    def _judge(self, session: Session) -> Run:
        if session.inputs == ("ids",):
            return lambda ids: session.run({"ids": ids})

        def judge(ids: NDArray[np.int64]) -> NDArray[np.float32]:
            import numpy as np  # start-up time

            ends = ids == self._pieces().last
            after = np.minimum(np.cumsum(ends, axis=1) - ends, 1)
            given = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": after.astype(np.int64),
            }
            made = session.run({name: given[name] for name in session.inputs})
            if made.shape != (len(ids), 1):
                raise ModelError(f"the model in {self._folder()} gives not one number for a pair")
            logits: NDArray[np.float32] = made
            return logits

        return judge

    def _load(self) -> Session:
        require("onnxruntime", "the cross-encoder runs on", EXTRA)
        folder = self._folder()
        self._sizes(), self._pieces()  # what is wrong with these is said first
        on = self._wanted or hardware()
        if not (folder / WEIGHTS).is_file():
            return self._ready(folder, on)
        if on != CPU:
            # Whole numbers are for processors. Where a library of the hardware's is
            # missing, the processor does it.
            with suppress(ModelError):
                session = self._written("float", on)
                if session.hardware == on:
                    return session
        return self._written("int8", CPU)

    def _written(self, kind: str, on: str) -> Session:
        name = f"{fingerprint(self._folder() / WEIGHTS)}-judge-{kind}-{_CONVERTER}.onnx"
        return kept_session(name, lambda: self._graph(rounded=kind == "int8"), self._cache, on)

    def _graph(self, *, rounded: bool) -> bytes:
        require("onnx", "writes the cross-encoder's graph", EXTRA)
        from recollect.models.graph import judge_graph  # start-up time: once in a lifetime

        return judge_graph(
            self._sizes(),
            read_weights(self._folder()),
            separator=self._pieces().last,
            rounded=rounded,
        )

    def _ready(self, folder: Path, on: str) -> Session:
        """A graph that came with the model, run as it is."""
        path = next(folder / name for name in _READY if (folder / name).is_file())
        try:
            session = open_session(str(path), on)
        except ModelError:
            if on == CPU:
                raise
            session = open_session(str(path), CPU)
        unknown = set(session.inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in session.inputs:
            raise ModelError(f"{path} does not take token ids", remedy=_REMEDY)
        return session

    def _find(self) -> Path:
        folder = Path(self._given).expanduser() if self._given else usual_folder()
        if not any((folder / name).is_file() for name in (WEIGHTS, *_READY)):
            raise ModelError(f"there is no cross-encoder in {folder}", remedy=_REMEDY)
        return folder


def usual_folder() -> Path:
    """Where the model is looked for when no folder is named."""
    return data_folder() / "models" / MODEL


def share(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of two lengths fits: the longer one is cut first, then both alike."""
    if first + second <= room:
        return first, second
    half = room // 2
    if first <= half:
        return first, room - first
    if second <= half:
        return room - second, second
    return room - half, half


def _sigmoid(logit: float) -> float:
    return 0.0 if math.isnan(logit) else sigmoid(logit)
