"""Notes what was returned as used: the one thing a recall may change."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Pool


@dataclass(frozen=True, slots=True)
class Track:
    """Counts a use of every memory that was returned, and of no other."""

    name: str = "track"

    def __call__(self, hits: Pool, ctx: Context) -> None:
        ctx.store.note_use([hit.item.id for hit in hits], ctx.query.now)
