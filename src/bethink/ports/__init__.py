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
    JudgePairs,
    LanguageModel,
    LateInteraction,
    PairVerdict,
    Prompt,
    Reranker,
    Unusable,
    embed_ahead,
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
    PriorUse,
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
    is_judged,
    journal_detail,
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
    "JudgePairs",
    "LanguageModel",
    "LateInteraction",
    "Match",
    "Mention",
    "Momentum",
    "Nearest",
    "NoteFile",
    "NoteStore",
    "PairVerdict",
    "PriorUse",
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
    "VectorStore",
    "Word",
    "WordStatistics",
    "embed_ahead",
    "is_judged",
    "is_remote",
    "is_slow",
    "joining",
    "journal_detail",
    "late_interaction",
    "unrelated_similarity",
]


Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
