"""The rerankers by name. A new one is one file and one line here."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from recollect.errors import BadSetting
from recollect.models import NONE, Provider

if TYPE_CHECKING:  # start-up time, see recollect.models
    from recollect.ports import Reranker

_CROSS_ENCODER: Provider[Reranker] = Provider(
    "recollect.models.cross_encoder", "CrossEncoder", "FOLDER", heavy=True
)

# Those that need nothing but their name.
RERANKERS: dict[str, Provider[Reranker]] = {
    "overlap": Provider("recollect.models.overlap", "OverlapReranker"),
    "cross-encoder": _CROSS_ENCODER,
}

_SERVED = ("RECOLLECT_RERANK_",)

# Those that must be told where their model is.
RERANK_PROVIDERS: dict[str, Provider[Reranker]] = {
    "cross-encoder": _CROSS_ENCODER,
    "http": Provider(
        "recollect.models.http_reranker", "open_http", "//HOST/PATH#MODEL", reads=_SERVED
    ),
    "https": Provider(
        "recollect.models.http_reranker", "open_https", "//HOST/PATH#MODEL", reads=_SERVED
    ),
}


def reranker_provider(name: str) -> Provider[Reranker] | None:
    """Who provides the reranker of that name; None where it is none, or no provider's."""
    return RERANKERS.get(name) or RERANK_PROVIDERS.get(name.partition(":")[0])


def open_reranker(wanted: str | Reranker | None) -> Reranker | None:
    """The reranker of that name or "provider:argument", not loaded yet; "none" and None
    mean none. One that is a function already is given back.

    The same name gives the same one as long as the process lives: a model that is
    loaded, and what is known of a server that does not answer, are worth keeping.
    """
    return _opened(wanted) if isinstance(wanted, str) else wanted


@lru_cache(maxsize=8)
def _opened(name: str) -> Reranker | None:
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
    """A logit as 0 to 1; by the tangent, which no number is too large for."""
    return 0.5 * (1.0 + math.tanh(logit / 2))
