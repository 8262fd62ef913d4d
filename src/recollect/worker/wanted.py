"""Whether a worker is worth it. Everybody asks, so hardly anything is loaded for it."""

from __future__ import annotations

from recollect.models import provider_of
from recollect.models.rerankers import reranker_provider
from recollect.settable import Settings


def is_wanted(settings: Settings, *, reranker: str | None = None) -> bool:
    """Whether a worker is worth starting: the settings say so or, by themselves, where a
    model takes long to load. ``reranker`` is the one named for this call."""
    if settings.worker != "auto":
        return settings.worker == "on"
    named = settings.reranker if reranker is None else reranker
    providers = (provider_of(settings.embedder), reranker_provider(named))
    return any(provider is not None and provider.heavy for provider in providers)
