"""Ports: protocols for the store, embedder, reranker, language model and clock.

An adapter fulfils everything in its protocol; the laws are in ``tests/conformance``.
Higher is better in every score that an adapter returns.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from bethink.ports.models import (
    Budget,
    BudgetSpent,
    CalibratedEmbedder,
    Embedder,
    Embedding,
    LanguageModel,
    LateInteraction,
    Prompt,
    Reranker,
    Unusable,
    is_slow,
    late_interaction,
)
from bethink.ports.store import (
    FileStore,
    ForgottenFiles,
    GraphStore,
    NoteFile,
    NoteStore,
    SearchStore,
    Store,
    StoreAdmin,
    ThreadStore,
    WriteStore,
)
from bethink.ports.values import (
    Activity,
    CheckResult,
    EntityListing,
    EraseReceipt,
    Event,
    Match,
    Mention,
    Momentum,
    PutResult,
    Record,
    Scope,
    ScoredEntity,
    SearchResult,
    SharedEntities,
    Sibling,
    TextSearch,
    TrigramSearch,
    Usage,
    UsageDecay,
    Word,
    WordStatistics,
)

if TYPE_CHECKING:
    from bethink.ports.models import Matrix as Matrix
    from bethink.ports.models import Vector as Vector

__all__ = [
    "Activity",
    "Budget",
    "BudgetSpent",
    "CalibratedEmbedder",
    "CheckResult",
    "Clock",
    "Embedder",
    "Embedding",
    "EntityListing",
    "EraseReceipt",
    "Event",
    "FileStore",
    "ForgottenFiles",
    "GraphStore",
    "LanguageModel",
    "LateInteraction",
    "Match",
    "Mention",
    "Momentum",
    "NoteFile",
    "NoteStore",
    "Progress",
    "Prompt",
    "PutResult",
    "Record",
    "Reranker",
    "Scope",
    "ScoredEntity",
    "SearchResult",
    "SearchStore",
    "SharedEntities",
    "Sibling",
    "Store",
    "StoreAdmin",
    "TextSearch",
    "ThreadStore",
    "TrigramSearch",
    "Unusable",
    "Usage",
    "UsageDecay",
    "Word",
    "WordStatistics",
    "WriteStore",
    "is_slow",
    "late_interaction",
]


Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
