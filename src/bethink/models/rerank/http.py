"""Rerank with an HTTP server: ``reranker = "http://HOST/PATH#MODEL"``.

It speaks the protocol of Cohere, Jina and vLLM; a server that expects ``texts`` rather than
``documents``, as Text Embeddings Inference does, is detected after one refusal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from bethink.models.embed.served import EmbedderTimeouts
from bethink.models.embed.tokenizers import require_encodable
from bethink.models.http import (
    CircuitBreaker,
    HttpReply,
    HttpRequest,
    ModelServer,
    Url,
    parse_base_url,
    read_key,
    read_timeout,
    truncate_bytes,
)
from bethink.models.rerank import sigmoid

RERANK_KEY_VARIABLE = "BETHINK_RERANK_API_KEY"
RERANK_TIMEOUT_VARIABLE = "BETHINK_RERANK_TIMEOUT_S"
DEFAULT_TIMEOUT_S = 5.0

_DEFAULT_PATH = "/rerank"
# Bytes per score: an index and a number, with room for other fields.
_REPLY_BYTES_PER_TEXT = 1 << 14
# No reranker reads more of a text than this.
_MAX_TEXT_BYTES = 8000
# Fallback that fits every model, if the first limit was too long.
_FALLBACK_TEXT_BYTES = 1000
_BAD_REQUEST_STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_TOO_LARGE_STATUSES = (*_BAD_REQUEST_STATUSES, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
# Excludes infinity, and integers that no float represents.
_MAX_SCORE = 1e300
# A value this little outside of 0 to 1 is a rounding error, not a logit.
_ROUNDING_TOLERANCE = 1e-3


def open_http(address: str) -> HttpReranker:
    """Create a reranker from the part after "http:", or from a whole URL."""
    return HttpReranker(f"http:{address}" if address.startswith("//") else address)


def open_https(address: str) -> HttpReranker:
    """Create a reranker from the part after "https:"."""
    return HttpReranker(f"https:{address}")


class HttpReranker:
    """Scores of 0 to 1 from a server, 0 for a text that it gives no score. Thread-safe."""

    remote = True

    def __init__(
        self,
        address: str,
        *,
        timeouts: EmbedderTimeouts | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        where, _, self._model = address.partition("#")
        url = parse_base_url(where, variable="the reranker's address")
        url = url._replace(path=url.path or _DEFAULT_PATH)
        self._server = ModelServer(
            f"the reranker at {url.host}",
            url,
            _headers,
            missing=self._model or url.path,
            auth_remedy=f"check {RERANK_KEY_VARIABLE}",
        )
        limit_s = read_timeout(os.environ, RERANK_TIMEOUT_VARIABLE, DEFAULT_TIMEOUT_S)
        self._timeouts = timeouts or EmbedderTimeouts(query_s=limit_s)
        self._breaker = breaker or CircuitBreaker()
        self._uses_texts_field = False

    @property
    def url(self) -> Url:
        """The URL that the texts are sent to."""
        return self._server.url

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        """Score how well each text answers the query. Equal texts are sent once."""
        distinct = list(dict.fromkeys(text for text in texts if require_encodable(text).strip()))
        if not distinct or not require_encodable(query).strip():
            return [0.0] * len(texts)
        question = truncate_bytes(query, _MAX_TEXT_BYTES)
        short = [truncate_bytes(text, _MAX_TEXT_BYTES) for text in distinct]
        deadline = self._timeouts.clock() + self._timeouts.query_s
        given = self._breaker(lambda: self._request_scores(question, short, deadline))
        if not given:
            raise self._server.error("returned no scores")
        named = (distinct[place] for place in given)
        scores = dict(zip(named, _to_unit_range(given.values()), strict=True))
        return [scores.get(text, 0.0) for text in texts]

    def _request_scores(
        self, query: str, texts: Sequence[str], deadline: float
    ) -> dict[int, float]:
        """Request scores by position; on a size error bisect, then truncate."""
        reply = self._post_query(query, texts, deadline)
        if reply.status in _TOO_LARGE_STATUSES:
            if len(texts) > 1:
                half = len(texts) // 2
                later = self._request_scores(query, texts[half:], deadline)
                return self._request_scores(query, texts[:half], deadline) | {
                    half + place: score for place, score in later.items()
                }
            short = (
                truncate_bytes(texts[0], _FALLBACK_TEXT_BYTES),
                truncate_bytes(query, _FALLBACK_TEXT_BYTES),
            )
            if short != (texts[0], query):
                return self._request_scores(short[1], short[:1], deadline)
        self._server.check_status(reply.status)
        return self._read_scores(reply, len(texts))

    def _post_query(self, query: str, texts: Sequence[str], deadline: float) -> HttpReply:
        """Post the query; after a refusal, try the other protocol variant."""
        reply = self._post(query, texts, deadline, uses_texts=self._uses_texts_field)
        if reply.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            other = self._post(query, texts, deadline, uses_texts=not self._uses_texts_field)
            if other.status not in _BAD_REQUEST_STATUSES:
                self._uses_texts_field = not self._uses_texts_field
                return other
        return reply

    def _post(
        self, query: str, texts: Sequence[str], deadline: float, *, uses_texts: bool
    ) -> HttpReply:
        payload: dict[str, object] = {"model": self._model} if self._model else {}
        if uses_texts:
            payload |= {"query": query, "texts": list(texts), "truncate": True}
        else:
            payload |= {"query": query, "documents": list(texts), "top_n": len(texts)}
        request = HttpRequest(payload, _REPLY_BYTES_PER_TEXT * (1 + len(texts)))
        return self._server.post(request, self._timeouts, deadline)

    def _read_scores(self, reply: HttpReply, texts: int) -> dict[int, float]:
        """Read the scores by position; raise ModelError where one is invalid."""
        pairs = self._server.parse(
            reply, _positions_and_scores, "returned an answer without scores"
        )
        scores: dict[int, float] = {}
        for place, score in pairs:
            if not _is_number(place, int) or not 0 <= place < texts or place in scores:
                raise self._server.error(f"returned scores that do not match the {texts} texts")
            if not _is_number(score, int | float) or not abs(score) <= _MAX_SCORE:
                raise self._server.error("returned scores that are not finite numbers")
            scores[place] = float(score)
        return scores


def _headers() -> dict[str, str]:
    key = read_key(RERANK_KEY_VARIABLE)
    return {"Authorization": f"Bearer {key}"} if key else {}


def _positions_and_scores(answer: Any) -> list[tuple[Any, Any]]:
    """Return positions and scores, from any of the known response shapes."""
    if isinstance(answer, Mapping) and "scores" in answer:
        return list(enumerate(answer["scores"]))
    rows = answer if isinstance(answer, list) else answer.get("results", answer.get("data"))
    return [
        (row["index"], row["relevance_score"] if "relevance_score" in row else row["score"])
        for row in rows
    ]


def _to_unit_range(scores: Iterable[float]) -> list[float]:
    """Clamp scores to 0..1; if one lies outside, treat all of them as logits."""
    given = list(scores)
    if all(-_ROUNDING_TOLERANCE <= score <= 1 + _ROUNDING_TOLERANCE for score in given):
        return [min(1.0, max(0.0, score)) for score in given]
    return [sigmoid(score) for score in given]


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
