"""A local process that keeps models loaded; reached over a socket, always optional."""

from __future__ import annotations

from bethink.config.settings import Settings
from bethink.models import embedder_provider
from bethink.models.rerank import reranker_provider


def should_use_worker(settings: Settings, *, reranker: str | None = None) -> bool:
    """Whether a worker should be started for these settings.

    The setting ``worker`` decides; with ``auto``, only if a model is slow to load.
    ``reranker`` is the one named for this call.
    """
    if settings.worker != "auto":
        return settings.worker == "on"
    named = settings.reranker if reranker is None else reranker
    providers = (embedder_provider(settings.embedder), reranker_provider(named))
    return any(provider is not None and provider.slow_to_load for provider in providers)
