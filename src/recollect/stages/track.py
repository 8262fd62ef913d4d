"""Notes what was returned as used: the one thing a recall may change."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Pool
from recollect.ports import Fading
from recollect.warmth import worked_out


@dataclass(frozen=True, slots=True)
class Track:
    """Counts a use of every memory that was returned, and of no other.

    What the walk had to find out about the momentum of their entities is kept.
    With ``decay_interval`` above 0 memories fade: every so many recalls each one that was
    not returned within ``grace_s`` loses ``decay_rate``. A returned one gains ``regain`` ×
    its score, up to 1.
    """

    decay_interval: int = 0
    decay_rate: float = 0.1
    grace_s: float = 60.0
    regain: float = 0.0
    name: str = "track"

    def __call__(self, hits: Pool, ctx: Context) -> None:
        fading = self._fading(hits)
        if not hits and fading is None:
            return
        ctx.store.note_use([hit.item.id for hit in hits], ctx.query.now, fading=fading)
        # What was worked out for a moment in the past is nobody's momentum now.
        fresh = worked_out((hit.item for hit in hits), ctx) if ctx.query.as_of is None else {}
        if fresh:
            ctx.store.set_momenta(fresh, ctx.query.now)

    def _fading(self, hits: Pool) -> Fading | None:
        if self.decay_interval < 1 and self.regain == 0:
            return None
        gains = {hit.item.id: self.regain * max(0.0, hit.score) for hit in hits}
        return Fading(self.decay_interval, self.decay_rate, self.grace_s, gains)
