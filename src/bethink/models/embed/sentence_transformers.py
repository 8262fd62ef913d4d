"""Models of sentence-transformers, from a folder or by name; as an embedder any of them.

A name that is not on this machine yet is downloaded by that library. Code that comes with a
model is never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from bethink.core.arrays import Matrix, normalise, np
from bethink.core.lazy import Lazy
from bethink.core.small_files import file_fingerprint
from bethink.errors import MissingExtra, ModelError
from bethink.models.embed.encoder import count_tokens
from bethink.models.embed.served import SimilarityBaseline, measure_baseline
from bethink.models.embed.tokenizers import require_encodable
from bethink.ports import Embedding

SENTENCE_TRANSFORMERS_EXTRA = "sentence-transformers"
_LIBRARY = "sentence_transformers"
_WEIGHTS_FILE = "model.safetensors"
# Older versions run code from a local folder regardless of the option.
_MIN_MAJOR_VERSION = 6


class SentenceTransformersEmbedder:
    """One vector per text, the same in any batch but for the last digit; queries may differ."""

    slow = True

    def __init__(self, name: str) -> None:
        """Set the model's name or folder; nothing is loaded or looked up yet."""
        self._name = name
        self._folder = Path(name).expanduser()
        self._network = Lazy(lambda: load_model("SentenceTransformer", name))
        self._baseline = SimilarityBaseline(lambda: self.model, lambda: measure_baseline(self))
        # The library's tokenizers are not thread-safe.
        self._lock = Lock()

    @property
    def model(self) -> str:
        """The model's name; for a folder also a fingerprint of its weights."""
        if not self._folder.is_dir():
            return f"{SENTENCE_TRANSFORMERS_EXTRA}:{self._name}"
        weights = self._folder / _WEIGHTS_FILE
        suffix = f"-{file_fingerprint(weights)[:8]}" if weights.is_file() else ""
        return f"{SENTENCE_TRANSFORMERS_EXTRA}:{self._folder.resolve().name}{suffix}"

    @property
    def dim(self) -> int:
        dimension: int = self._network().get_embedding_dimension()
        return dimension

    @property
    def unrelated(self) -> float:
        """The usual cosine of unrelated texts, measured once on this machine."""
        return self._baseline()

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text; zeros for an empty one."""
        return self._embed_with(texts, "encode_document")

    def embed_query(self, text: str) -> Embedding:
        """Embed as a query, where the model distinguishes queries."""
        return self._embed_with([text], "encode_query")[0]

    def count_tokens(self, text: str) -> int:
        """Count as the default embedder does: these are not LLM tokens."""
        return count_tokens(text)

    def _embed_with(self, texts: Sequence[str], method: str) -> list[Embedding]:
        filled = [text for text in texts if require_encodable(text)]
        vectors = iter(self._encode(filled, method) if filled else ())
        zeros = np.zeros(self.dim if texts else 0, dtype=np.float32)
        return [Embedding(next(vectors) if text else zeros.copy()) for text in texts]

    def _encode(self, texts: list[str], method: str) -> Matrix:
        encode = getattr(self._network(), method)
        try:
            with self._lock:
                made = encode(texts, convert_to_numpy=True, show_progress_bar=False)
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{self._name} failed: {first_line(error)}") from error
        vectors = np.asarray(made, dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self._name} returned values that are not finite numbers")
        return normalise(vectors.copy())


def load_model(kind: str, name: str, **options: object) -> Any:
    """Load a model of one of the library's classes; ModelError where that fails."""
    if find_spec(_LIBRARY) is None:
        raise MissingExtra(SENTENCE_TRANSFORMERS_EXTRA, extra=SENTENCE_TRANSFORMERS_EXTRA)
    installed = version(SENTENCE_TRANSFORMERS_EXTRA)
    if int(installed.partition(".")[0]) < _MIN_MAJOR_VERSION:
        raise ModelError(
            f"{SENTENCE_TRANSFORMERS_EXTRA} {installed} would run code that comes with a model",
            remedy=f"pip install '{SENTENCE_TRANSFORMERS_EXTRA}>={_MIN_MAJOR_VERSION}'",
        )
    library = import_module(_LIBRARY)  # seconds: loads PyTorch
    folder = Path(name).expanduser()
    try:
        return getattr(library, kind)(
            str(folder) if folder.is_dir() else name, trust_remote_code=False, **options
        )
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise ModelError(f"{name} cannot be loaded: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of the library's message, without the advice after it."""
    return next(iter(str(error).splitlines()), type(error).__name__)
