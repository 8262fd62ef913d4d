"""A local process that keeps models loaded; reached over a socket, always optional."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from bethink.config.settings import Settings
from bethink.models import embedder_provider
from bethink.models.rerank import reranker_provider
from bethink.store.url import is_server

_POSTGRES_PREFIX = "PG"  # what a URL leaves open: PGHOST, PGUSER, PGPASSWORD, PGSERVICE, ...


def should_start_worker(settings: Settings, *, reranker: str | None = None) -> bool:
    """Whether one command is reason enough to start a worker.

    The setting ``worker`` decides; with ``auto``, only if a model is slow to load: hooks and
    servers, which ask often, start one in any case. ``reranker`` is the one named for this call.
    """
    if settings.worker != "auto":
        return settings.worker == "on"
    named = settings.reranker if reranker is None else reranker
    providers = (embedder_provider(settings.embedder), reranker_provider(named))
    return any(provider is not None and provider.slow_to_load for provider in providers)


def environment_hash(settings: Settings, env: Mapping[str, str] = os.environ) -> str:
    """Hash the environment variables that the configured models and the store read.

    Empty where they read none. A request made with one API key must not be paid for with
    another, nor one for a database be answered from another.
    """
    prefixes = _variable_prefixes(settings)
    if not prefixes:
        return ""
    variables = sorted(
        f"{name}={value}" for name, value in env.items() if name.startswith(prefixes)
    )
    return hashlib.sha256("\n".join(variables).encode("utf-8", "replace")).hexdigest()[:16]


def _variable_prefixes(settings: Settings) -> tuple[str, ...]:
    providers = [embedder_provider(settings.embedder), reranker_provider(settings.reranker)]
    prefixes = [
        prefix for provider in providers if provider is not None for prefix in provider.env_prefixes
    ]
    if settings.llm != "none":
        from bethink.models.llm import llm_provider  # start-up time: rarely configured

        language = llm_provider(settings.llm)
        prefixes += language.env_prefixes if language is not None else ()
    if is_server(settings.store):
        prefixes.append(_POSTGRES_PREFIX)
    return tuple(prefixes)
