"""Bethink: a recall engine that gives AI agents a memory they can trust.

>>> from bethink import Memory
>>> with Memory.open(":memory:") as memory:
...     _ = memory.remember("Releases are cut on Tuesdays")
...     print(memory.recall("when do we cut releases?").hits[0].item.text)
Releases are cut on Tuesdays
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bethink.version import __version__ as __version__

if TYPE_CHECKING:
    from bethink.api.write import Forgotten as Forgotten
    from bethink.async_memory import AsyncMemory as AsyncMemory
    from bethink.config.settings import Settings as Settings
    from bethink.config.settings import load_settings as load_settings
    from bethink.errors import BadPlugin as BadPlugin
    from bethink.errors import BadProfile as BadProfile
    from bethink.errors import BadSetting as BadSetting
    from bethink.errors import BadText as BadText
    from bethink.errors import BethinkError as BethinkError
    from bethink.errors import Conflict as Conflict
    from bethink.errors import Forbidden as Forbidden
    from bethink.errors import LooksPasted as LooksPasted
    from bethink.errors import MissingExtra as MissingExtra
    from bethink.errors import ModelError as ModelError
    from bethink.errors import NotFound as NotFound
    from bethink.errors import Refused as Refused
    from bethink.errors import SchemaTooNew as SchemaTooNew
    from bethink.errors import SomeRefused as SomeRefused
    from bethink.errors import StoreBusy as StoreBusy
    from bethink.errors import StoreDamaged as StoreDamaged
    from bethink.errors import StoreError as StoreError
    from bethink.errors import TooLarge as TooLarge
    from bethink.errors import UntrustedSpace as UntrustedSpace
    from bethink.importers.entry import Importer as Importer
    from bethink.memory import Memory as Memory
    from bethink.model import Candidate as Candidate
    from bethink.model import Draft as Draft
    from bethink.model import Entity as Entity
    from bethink.model import Evidence as Evidence
    from bethink.model import Filters as Filters
    from bethink.model import Item as Item
    from bethink.model import Link as Link
    from bethink.model import Passage as Passage
    from bethink.model import Query as Query
    from bethink.model import Recall as Recall
    from bethink.model import Remembered as Remembered
    from bethink.model import Thread as Thread
    from bethink.ports import Embedder as Embedder
    from bethink.ports import Embedding as Embedding
    from bethink.ports import LanguageModel as LanguageModel
    from bethink.ports import Reranker as Reranker
    from bethink.ports import Store as Store
    from bethink.retrieval.context import Assembler as Assembler
    from bethink.retrieval.context import Context as Context
    from bethink.retrieval.context import Fusion as Fusion
    from bethink.retrieval.context import Retriever as Retriever
    from bethink.retrieval.context import Stage as Stage
    from bethink.retrieval.profile import Profile as Profile
    from bethink.retrieval.profile import load_profile as load_profile

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
if not TYPE_CHECKING:  # to a type checker the imports above say it
    __all__ = ["__version__", *_MODULES]  # noqa: PLE0604 - they are strings


def __getattr__(name: str) -> Any:
    """Import public names on first access, so that importing the package stays cheap."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bethink' has no attribute {name!r}")
    import importlib  # start-up time: a program may need only the version

    value = getattr(importlib.import_module(f"bethink.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(("__version__", *_MODULES))
