"""The language models by name. A provider is one file; this table is how it is found."""

from __future__ import annotations

from recollect.errors import BadSetting
from recollect.models import NONE, Provider
from recollect.ports import LanguageModel

PROVIDERS: dict[str, Provider[LanguageModel]] = {
    "openai": Provider("recollect.models.llm.openai", "open_openai", "MODEL"),
    "anthropic": Provider("recollect.models.llm.anthropic", "open_anthropic", "MODEL"),
    "ollama": Provider("recollect.models.llm.ollama", "open_ollama", "MODEL"),
}


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
