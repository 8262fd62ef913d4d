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
    JoiningEmbedder,
    LanguageModel,
    LateInteraction,
    Prompt,
    Reranker,
    Unusable,
    UsualSimilarity,
    is_remote,
    is_slow,
    joining,
    late_interaction,
    unrelated_similarity,
)
from bethink.ports.store import (
    ActivityStore,
    GraphStore,
    ItemSearch,
    ItemStore,
    NoteFile,
    NoteStore,
    Store,
    StoreAdmin,
    VectorStore,
)
from bethink.ports.values import (
    Activity,
    Background,
    CheckResult,
    Choose,
    EntityListing,
    EraseReceipt,
    Event,
    ForgottenFiles,
    Match,
    Mention,
    Momentum,
    Nearest,
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
    "ActivityStore",
    "Background",
    "Budget",
    "BudgetSpent",
    "CalibratedEmbedder",
    "CheckResult",
    "Choose",
    "Clock",
    "Embedder",
    "Embedding",
    "EntityListing",
    "EraseReceipt",
    "Event",
    "ForgottenFiles",
    "GraphStore",
    "ItemSearch",
    "ItemStore",
    "JoiningEmbedder",
    "LanguageModel",
    "LateInteraction",
    "Match",
    "Mention",
    "Momentum",
    "Nearest",
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
    "SharedEntities",
    "Sibling",
    "Store",
    "StoreAdmin",
    "TextSearch",
    "TrigramSearch",
    "Unusable",
    "Usage",
    "UsageDecay",
    "UsualSimilarity",
    "VectorStore",
    "Word",
    "WordStatistics",
    "is_remote",
    "is_slow",
    "joining",
    "late_interaction",
    "unrelated_similarity",
]


Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
