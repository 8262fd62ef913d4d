"""Cross-encoder reranker: reads query and memory together, run by sentence-transformers.

``reranker = "cross-encoder"`` or ``"cross-encoder:NAME_OR_FOLDER"``. Only a model that is
named with an argument is downloaded, and by that library.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from threading import Lock
from typing import Any

from bethink.config.paths import data_folder
from bethink.core.arrays import np
from bethink.core.lazy import Lazy
from bethink.errors import ModelError
from bethink.models.embed.sentence_transformers import first_line, load_model
from bethink.models.embed.tokenizers import require_encodable
from bethink.models.rerank import sigmoid

DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L-6-v2"


class CrossEncoder:
    """Scores of 0 to 1 for query-text pairs, each read by the whole network.

    Nogueira & Cho, 2019. Any classifier with one label. Creating one costs nothing; it is
    loaded with the first pair. Thread-safe.
    """

    def __init__(self, name: str = "") -> None:
        """Set the model's name or folder; nothing is loaded or looked up yet."""
        self._name = name
        self._network = Lazy(self._load)
        # The library's tokenizers are not thread-safe.
        self._lock = Lock()

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        """Score how well each text answers the query, independently of the others."""
        if not texts:
            return []
        asked = require_encodable(query)
        pairs = [(asked, require_encodable(text)) for text in texts]
        network = self._network()
        try:
            with self._lock:
                # Models differ in what they make of a logit: here it is always the sigmoid.
                made = network.predict(pairs, activation_fn=_keep, show_progress_bar=False)
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"the cross-encoder failed: {first_line(error)}") from error
        logits = np.asarray(made, dtype=np.float32)
        if logits.shape != (len(texts),):
            raise ModelError(
                f"the model returns {logits.shape[-1]} scores per pair, not one",
                remedy='name another: reranker = "cross-encoder:NAME_OR_FOLDER"',
            )
        return [0.0 if isnan(logit) else sigmoid(logit) for logit in logits.tolist()]

    def _load(self) -> Any:
        if self._name:
            return load_model("CrossEncoder", self._name)
        folder = data_folder() / "models" / Path(DEFAULT_MODEL).name
        if folder.is_dir():
            return load_model("CrossEncoder", str(folder))
        try:
            return load_model("CrossEncoder", DEFAULT_MODEL, local_files_only=True)
        except ModelError as error:
            if error.__cause__ is None:
                raise  # the library is at fault
            remedy = f'hf download {DEFAULT_MODEL}, or set reranker = "cross-encoder:FOLDER"'
            raise ModelError(
                f"the model {DEFAULT_MODEL} is not on this machine", remedy=remedy
            ) from error


def _keep(logits: object) -> object:
    return logits
