"""Registry of language models by provider."""

from __future__ import annotations

from bethink.core.registry import Registry
from bethink.models import NONE, Provider, find_provider, open_model, plugin_provider, served
from bethink.ports import LanguageModel

_OPEN, _OWN_PREFIX = "bethink.models.llm.providers:open_", "BETHINK_LLM_"

LLMS: Registry[Provider[LanguageModel]] = Registry(
    "language model",
    {
        "openai": served(f"{_OPEN}openai", "MODEL", "OPENAI_", _OWN_PREFIX),
        "anthropic": served(f"{_OPEN}anthropic", "MODEL", "ANTHROPIC_", _OWN_PREFIX),
        "ollama": served(f"{_OPEN}ollama", "MODEL", "OLLAMA_", _OWN_PREFIX),
    },
    group="bethink.llms",
    adapt=plugin_provider,
)


def llm_provider(name: str) -> Provider[LanguageModel] | None:
    """Return the provider of a language model; None where there is none."""
    return find_provider(LLMS, name)


def open_llm(name: str = NONE) -> LanguageModel | None:
    """Create the language model of "provider:model"; "none" returns None (rules alone).

    Every language model is created here and nowhere else.
    """
    return None if name == NONE else open_model(LLMS, name)
