"""Registry of rerankers by name, and the model-free word-overlap reranker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from bethink.core.registry import Registry
from bethink.core.words import bm25_idf
from bethink.models import (
    LIBRARY_PREFIXES,
    NONE,
    Provider,
    find_provider,
    open_model,
    plugin_provider,
    served,
)

if TYPE_CHECKING:  # start-up time, see bethink.models
    from bethink.ports import Reranker


class OverlapReranker:
    """Rerank by shared words; word rarity is estimated from the given texts.

    The overlap v has no upper bound; v ÷ (1 + v) maps it to 0..1 in the same order.
    """

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        from bethink.retrieval.overlap import (  # start-up time: a registry needs no word lists
            OverlapScorer,
            OverlapWeights,
            content_tokens,
        )

        question, weights = OverlapScorer(query), OverlapWeights()
        held = [set(content_tokens(text)) for text in texts]
        rarity = {
            word: bm25_idf(len(texts), sum(word in words for words in held))
            for word in set(question.words)
        }
        values = [max(0.0, question.score(text, rarity, weights).value) for text in texts]
        return [value / (1.0 + value) for value in values]


_OPEN, _ADDRESS, _PREFIX = (
    "bethink.models.rerank.http:open_",
    "//HOST/PATH#MODEL",
    "BETHINK_RERANK_",
)

RERANKERS: Registry[Provider[Reranker]] = Registry(
    "reranker",
    {
        "overlap": Provider("bethink.models.rerank:OverlapReranker"),
        "cross-encoder": Provider(
            "bethink.models.rerank.cross_encoder:CrossEncoder",
            "NAME_OR_FOLDER",
            slow_to_load=True,
            env_prefixes=LIBRARY_PREFIXES,
        ),
        "http": served(f"{_OPEN}http", _ADDRESS, _PREFIX),
        "https": served(f"{_OPEN}https", _ADDRESS, _PREFIX),
    },
    group="bethink.rerankers",
    adapt=plugin_provider,
)


def reranker_provider(name: str) -> Provider[Reranker] | None:
    """Return the provider of a reranker; None where there is none."""
    return find_provider(RERANKERS, name) if name not in _NOT_IN_TABLE else None


# The empty name is no reranker; "llm" is the space's own language model.
_NOT_IN_TABLE = ("", NONE, "llm")


def open_reranker(reranker: str | Reranker | None) -> Reranker | None:
    """Create the reranker of a name or "provider:argument", not loaded yet.

    "none" and None return None; a callable is returned as it is. The same name returns the
    same instance for the life of the process: a loaded model, and the state of a server that
    does not answer, are worth keeping.
    """
    return _open_named(reranker) if isinstance(reranker, str) else reranker


@lru_cache(maxsize=8)
def _open_named(name: str) -> Reranker | None:
    return None if name == NONE else open_model(RERANKERS, name)


def sigmoid(logit: float) -> float:
    """Map a logit to 0..1; by the tangent, which cannot overflow."""
    return 0.5 * (1.0 + math.tanh(logit / 2))
