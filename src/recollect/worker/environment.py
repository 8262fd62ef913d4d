"""What models read of the environment: the caller's counts, and a worker has its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from recollect.models import provider_of
from recollect.models.rerankers import reranker_provider
from recollect.settable import Settings


def environment_of(settings: Settings, env: Mapping[str, str] = os.environ) -> str:
    """A hash of what the environment tells the models that are set; empty where they read
    none of it. An answer asked for with one key must not be paid for with another."""
    reads = _reads(settings)
    if not reads:
        return ""
    told = sorted(f"{name}={value}" for name, value in env.items() if name.startswith(reads))
    return hashlib.sha256("\n".join(told).encode("utf-8", "replace")).hexdigest()[:16]


def _reads(settings: Settings) -> tuple[str, ...]:
    found = [provider_of(settings.embedder), reranker_provider(settings.reranker)]
    reads = [first for provider in found if provider is not None for first in provider.reads]
    if settings.llm != "none":
        from recollect.models.llm import llm_provider  # start-up time: most use none

        language = llm_provider(settings.llm)
        reads += language.reads if language is not None else ()
    return tuple(reads)
