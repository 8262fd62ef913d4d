"""Registry of rerankers by name, and the model-free word-overlap reranker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from bethink.errors import BadSetting
from bethink.models import NONE, Provider
from bethink.retrieval.overlap import OverlapScorer, OverlapWeights, bm25_idf, content_tokens

if TYPE_CHECKING:  # start-up time, see bethink.models
    from bethink.ports import Reranker


class OverlapReranker:
    """Rerank by shared words; word rarity is estimated from the given texts.

    The overlap v has no upper bound; v ÷ (1 + v) maps it to 0..1 in the same order.
    """

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        question, weights = OverlapScorer(query), OverlapWeights()
        held = [set(content_tokens(text)) for text in texts]
        rarity = {
            word: bm25_idf(len(texts), sum(word in words for words in held))
            for word in set(question.words)
        }
        values = [max(0.0, question.shared(text, rarity, weights).value) for text in texts]
        return [value / (1.0 + value) for value in values]


_CROSS_ENCODER: Provider[Reranker] = Provider(
    "bethink.models.rerank.cross_encoder", "CrossEncoder", "FOLDER", slow_to_load=True
)

# Those that need nothing but their name.
RERANKERS: dict[str, Provider[Reranker]] = {
    "overlap": Provider("bethink.models.rerank", "OverlapReranker"),
    "cross-encoder": _CROSS_ENCODER,
}

_RERANK_PREFIXES = ("BETHINK_RERANK_",)

# Those that must be told where their model is.
RERANK_PROVIDERS: dict[str, Provider[Reranker]] = {
    "cross-encoder": _CROSS_ENCODER,
    "http": Provider(
        "bethink.models.rerank.http", "open_http", "//HOST/PATH#MODEL", reads=_RERANK_PREFIXES
    ),
    "https": Provider(
        "bethink.models.rerank.http", "open_https", "//HOST/PATH#MODEL", reads=_RERANK_PREFIXES
    ),
}


def reranker_provider(name: str) -> Provider[Reranker] | None:
    """Return the provider of a reranker name; None if there is none."""
    return RERANKERS.get(name) or RERANK_PROVIDERS.get(name.partition(":")[0])


def open_reranker(reranker: str | Reranker | None) -> Reranker | None:
    """Create the reranker of a name or "provider:argument", not loaded yet.

    "none" and None return None; a callable is returned as it is. The same name returns the
    same instance for the life of the process: a loaded model, and the state of a server that
    does not answer, are worth keeping.
    """
    return _open_named(reranker) if isinstance(reranker, str) else reranker


@lru_cache(maxsize=8)
def _open_named(name: str) -> Reranker | None:
    if name == NONE:
        return None
    if name in RERANKERS:
        return RERANKERS[name]()
    provider, _, argument = name.partition(":")
    if provider in RERANK_PROVIDERS and argument:
        return RERANK_PROVIDERS[provider](argument)
    models = [f"{prefix}:{provider.takes}" for prefix, provider in RERANK_PROVIDERS.items()]
    raise BadSetting(
        f"there is no reranker {name!r}",
        remedy=f"allowed: {', '.join([*RERANKERS, NONE, *models])}",
    )


def sigmoid(logit: float) -> float:
    """Map a logit to 0..1; by the tangent, which cannot overflow."""
    return 0.5 * (1.0 + math.tanh(logit / 2))
