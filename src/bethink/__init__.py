"""Bethink: a recall engine that gives AI agents a memory they can trust.

>>> from bethink import Memory
>>> with Memory.open(":memory:") as memory:
...     _ = memory.remember("Releases are cut on Tuesdays")
...     print(memory.recall("when do we cut releases?").hits[0].item.text)
Releases are cut on Tuesdays
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bethink.version import __version__

if TYPE_CHECKING:
    from bethink.api.write import Forgotten
    from bethink.async_memory import AsyncMemory
    from bethink.config.settings import Settings, load_settings
    from bethink.errors import (
        BadPlugin,
        BadProfile,
        BadSetting,
        BadText,
        BethinkError,
        Conflict,
        Forbidden,
        LooksPasted,
        MissingExtra,
        ModelError,
        NotFound,
        Refused,
        SchemaTooNew,
        SomeRefused,
        StoreBusy,
        StoreDamaged,
        StoreError,
        TooLarge,
        UntrustedSpace,
    )
    from bethink.importers.entry import Importer
    from bethink.memory import Memory
    from bethink.model import (
        Candidate,
        Draft,
        Entity,
        Evidence,
        Filters,
        Item,
        Link,
        Passage,
        Query,
        Recall,
        Remembered,
        Thread,
    )
    from bethink.ports import Embedder, Embedding, LanguageModel, Reranker, Store
    from bethink.retrieval.context import Assembler, Context, Fusion, Retriever, Stage
    from bethink.retrieval.profile import Profile, load_profile

__all__ = [
    "Assembler", "AsyncMemory", "BadPlugin", "BadProfile", "BadSetting", "BadText",
    "BethinkError", "Candidate", "Conflict", "Context", "Draft", "Embedder", "Embedding",
    "Entity", "Evidence", "Filters", "Forbidden", "Forgotten", "Fusion", "Importer", "Item",
    "LanguageModel", "Link", "LooksPasted", "Memory", "MissingExtra", "ModelError", "NotFound",
    "Passage", "Profile", "Query", "Recall", "Refused", "Remembered", "Reranker", "Retriever",
    "SchemaTooNew", "Settings", "SomeRefused", "Stage", "Store", "StoreBusy", "StoreDamaged",
    "StoreError", "Thread", "TooLarge", "UntrustedSpace", "__version__", "load_profile",
    "load_settings",
]  # fmt: skip

_NAMES_BY_MODULE = {
    "memory": "Memory",
    "async_memory": "AsyncMemory",
    "api.write": "Forgotten",
    "model": """Candidate Draft Entity Evidence Filters Item Link Passage Query Recall Remembered
        Thread""",
    "retrieval.profile": "Profile load_profile",
    "retrieval.context": "Assembler Context Fusion Retriever Stage",
    "ports": "Embedder Embedding LanguageModel Reranker Store",
    "importers.entry": "Importer",
    "config.settings": "Settings load_settings",
    "errors": """BadPlugin BadProfile BadSetting BadText BethinkError Conflict Forbidden LooksPasted
        MissingExtra ModelError NotFound Refused SchemaTooNew SomeRefused StoreBusy StoreDamaged
        StoreError TooLarge UntrustedSpace""",
}
_MODULES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import public names on first access, so that importing the package stays cheap."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bethink' has no attribute {name!r}")
    import importlib  # start-up time: a program may need only the version

    value = getattr(importlib.import_module(f"bethink.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
