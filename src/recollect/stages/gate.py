"""Drops what is not relevant enough; perhaps that is everything."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Pool


@dataclass(frozen=True, slots=True)
class Threshold:
    """Drops what scores below ``min_score``, or below ``min_share`` of the best."""

    min_score: float = 0.0
    min_share: float = 0.0
    name: str = "threshold"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not pool:
            return pool
        floor = max(self.min_score, self.min_share * pool[0].score)
        kept = tuple(cand for cand in pool if cand.score >= floor)
        if len(kept) < len(pool):
            ctx.remark(f"{len(pool) - len(kept)} below {floor:.4f}")
        return kept
