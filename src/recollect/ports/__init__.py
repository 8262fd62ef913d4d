"""The sockets: what the engine asks of a store, an embedder, a reranker, a clock.

An adapter promises everything in its protocol; the laws are in
``tests/conformance``. Higher is better in every score that leaves an adapter.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.ports.language import Budget, BudgetSpent, LanguageModel, Prompt, Unusable
from recollect.ports.models import (
    Embedder,
    Embedding,
    LateInteraction,
    Reranker,
    late_interaction,
)
from recollect.ports.store import Graph, Keeping, Searches, Store, Writes
from recollect.ports.values import (
    Activity,
    Event,
    Finding,
    Found,
    Kept,
    Match,
    Mention,
    Receipt,
    Record,
    Scope,
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
    "Finding",
    "Found",
    "Graph",
    "Keeping",
    "Kept",
    "LanguageModel",
    "LateInteraction",
    "Match",
    "Mention",
    "Progress",
    "Prompt",
    "Receipt",
    "Record",
    "Reranker",
    "Scope",
    "Searches",
    "Store",
    "TextSearch",
    "Unusable",
    "Usage",
    "Word",
    "WordStatistics",
    "Writes",
    "late_interaction",
]
