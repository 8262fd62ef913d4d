"""Registry of language models by name; each provider is one entry of a table."""

from __future__ import annotations

from bethink.errors import BadSetting
from bethink.models import NONE, Provider
from bethink.ports import LanguageModel

_LLM_PREFIXES = ("BETHINK_LLM_",)

LLM_PROVIDERS: dict[str, Provider[LanguageModel]] = {
    "openai": Provider(
        "bethink.models.llm.providers", "open_openai", "MODEL", reads=("OPENAI_", *_LLM_PREFIXES)
    ),
    "anthropic": Provider(
        "bethink.models.llm.providers",
        "open_anthropic",
        "MODEL",
        reads=("ANTHROPIC_", *_LLM_PREFIXES),
    ),
    "ollama": Provider(
        "bethink.models.llm.providers", "open_ollama", "MODEL", reads=("OLLAMA_", *_LLM_PREFIXES)
    ),
}


def llm_provider(name: str) -> Provider[LanguageModel] | None:
    """Return the provider of a language model name; None if there is none."""
    return LLM_PROVIDERS.get(name.partition(":")[0])


def open_llm(name: str = NONE) -> LanguageModel | None:
    """Create the language model of "provider:model"; "none" returns None (rules alone).

    Every language model is created here and nowhere else.
    """
    if name == NONE:
        return None
    provider, _, model = name.partition(":")
    if provider in LLM_PROVIDERS and model:
        return LLM_PROVIDERS[provider](model)
    allowed = ", ".join([NONE, *(f"{prefix}:{one.takes}" for prefix, one in LLM_PROVIDERS.items())])
    raise BadSetting(f"there is no language model {name!r}", remedy=f"allowed: {allowed}")
