"""Ports: protocols for the store, embedder, reranker, language model and clock.

An adapter fulfils everything in its protocol; the laws are in ``tests/conformance``.
Higher is better in every score that an adapter returns.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from bethink.ports.models import (
    Budget,
    BudgetSpent,
    Embedder,
    Embedding,
    FindNames,
    FindSecrets,
    FoundName,
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
from bethink.ports.store import NoteFile, NoteStore, Store
from bethink.ports.values import (
    Background,
    CheckResult,
    Choose,
    Device,
    EntityListing,
    EraseReceipt,
    Event,
    ForgottenFiles,
    Match,
    Mention,
    Nearest,
    OpBatch,
    PriorUse,
    PutResult,
    Record,
    Scope,
    ScoredEntity,
    SearchResult,
    SharedEntities,
    Sibling,
    SyncConflict,
    SyncResult,
    TextSearch,
    TrigramSearch,
    Usage,
    UsageDecay,
    Word,
    WordStatistics,
    is_judged,
    is_span,
    journal_detail,
)

Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
