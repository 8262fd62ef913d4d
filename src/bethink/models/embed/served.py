"""Embedders behind a server (Ollama, OpenAI), with validation of every answer.

Every failure is a ModelError with a sentence, so that memories are stored and queued and
recalls answer without vectors. A server's error text is not repeated: it may come from
anywhere and would be read by a language model.

Cosines of two models cannot be compared: one may give 0.05 to unrelated texts, another 0.7.
Where a stage judges a cosine by itself, it needs the model's similarity baseline.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any

from bethink.config.paths import cache_folder, make_private_folder
from bethink.core.arrays import Matrix, normalise, np
from bethink.core.atomic_write import atomic_replace
from bethink.core.characters import has_substance
from bethink.core.lazy import Lazy
from bethink.core.named_tuple import NamedTuple
from bethink.core.toml import parse_toml
from bethink.models.embed.encoder import count_tokens
from bethink.models.embed.tokenizers import require_encodable
from bethink.models.http import (
    CircuitBreaker,
    HttpReply,
    HttpRequest,
    ModelServer,
    ollama_server,
    openai_server,
    read_timeout,
    truncate_bytes,
)
from bethink.ports import Embedder, Embedding

BASELINES_FILE = "scales.json"
# Do not retry a failed measurement with every query.
_RETRY_AFTER_S = 300.0
# Upper bound, for a model that finds everything similar.
_MAX_BASELINE = 0.99

_log = logging.getLogger(__name__)


@cache
def unrelated_texts() -> tuple[list[str], list[str]]:
    """Return questions and statements that have nothing in common."""
    found = parse_toml(Path(__file__).with_name("unrelated.toml").read_text("utf-8"))
    return found["questions"], found["statements"]


def measure_baseline(embedder: Embedder) -> float:
    """Measure a model's mean cosine of unrelated questions and statements; deterministic."""
    questions, statements = unrelated_texts()
    return mean_cosine(
        np.stack([embedder.embed_query(text).vector for text in questions]),
        np.stack([embedding.vector for embedding in embedder.embed(statements)]),
    )


def mean_cosine(questions: Matrix, statements: Matrix) -> float:
    """Return the mean cosine between two sets of unit vectors."""
    return float((questions @ statements.T).mean())


class SimilarityBaseline:
    """A model's similarity baseline: measured once on this machine, then read from a file.

    If measuring fails it raises ModelError, and for a while does so without trying again. If
    the file cannot be written every process measures for itself.
    """

    def __init__(
        self, model: Callable[[], str], measure: Callable[[], float], *, cache: Path | None = None
    ) -> None:
        """Set how to name and measure the model, neither called yet, and the folder of the file."""
        self._model, self._measure, self._cache = model, measure, cache
        self._value = Lazy(self._load_or_measure)
        self._breaker = CircuitBreaker(limit=1, rest_s=_RETRY_AFTER_S)

    def __call__(self) -> float:
        """Return the usual cosine of two unrelated texts."""
        return self._value() if self._value else self._breaker(self._value)

    def _load_or_measure(self) -> float:
        path = (self._cache or cache_folder() / "models") / BASELINES_FILE
        known = _read_baselines(path)
        model = self._model()
        if model not in known:
            known[model] = min(self._measure(), _MAX_BASELINE)
            _write_baselines(path, known)
        return known[model]


def _read_baselines(path: Path) -> dict[str, float]:
    """Read the known baselines; skip invalid entries of a damaged file."""
    with suppress(OSError, ValueError, RecursionError):
        kept = json.loads(path.read_bytes())
        if isinstance(kept, dict):
            return {
                name: value
                for name, value in kept.items()
                if isinstance(value, float) and -1.0 <= value <= _MAX_BASELINE
            }
    return {}


def _write_baselines(path: Path, known: dict[str, float]) -> None:
    try:
        make_private_folder(path.parent)
        atomic_replace(path, json.dumps(known, indent=1, sort_keys=True).encode() + b"\n")
    except OSError as error:
        _log.debug("the similarity baseline was not cached: %s", error)


