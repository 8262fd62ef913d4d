"""The sockets: what the engine asks of a store, an embedder, a reranker, a clock.

An adapter promises everything in its protocol; the laws are in
``tests/conformance``. Higher is better in every score that leaves an adapter.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.ports.files import Files, ForgottenFiles
from recollect.ports.language import Budget, BudgetSpent, LanguageModel, Prompt, Unusable
from recollect.ports.models import (
    Embedder,
    Embedding,
    LateInteraction,
    Reranker,
    Scaled,
    is_slow,
    late_interaction,
)
from recollect.ports.notes import NoteFile, Notes
from recollect.ports.store import Graph, Keeping, Searches, Store, Threads, Writes
from recollect.ports.values import (
    Activity,
    Event,
    Fading,
    Finding,
    Found,
    Kept,
    Listing,
    Match,
    Mention,
    Momentum,
    NearEntity,
    PieceSearch,
    Receipt,
    Record,
    Scope,
    Shared,
    Sibling,
    TextSearch,
    Usage,
    Word,
    WordStatistics,
)

if TYPE_CHECKING:
    from recollect.ports.models import Matrix as Matrix
    from recollect.ports.models import Vector as Vector

Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]

__all__ = [
    "Activity",
    "Budget",
    "BudgetSpent",
    "Clock",
    "Embedder",
    "Embedding",
    "Event",
    "Fading",
    "Files",
    "Finding",
    "ForgottenFiles",
    "Found",
    "Graph",
    "Keeping",
    "Kept",
    "LanguageModel",
    "LateInteraction",
    "Listing",
    "Match",
    "Mention",
    "Momentum",
    "NearEntity",
    "NoteFile",
    "Notes",
    "PieceSearch",
    "Progress",
    "Prompt",
    "Receipt",
    "Record",
    "Reranker",
    "Scaled",
    "Scope",
    "Searches",
    "Shared",
    "Sibling",
    "Store",
    "TextSearch",
    "Threads",
    "Unusable",
    "Usage",
    "Word",
    "WordStatistics",
    "Writes",
    "is_slow",
    "late_interaction",
]
