"""Reads by a server's reranker: ``reranker = "http://HOST/PATH"``, with ``#MODEL`` if need be.

Spoken is what Cohere, Jina and vLLM understand; a server that wants ``texts`` rather
than ``documents``, as Text Embeddings Inference does, is understood after one refusal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from recollect.errors import ModelError
from recollect.models.breaker import Breaker
from recollect.models.exchange import Reply, Url, post, read_url
from recollect.models.patience import ask_patiently, bearer, check_status, cut, read_seconds
from recollect.models.readable import readable
from recollect.models.rerankers import sigmoid
from recollect.models.served import Patience

KEY_VARIABLE = "RECOLLECT_RERANK_API_KEY"
TIMEOUT_VARIABLE = "RECOLLECT_RERANK_TIMEOUT_S"
TIMEOUT_S = 5.0

_USUAL_PATH = "/rerank"
# A place and a number, with room for whatever else a server adds to them.
_BYTES_A_TEXT = 1 << 14
# No reranker reads more of a text; what is over would be sent for nothing.
_LONGEST_BYTES = 8000
# What every model has room for, where even that was too long.
_SHORT_BYTES = 1000
_NOT_UNDERSTOOD = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_TOO_MUCH = (*_NOT_UNDERSTOOD, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
# Beyond it lie infinity, and whole numbers that no float holds.
_LARGEST = 1e300
# So little outside of 0 to 1 is rounding, not a logit.
_ROUNDING = 1e-3


def open_http(address: str) -> HttpReranker:
    """What "http:" stands before: the rest of an address, or a whole one."""
    return HttpReranker(f"http:{address}" if address.startswith("//") else address)


def open_https(address: str) -> HttpReranker:
    """What "https:" stands before: the rest of an address."""
    return HttpReranker(f"https:{address}")


class HttpReranker:
    """Scores of 0 to 1 from a server, which is asked with patience and not believed blindly.

    A text the server says nothing about gets 0. Safe to share between threads.
    """

    def __init__(
        self,
        address: str,
        *,
        patience: Patience | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        where, _, self._model = address.partition("#")
        url = read_url(where, variable="the reranker's address")
        self._url = url._replace(path=url.path or _USUAL_PATH)
        limit_s = read_seconds(os.environ, TIMEOUT_VARIABLE, TIMEOUT_S)
        self._patience = patience or Patience(query_s=limit_s)
        self._breaker = breaker or Breaker()
        self._is_plain = False

    @property
    def url(self) -> Url:
        """Where the texts go."""
        return self._url

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query. Equal texts are sent once."""
        distinct = list(dict.fromkeys(text for text in texts if readable(text).strip()))
        if not distinct or not readable(query).strip():
            return [0.0] * len(texts)
        question = cut(query, _LONGEST_BYTES)
        short = [cut(text, _LONGEST_BYTES) for text in distinct]
        deadline = self._patience.clock() + self._patience.query_s
        given = self._breaker(lambda: self._asked(question, short, deadline))
        if not given:
            raise self._failure("gave no scores")
        named = (distinct[place] for place in given)
        scores = dict(zip(named, _as_shares(given.values()), strict=True))
        return [scores.get(text, 0.0) for text in texts]

    def _asked(self, query: str, texts: Sequence[str], deadline: float) -> dict[int, float]:
        """Scores by place; where it was too much, by halves, and of one text the beginning."""
        reply = self._reply(query, texts, deadline)
        if reply.status in _TOO_MUCH:
            if len(texts) > 1:
                half = len(texts) // 2
                later = self._asked(query, texts[half:], deadline)
                return self._asked(query, texts[:half], deadline) | {
                    half + place: score for place, score in later.items()
                }
            short = cut(texts[0], _SHORT_BYTES), cut(query, _SHORT_BYTES)
            if short != (texts[0], query):
                return self._asked(short[1], short[:1], deadline)
        check_status(
            reply.status,
            self._who,
            unknown=self._model or self._url.path,
            no_entry=f"look at {KEY_VARIABLE}",
        )
        return self._read(reply, len(texts))

    def _reply(self, query: str, texts: Sequence[str], deadline: float) -> Reply:
        """The answer, asked for in other words where the first are not understood."""
        reply = self._post(self._question(query, texts, is_plain=self._is_plain), deadline)
        if reply.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            other = self._post(self._question(query, texts, is_plain=not self._is_plain), deadline)
            if other.status not in _NOT_UNDERSTOOD:
                self._is_plain = not self._is_plain
                return other
        return reply

    def _question(self, query: str, texts: Sequence[str], *, is_plain: bool) -> dict[str, Any]:
        model = {"model": self._model} if self._model else {}
        if is_plain:
            return {**model, "query": query, "texts": list(texts), "truncate": True}
        return {**model, "query": query, "documents": list(texts), "top_n": len(texts)}

    def _post(self, question: dict[str, Any], deadline: float) -> Reply:
        texts = question.get("documents") or question["texts"]
        return ask_patiently(
            lambda left_s: post(
                self._url,
                question,
                bearer(os.environ, KEY_VARIABLE),
                timeout_s=left_s,
                limit=_BYTES_A_TEXT * (1 + len(texts)),
            ),
            deadline,
            who=self._who,
            clock=self._patience.clock,
            sleep=self._patience.sleep,
        )

    def _read(self, reply: Reply, texts: int) -> dict[int, float]:
        """The scores by place, as far as there are any; ModelError where one is none."""
        try:
            pairs = _pairs(reply.json())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._failure("gave an answer without scores") from error
        scores: dict[int, float] = {}
        for place, score in pairs:
            if not _is_number(place, int) or not 0 <= place < texts or place in scores:
                raise self._failure(f"gave scores that do not fit {texts} texts")
            if not _is_number(score, int | float) or not abs(score) <= _LARGEST:
                raise self._failure("gave scores that are no finite numbers")
            scores[place] = float(score)
        return scores

    @property
    def _who(self) -> str:
        return f"the reranker at {self._url.host}"

    def _failure(self, what: str) -> ModelError:
        return ModelError(f"{self._who} {what}")


def _pairs(answer: Any) -> list[tuple[Any, Any]]:
    """Places and scores, in any of the shapes there are."""
    if isinstance(answer, Mapping) and "scores" in answer:
        return list(enumerate(answer["scores"]))
    rows = answer if isinstance(answer, list) else answer.get("results", answer.get("data"))
    return [
        (row["index"], row["relevance_score"] if "relevance_score" in row else row["score"])
        for row in rows
    ]


def _as_shares(scores: Iterable[float]) -> list[float]:
    """All within 0 and 1: as they are or, where one lies outside, all of them as logits."""
    given = list(scores)
    if all(-_ROUNDING <= score <= 1 + _ROUNDING for score in given):
        return [min(1.0, max(0.0, score)) for score in given]
    return [sigmoid(score) for score in given]


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