QUERY_VARIABLE = "BETHINK_QUERY_TIMEOUT_S"
BATCH_VARIABLE = "BETHINK_BATCH_TIMEOUT_S"

MAX_REPLY_BYTES = 50 << 20
# Three times the size of a large vector in JSON.
_REPLY_BYTES_PER_TEXT = 1 << 19
_BATCH_TEXTS = 64
# A token has at least one byte, so this fits the usual 8,192 tokens.
_MAX_TEXT_BYTES = 8000
# Fallback that fits every model, if the first limit was too long.
_FALLBACK_TEXT_BYTES = 1000

_TOO_LONG_STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


class EmbeddingProtocol(NamedTuple):
    """The request and response format of one kind of embedding server."""

    provider: str
    server: ModelServer
    make_request: Callable[[str, Sequence[str]], object]
    read_vectors: Callable[[Any], list[object]]


class EmbedderTimeouts(NamedTuple):
    """Timeouts for a query and for a batch, and the clock to measure them with."""

    query_s: float = 2.0
    batch_s: float = 30.0
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep


class ServedEmbedder:
    """Vectors from a server, whose first answer fixes the dimensions. Thread-safe."""

    slow = True
    remote = True

    def __init__(
        self,
        service: EmbeddingProtocol,
        model: str,
        *,
        timeouts: EmbedderTimeouts | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._service, self._name = service, model
        self._timeouts = timeouts or timeouts_from(os.environ)
        self._breaker = breaker or CircuitBreaker()
        self._baseline = SimilarityBaseline(lambda: self.model, self._measure_baseline)
        self._lock = Lock()
        self._dim = 0

    @property
    def model(self) -> str:
        """Provider, model and dimensions; requests the latter if they are not known yet."""
        return f"{self._service.provider}:{self._name}:{self.dim}"

    @property
    def dim(self) -> int:
        if not self._dim:
            self._fetch_vectors(["dimensions"], self._timeouts.query_s)
        return self._dim

    @property
    def unrelated(self) -> float:
        """The usual cosine of unrelated texts, measured once here by a request that may fail."""
        return self._baseline()

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text; zeros for an empty one. Uses the batch timeout."""
        return self._embed_within(texts, self._timeouts.batch_s)

    def embed_query(self, text: str) -> Embedding:
        """Return the same vector as ``embed``, within the query timeout."""
        return self._embed_within([text], self._timeouts.query_s)[0]

    def count_tokens(self, text: str) -> int:
        """Count as the default embedder does: a server would need a request."""
        return count_tokens(text)

    def _measure_baseline(self) -> float:
        questions, statements = unrelated_texts()
        vectors = self._fetch_vectors([*questions, *statements], self._timeouts.query_s)
        return mean_cosine(vectors[: len(questions)], vectors[len(questions) :])

    def _embed_within(self, texts: Sequence[str], timeout_s: float) -> list[Embedding]:
        filled = [place for place, text in enumerate(texts) if require_encodable(text)]
        made: dict[int, Embedding] = {}
        for start in range(0, len(filled), _BATCH_TEXTS):
            places = filled[start : start + _BATCH_TEXTS]
            vectors = self._fetch_vectors([texts[place] for place in places], timeout_s)
            made.update(zip(places, map(Embedding, vectors), strict=True))
        return [
            made[place] if place in made else Embedding(np.zeros(self.dim, dtype=np.float32))
            for place in range(len(texts))
        ]

    def _fetch_vectors(self, texts: Sequence[str], timeout_s: float) -> Matrix:
        short = [truncate_bytes(text, _MAX_TEXT_BYTES) for text in texts]
        return self._breaker(lambda: self._request_vectors(short, timeout_s))

    def _request_vectors(self, texts: Sequence[str], timeout_s: float) -> Matrix:
        """Request unit vectors; on a size error, retry one by one, then truncated."""
        timeouts, server = self._timeouts, self._service.server
        limit = min(MAX_REPLY_BYTES, _REPLY_BYTES_PER_TEXT * (1 + len(texts)))
        request = HttpRequest(self._service.make_request(self._name, texts), limit)
        reply = server.post(request, timeouts, timeouts.clock() + timeout_s)
        if reply.status in _TOO_LONG_STATUSES:
            if len(texts) > 1:
                return np.concatenate([self._request_vectors([text], timeout_s) for text in texts])
            if texts[0] != (short := truncate_bytes(texts[0], _FALLBACK_TEXT_BYTES)):
                return self._request_vectors([short], timeout_s)
        server.check_status(reply.status)
        return self._validate_vectors(reply, texts)

    def _validate_vectors(self, reply: HttpReply, texts: Sequence[str]) -> Matrix:
        server, read = self._service.server, self._service.read_vectors
        matrix = server.parse(
            reply, lambda answer: np.array(read(answer)), "returned an answer without vectors"
        )
        if matrix.ndim != 2 or matrix.dtype.kind not in "fi" or not matrix.shape[1]:
            raise server.error("returned something that is not a vector")
        if len(matrix) != len(texts):
            raise server.error(f"returned {len(matrix)} vectors for {len(texts)} texts")
        if not np.isfinite(matrix).all():
            raise server.error("returned values that are not finite numbers")
        dim = matrix.shape[1]
        with self._lock:  # the first answer fixes the dimensions
            self._dim = self._dim or dim
        if dim != self._dim:
            problem = f"returned {dim} dimensions, instead of {self._dim}"
            raise server.error(problem, "bethink reindex")
        if not matrix.any() and any(map(has_substance, texts)):
            raise server.error("returned vectors of zeros")
        # Scaled first: float32 would not hold the squares of very large numbers.
        peaks = np.abs(matrix).max(axis=1, keepdims=True)
        return normalise((matrix / np.where(peaks > 0, peaks, 1)).astype(np.float32))


def timeouts_from(env: Mapping[str, str]) -> EmbedderTimeouts:
    """Return the default timeouts, overridden by the environment."""
    usual = EmbedderTimeouts()
    return EmbedderTimeouts(
        read_timeout(env, QUERY_VARIABLE, usual.query_s),
        read_timeout(env, BATCH_VARIABLE, usual.batch_s),
    )


def open_ollama(
    model: str, *, timeouts: EmbedderTimeouts | None = None, breaker: CircuitBreaker | None = None
) -> ServedEmbedder:
    """Create the embedder of a model that Ollama serves."""
    service = EmbeddingProtocol(
        "ollama",
        ollama_server("/api/embed", model),
        make_request=lambda name, texts: {"model": name, "input": list(texts)},
        read_vectors=lambda answer: list(answer["embeddings"]),
    )
    return ServedEmbedder(service, model, timeouts=timeouts, breaker=breaker)


def open_openai(
    model: str, *, timeouts: EmbedderTimeouts | None = None, breaker: CircuitBreaker | None = None
) -> ServedEmbedder:
    """Create the embedder of a model behind OpenAI's protocol."""
    service = EmbeddingProtocol(
        "openai",
        openai_server("/embeddings", model),
        make_request=lambda name, texts: {
            "model": name,
            "input": list(texts),
            "encoding_format": "float",
        },
        read_vectors=_read_openai_vectors,
    )
    return ServedEmbedder(service, model, timeouts=timeouts, breaker=breaker)


def _read_openai_vectors(answer: Any) -> list[object]:
    rows = answer["data"]
    if sorted(row["index"] for row in rows) != list(range(len(rows))):
        raise ValueError("the vectors are not numbered")
    return [row["embedding"] for row in sorted(rows, key=lambda row: int(row["index"]))]
