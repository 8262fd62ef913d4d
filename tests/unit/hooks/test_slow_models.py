"""A hook without a worker uses no model that a prompt cannot wait for."""

from __future__ import annotations

from bethink.config.settings import Settings
from bethink.hooks.handlers import _without_slow_models
from rows import each_row


@each_row(
    ("embedder", "reranker", "left"),
    [
        ("encoder", "llm", ("encoder", "none")),
        ("encoder", "overlap", ("encoder", "overlap")),
        ("ollama:nomic", "cross-encoder", ("none", "none")),
    ],
)
def test_slow_models_are_left_out(embedder: str, reranker: str, left: tuple[str, str]) -> None:
    """Neither one that is loaded for long, nor a server, nor the language model."""
    settings = _without_slow_models(Settings(embedder=embedder, reranker=reranker))

    assert (settings.embedder, settings.reranker) == left
