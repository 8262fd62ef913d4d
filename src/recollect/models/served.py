"""Embedders behind a server: asked with patience, believed only after a look.

Whatever goes wrong is a ModelError with a sentence, so that memories are stored and
queued and recalls answer without vectors. What a server says in its errors is not
repeated: that text may come from anybody and would be read by a language model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.errors import ModelError
from recollect.models.breaker import Breaker
from recollect.models.exchange import Reply, Url, post
from recollect.models.patience import ask_patiently, check_status, cut, read_seconds
from recollect.models.readable import readable
from recollect.models.static import StaticEmbedder
from recollect.models.unrelated import QUESTIONS, STATEMENTS, Scale, between
from recollect.ports import Embedding

if TYPE_CHECKING:
    from recollect.ports import Matrix

QUERY_VARIABLE = "RECOLLECT_QUERY_TIMEOUT_S"
BATCH_VARIABLE = "RECOLLECT_BATCH_TIMEOUT_S"

MOST_BYTES = 50 << 20
# A vector of some thousand numbers, each written out in full, fits three times.
_BYTES_A_TEXT = 1 << 19
_TEXTS_AT_ONCE = 64
# No vocabulary needs more than a token a byte, so this fits the usual 8,192 tokens.
_LONGEST_BYTES = 8000
# What every model has room for, where even that was too long.
_SHORT_BYTES = 1000

_TOO_LONG = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


class Service(NamedTuple):
    """What one kind of server wants to be asked, and how its answer is read.

    ``headers`` is called for every request, so that a key is kept nowhere else.
    """

    provider: str
    url: Url
    headers: Callable[[], Mapping[str, str]]
    ask: Callable[[str, Sequence[str]], Any]
    read: Callable[[Any], list[Any]]
    unknown_model: str = ""
    no_entry: str = ""


class Patience(NamedTuple):
    """How long a question and a batch may take, and what tells the time."""

    query_s: float = 2.0
    batch_s: float = 30.0
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep


class ServedEmbedder:
    """Vectors from a server. Its first answer tells how many dimensions they have.

    Safe to share between threads; questions and memories are treated alike.
    """

    slow = True

    def __init__(
        self,
        service: Service,
        model: str,
        *,
        patience: Patience | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self._service, self._name = service, model
        self._patience = patience or patience_from(os.environ)
        self._breaker = breaker or Breaker()
        self._counter = StaticEmbedder()
        self._scale = Scale(lambda: self.model, self._measure)
        self._lock = Lock()
        self._dim = 0

    @property
    def model(self) -> str:
        """Provider, model and dimensions; the server is asked if these are not known yet."""
        return f"{self._service.provider}:{self._name}:{self.dim}"

    @property
    def dim(self) -> int:
        if not self._dim:
            self._vectors(["dimensions"], self._patience.query_s)
        return self._dim

    @property
    def unrelated(self) -> float:
        """The cosine of strangers: the server is asked once on this machine, in one
        request that may take as long as a question. ModelError where it does not say."""
        return self._scale()

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text; an empty one gets zeros. The server may take its time."""
        return self._embedded(texts, self._patience.batch_s)

    def embed_query(self, text: str) -> Embedding:
        """The same as ``embed`` gives, sooner or not at all."""
        return self._embedded([text], self._patience.query_s)[0]

    def count_tokens(self, text: str) -> int:
        """As the default embedder counts: a server would have to be asked."""
        return self._counter.count_tokens(text)

    def _measure(self) -> float:
        vectors = self._vectors([*QUESTIONS, *STATEMENTS], self._patience.query_s)
        return between(vectors[: len(QUESTIONS)], vectors[len(QUESTIONS) :])

    def _embedded(self, texts: Sequence[str], timeout_s: float) -> list[Embedding]:
        import numpy as np  # start-up time

        filled = [place for place, text in enumerate(texts) if readable(text)]
        made: dict[int, Embedding] = {}
        for start in range(0, len(filled), _TEXTS_AT_ONCE):
            places = filled[start : start + _TEXTS_AT_ONCE]
            vectors = self._vectors([texts[place] for place in places], timeout_s)
            made.update(zip(places, map(Embedding, vectors), strict=True))
        return [
            made[place] if place in made else Embedding(np.zeros(self.dim, dtype=np.float32))
            for place in range(len(texts))
        ]

    def _vectors(self, texts: Sequence[str], timeout_s: float) -> Matrix:
        short = [cut(text, _LONGEST_BYTES) for text in texts]
        return self._breaker(lambda: self._asked(short, timeout_s))

    def _asked(self, texts: Sequence[str], timeout_s: float) -> Matrix:
        """Unit vectors; texts that are too long are found one by one and cut."""
        import numpy as np  # start-up time

        reply = self._reply(texts, timeout_s)
        if reply.status in _TOO_LONG:
            if len(texts) > 1:
                return np.concatenate([self._asked([text], timeout_s) for text in texts])
            if texts[0] != (short := cut(texts[0], _SHORT_BYTES)):
                return self._asked([short], timeout_s)
        self._check_status(reply.status)
        return self._checked(reply, len(texts))

    def _reply(self, texts: Sequence[str], timeout_s: float) -> Reply:
        """Asks up to three times within the time there is."""
        service, patience = self._service, self._patience
        question = service.ask(self._name, texts)
        limit = min(MOST_BYTES, _BYTES_A_TEXT * (1 + len(texts)))
        return ask_patiently(
            lambda left_s: post(
                service.url, question, service.headers(), timeout_s=left_s, limit=limit
            ),
            patience.clock() + timeout_s,
            who=self._who,
            clock=patience.clock,
            sleep=patience.sleep,
        )

    def _check_status(self, status: int) -> None:
        service = self._service
        check_status(
            status,
            self._who,
            unknown=self._name,
            unknown_remedy=service.unknown_model,
            no_entry=service.no_entry,
        )

    def _checked(self, reply: Reply, texts: int) -> Matrix:
        import numpy as np  # start-up time

        from recollect.models.table import unit

        try:
            matrix = np.array(self._service.read(reply.json()))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise self._failure("gave an answer without vectors") from error
        if matrix.ndim != 2 or matrix.dtype.kind not in "fi" or not matrix.shape[1]:
            raise self._failure("gave something that is no vector")
        if len(matrix) != texts:
            raise self._failure(f"gave {len(matrix)} vectors for {texts} texts")
        if not np.isfinite(matrix).all():
            raise self._failure("gave values that are no finite numbers")
        self._settle(matrix.shape[1])
        # Scaled first: float32 would not hold the squares of very large numbers.
        peaks = np.abs(matrix).max(axis=1, keepdims=True)
        return unit((matrix / np.where(peaks > 0, peaks, 1)).astype(np.float32))

    def _settle(self, dim: int) -> None:
        """The first answer fixes the dimensions; vectors of others are never mixed in."""
        with self._lock:
            self._dim = self._dim or dim
        if dim != self._dim:
            raise self._failure(f"gave {dim} dimensions, {self._dim} before", "recollect reindex")

    def _failure(self, what: str, remedy: str = "") -> ModelError:
        return ModelError(f"{self._who} {what}", remedy=remedy)

    @property
    def _who(self) -> str:
        return f"{self._service.provider} at {self._service.url.host}"


def patience_from(env: Mapping[str, str]) -> Patience:
    """The usual patience, or what the environment says in seconds."""
    usual = Patience()
    return Patience(
        read_seconds(env, QUERY_VARIABLE, usual.query_s),
        read_seconds(env, BATCH_VARIABLE, usual.batch_s),
    )
