"""Embeds by any model that sentence-transformers can load, from a folder or by name.

A name that is not on this machine yet is fetched by that library. Code that comes with
a model is never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from recollect.errors import MissingExtra, ModelError
from recollect.models.bert import WEIGHTS
from recollect.models.lazy import Once
from recollect.models.readable import readable
from recollect.models.static import StaticEmbedder
from recollect.models.tensors import fingerprint
from recollect.models.unrelated import Scale, measure
from recollect.ports import Embedding

if TYPE_CHECKING:
    from recollect.ports import Matrix

EXTRA = "sentence-transformers"
_LIBRARY = "sentence_transformers"
# Before, code in a local folder was run whatever one said.
_OLDEST = 6


class SentenceTransformersEmbedder:
    """One vector a text, and with models that make a difference another for a question.

    Vectors do not depend on the texts embedded together, but for the last digit.
    """

    slow = True

    def __init__(self, name: str) -> None:
        """Nothing is loaded or looked up yet."""
        self._name = name
        self._folder = Path(name).expanduser()
        self._loaded = Once(self._load)
        self._scale = Scale(lambda: self.model, lambda: measure(self))
        self._counter = StaticEmbedder()
        # The library's tokenizers cannot be asked by two threads at once.
        self._lock = Lock()

    @property
    def model(self) -> str:
        """The model's name; for a folder also what tells its weights from others."""
        if not self._folder.is_dir():
            return f"{EXTRA}:{self._name}"
        weights = self._folder / WEIGHTS
        told = f"-{fingerprint(weights)[:8]}" if weights.is_file() else ""
        return f"{EXTRA}:{self._folder.resolve().name}{told}"

    @property
    def dim(self) -> int:
        dimension: int = self._loaded().get_embedding_dimension()
        return dimension

    @property
    def unrelated(self) -> float:
        """The cosine of strangers: the model is asked once on this machine."""
        return self._scale()

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text; an empty one gets zeros."""
        return self._embedded(texts, "encode_document")

    def embed_query(self, text: str) -> Embedding:
        """As the model reads questions, where it has a way of its own for them."""
        return self._embedded([text], "encode_query")[0]

    def count_tokens(self, text: str) -> int:
        """As the default embedder counts: these tokens are no language model's."""
        return self._counter.count_tokens(text)

    def _embedded(self, texts: Sequence[str], way: str) -> list[Embedding]:
        import numpy as np  # start-up time

        filled = [text for text in texts if readable(text)]
        vectors = iter(self._encode(filled, way) if filled else ())
        zeros = np.zeros(self.dim if texts else 0, dtype=np.float32)
        return [Embedding(next(vectors) if text else zeros.copy()) for text in texts]

    def _encode(self, texts: list[str], way: str) -> Matrix:
        import numpy as np  # start-up time

        from recollect.models.table import unit

        encode = getattr(self._loaded(), way)
        try:
            with self._lock:
                made = encode(texts, convert_to_numpy=True, show_progress_bar=False)
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{self._name} failed: {_first_line(error)}") from error
        vectors = np.asarray(made, dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self._name} gave values that are no finite numbers")
        return unit(vectors.copy())

    def _load(self) -> Any:
        if find_spec(_LIBRARY) is None:
            raise MissingExtra(EXTRA, extra=EXTRA)
        installed = version(EXTRA)
        if int(installed.partition(".")[0]) < _OLDEST:
            raise ModelError(
                f"{EXTRA} {installed} would run code that comes with a model",
                remedy=f"pip install '{EXTRA}>={_OLDEST}'",
            )
        from sentence_transformers import SentenceTransformer  # seconds: loads PyTorch

        place = str(self._folder) if self._folder.is_dir() else self._name
        try:
            return SentenceTransformer(place, trust_remote_code=False)
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            raise ModelError(f"{self._name} cannot be loaded: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """What the library says, without the page of advice that may follow."""
    return next(iter(str(error).splitlines()), type(error).__name__)
