"""The language models by name. A provider is one file; this table is how it is found."""

from __future__ import annotations

from recollect.errors import BadSetting
from recollect.models import NONE, Provider
from recollect.ports import LanguageModel

_PATIENCE = ("RECOLLECT_LLM_",)

PROVIDERS: dict[str, Provider[LanguageModel]] = {
    "openai": Provider(
        "recollect.models.llm.openai", "open_openai", "MODEL", reads=("OPENAI_", *_PATIENCE)
    ),
    "anthropic": Provider(
        "recollect.models.llm.anthropic",
        "open_anthropic",
        "MODEL",
        reads=("ANTHROPIC_", *_PATIENCE),
    ),
    "ollama": Provider(
        "recollect.models.llm.ollama", "open_ollama", "MODEL", reads=("OLLAMA_", *_PATIENCE)
    ),
}


def llm_provider(name: str) -> Provider[LanguageModel] | None:
    """Who provides the language model of that name; None where it is none."""
    return PROVIDERS.get(name.partition(":")[0])


def open_llm(name: str = NONE) -> LanguageModel | None:
    """The model of "provider:model", not asked yet; "none" means rules alone.

    Every language model is made here and nowhere else.
    """
    if name == NONE:
        return None
    provider, _, model = name.partition(":")
    if provider in PROVIDERS and model:
        return PROVIDERS[provider](model)
    allowed = ", ".join([NONE, *(f"{prefix}:{one.takes}" for prefix, one in PROVIDERS.items())])
    raise BadSetting(f"there is no language model {name!r}", remedy=f"allowed: {allowed}")
