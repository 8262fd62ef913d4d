"""Registry of language models by provider."""

from __future__ import annotations

from bethink.core.registry import Registry
from bethink.models import NONE, Provider, find_provider, open_model, plugin_provider
from bethink.ports import LanguageModel

_LLM_PREFIXES = ("BETHINK_LLM_",)

LLMS: Registry[Provider[LanguageModel]] = Registry(
    "language model",
    {
        "openai": Provider(
            "bethink.models.llm.providers:open_openai",
            "MODEL",
            bare=False,
            env_prefixes=("OPENAI_", *_LLM_PREFIXES),
        ),
        "anthropic": Provider(
            "bethink.models.llm.providers:open_anthropic",
            "MODEL",
            bare=False,
            env_prefixes=("ANTHROPIC_", *_LLM_PREFIXES),
        ),
        "ollama": Provider(
            "bethink.models.llm.providers:open_ollama",
            "MODEL",
            bare=False,
            env_prefixes=("OLLAMA_", *_LLM_PREFIXES),
        ),
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
