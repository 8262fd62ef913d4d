"""Cuts an answer where its scores fall off."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from recollect.context import Context
from recollect.model import Pool, best_first
from recollect.stages.order import parted


@dataclass(frozen=True, slots=True)
class Elbow:
    """Keeps what comes before the widest gap between neighbours, if that is at least
    ``gap``, and before the first below ``ratio`` of the best: whichever comes earlier.

    One is always kept, and nothing is cut from fewer than ``least``. Levels in ``apart``
    are neither counted nor cut.
    """

    gap: float = 0.35
    ratio: float = 0.65
    least: int = 3
    apart: tuple[str, ...] = ("insight",)
    name: str = "elbow"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        mine, others = parted(pool, self.apart)
        if len(mine) < max(self.least, 1):
            return pool
        scores = [cand.score for cand in mine]
        by_gap, by_ratio = self._gap_at(scores), self._drop_at(scores)
        kept = max(1, min(by_gap, by_ratio))
        if kept < len(mine):
            how = "the widest gap" if by_gap <= by_ratio else f"below {self.ratio:g} of the best"
            ctx.remark(f"kept {kept} of {len(mine)}: {how}")
        return best_first((*mine[:kept], *others))

    def _gap_at(self, scores: list[float]) -> int:
        gaps = [high - low for high, low in pairwise(scores)]
        widest = max(gaps, default=0.0)
        if widest <= 0 or widest < self.gap:
            return len(scores)
        return gaps.index(widest) + 1

    def _drop_at(self, scores: list[float]) -> int:
        floor = self.ratio * scores[0]
        return next((at for at, score in enumerate(scores) if score < floor), len(scores))
