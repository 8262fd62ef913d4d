"""Cross-encoder reranker: reads query and memory together, run by ONNX Runtime.

``reranker = "cross-encoder"`` or ``"cross-encoder:FOLDER"``. The folder is supplied by the
user; nothing is ever downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.config.paths import data_folder
from bethink.core.arrays import NDArray, np
from bethink.core.lazy import Lazy
from bethink.errors import ModelError
from bethink.models.embed.tokenizers import open_tokenizer, require_encodable
from bethink.models.onnx_network import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    file_fingerprint,
    read_network_sizes,
    read_weights,
)
from bethink.models.onnx_runtime import (
    CPU_PROVIDER,
    OnnxSession,
    best_provider,
    cached_session,
    open_session,
    require_library,
    run_batched,
)
from bethink.models.rerank import sigmoid

if TYPE_CHECKING:
    from bethink.models.onnx_runtime import RunBatch


RERANK_EXTRA = "rerank"
DEFAULT_MODEL = "ms-marco-MiniLM-L-6-v2"
# Exported folders have one of these, and possibly no weights.
_EXPORTED_GRAPHS = ("model.onnx", "onnx/model.onnx")
# Increased with every change of the graph that changes its scores.
_GRAPH_VERSION = 1
_SPECIAL_TOKENS = 3
_REMEDY = (
    f"put {CONFIG_FILE}, {TOKENIZER_FILE} and {WEIGHTS_FILE} of cross-encoder/{DEFAULT_MODEL}, "
    "or of another BERT cross-encoder, there, or name its folder: "
    'reranker = "cross-encoder:FOLDER"'
)


class CrossEncoder:
    """Scores of 0 to 1 for query-text pairs, each read by the whole network.

    Nogueira & Cho, 2019. The folder holds a BERT classifier with one label. Creating one
    costs nothing; it is loaded with the first pair. Thread-safe.
    """

    def __init__(self, folder: str = "", *, cache: Path | None = None, provider: str = "") -> None:
        """Set the folder, graph cache and execution provider; nothing is loaded yet.

        ``cache`` defaults to the user's cache folder, ``provider`` to the fastest
        available.
        """
        self._given_folder, self._cache, self._given_provider = folder, cache, provider
        self._folder = Lazy(self._find_folder)
        self._sizes = Lazy(lambda: read_network_sizes(self._folder(), _REMEDY))
        self._tokenizer = Lazy(lambda: open_tokenizer(self._folder() / TOKENIZER_FILE))
        self._session = Lazy(self._load)

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        """Score how well each text answers the query, independently of the others."""
        if not texts:
            return []
        session = self._session()
        pairs = self._encode_pairs(query, texts)
        logits = (float(row[0]) for row in run_batched(self._make_runner(session), pairs))
        return [0.0 if math.isnan(logit) else sigmoid(logit) for logit in logits]

    def _encode_pairs(self, query: str, texts: Sequence[str]) -> list[list[int]]:
        """Encode query and text as one row, truncated to the network's window."""
        split, room = self._tokenizer(), self._sizes().window - _SPECIAL_TOKENS
        query_ids = split(require_encodable(query)).ids
        rows = []
        for text in texts:
            text_ids = split(require_encodable(text)).ids
            first, second = split_room(len(query_ids), len(text_ids), room)
            rows.append(
                [split.start_id, *query_ids[:first], split.end_id, *text_ids[:second], split.end_id]
            )
        return rows

    def _make_runner(self, session: OnnxSession) -> RunBatch:
        if session.inputs == ("ids",):
            return lambda ids: session.run({"ids": ids})

        def judge(ids: NDArray[np.int64]) -> NDArray[np.float32]:
            ends = ids == self._tokenizer().end_id
            after = np.minimum(np.cumsum(ends, axis=1) - ends, 1)
            given = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": after.astype(np.int64),
            }
            made = session.run({name: given[name] for name in session.inputs})
            if made.shape != (len(ids), 1):
                raise ModelError(
                    f"the model in {self._folder()} does not return one score per pair"
                )
            logits: NDArray[np.float32] = made
            return logits

        return judge

    def _load(self) -> OnnxSession:
        require_library("onnxruntime", "the cross-encoder runs on", RERANK_EXTRA)
        folder = self._folder()
        self._sizes(), self._tokenizer()  # report errors in these first
        on = self._given_provider or best_provider()
        if not (folder / WEIGHTS_FILE).is_file():
            return self._open_exported(folder, on)
        if on != CPU_PROVIDER:
            # The int8 graph is for CPUs. Fall back to the CPU if a library of the
            # hardware is missing.
            with suppress(ModelError):
                session = self._open_converted("float", on)
                if session.hardware == on:
                    return session
        return self._open_converted("int8", CPU_PROVIDER)

    def _open_converted(self, kind: str, provider: str) -> OnnxSession:
        name = (
            f"{file_fingerprint(self._folder() / WEIGHTS_FILE)}-judge-{kind}-{_GRAPH_VERSION}.onnx"
        )
        return cached_session(
            name, lambda: self._build_graph(quantised=kind == "int8"), self._cache, provider
        )

    def _build_graph(self, *, quantised: bool) -> bytes:
        require_library("onnx", "writes the cross-encoder's graph", RERANK_EXTRA)
        from bethink.models.onnx_graph import build_cross_encoder_graph  # start-up time

        return build_cross_encoder_graph(
            self._sizes(),
            read_weights(self._folder()),
            separator=self._tokenizer().end_id,
            quantised=quantised,
        )

    def _open_exported(self, folder: Path, provider: str) -> OnnxSession:
        """Open a graph that came with the model, unchanged."""
        path = next(folder / name for name in _EXPORTED_GRAPHS if (folder / name).is_file())
        try:
            session = open_session(str(path), provider)
        except ModelError:
            if provider == CPU_PROVIDER:
                raise
            session = open_session(str(path), CPU_PROVIDER)
        unknown = set(session.inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in session.inputs:
            raise ModelError(f"{path} has no input for token ids", remedy=_REMEDY)
        return session

    def _find_folder(self) -> Path:
        folder = Path(self._given_folder).expanduser() if self._given_folder else default_folder()
        if not any((folder / name).is_file() for name in (WEIGHTS_FILE, *_EXPORTED_GRAPHS)):
            raise ModelError(f"there is no cross-encoder in {folder}", remedy=_fetch_remedy(folder))
        return folder


def _fetch_remedy(folder: Path) -> str:
    """Return the command that fetches the usual model into a folder; nothing else fetches it."""
    files = f"{CONFIG_FILE} {TOKENIZER_FILE} {WEIGHTS_FILE}"
    return (
        f"with a network: hf download cross-encoder/{DEFAULT_MODEL} {files} --local-dir {folder}; "
        f"without: {_REMEDY}"
    )


def default_folder() -> Path:
    """Return the default folder of the model."""
    return data_folder() / "models" / DEFAULT_MODEL


def split_room(first: int, second: int, room: int) -> tuple[int, int]:
    """Split the room between two lengths: cut the longer one first, then both alike."""
    if first + second <= room:
        return first, second
    half = room // 2
    if first <= half:
        return first, room - first
    if second <= half:
        return room - second, second
    return room - half, half
