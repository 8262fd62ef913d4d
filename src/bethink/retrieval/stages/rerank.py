"""Rerank the best candidates against the question."""

from __future__ import annotations

import math
from typing import Literal

from bethink.core.dataclass import dataclass
from bethink.errors import ModelError
from bethink.model import Candidate, Item, Pool, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.stages.late_interaction import shown_text

# Weight of the earlier score: up to rank 3, up to rank 10, and below.
_KEEP_BY_RANK = ((3, 0.75), (10, 0.60))
_KEEP_REST = 0.40


@dataclass(frozen=True, slots=True)
class Rerank:
    """Apply any reranker: a cross-encoder, a server, a language model, the caller's function.

    The new score is ``keep`` × the old plus (1 − ``keep``) × the reranker's 0 to 1. The old
    one is first scaled so that the best is 1, unless ``scale`` is "own". With
    ``keep_by_rank`` the first three keep 0.75, the first ten 0.6 and the rest 0.4. Skipped
    without a reranker.
    """

    keep: float = 0.4
    keep_by_rank: bool = False
    scale: Literal["max", "own"] = "max"
    top: int = 50
    name: str = "read"

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Return why the stage is skipped, or an empty string."""
        return "" if ctx.reranker is not None else "no reranker is configured"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if ctx.reranker is None:
            raise ModelError("no reranker is configured")
        best = pool[: self.top]
        if not best:
            return pool
        scores = list(ctx.reranker(ctx.query.text, [_rerank_text(cand.item, ctx) for cand in best]))
        if len(scores) != len(best):
            raise ModelError(f"the reranker gave {len(scores)} scores for {len(best)} memories")
        unit = 1 / best[0].score if self.scale == "max" and best[0].score > 0 else 1.0
        reranked = [
            self._blend_scores(cand, self._keep_share(rank), unit, _clamp_score(float(score)))
            for rank, (cand, score) in enumerate(zip(best, scores, strict=True), 1)
        ]
        kept = self._keep_share(self.top + 1)
        rest = [cand.with_evidence(self.name, "times", kept * unit) for cand in pool[self.top :]]
        return sort_by_score([*reranked, *rest])

    def _blend_scores(self, cand: Candidate, keep: float, unit: float, score: float) -> Candidate:
        cand = cand.with_evidence(self.name, "times", keep * unit, "weight of the earlier score")
        return cand.with_evidence(
            self.name, "add", (1 - keep) * score, f"reranker score {score:.2f}"
        )

    def _keep_share(self, rank: int) -> float:
        if not self.keep_by_rank:
            return self.keep
        return next((keep for last, keep in _KEEP_BY_RANK if rank <= last), _KEEP_REST)


def _rerank_text(item: Item, ctx: Context) -> str:
    """Return the text to rerank: an episode's text; of other levels the title too.

    Of a long memory it is the best passage: a reranker reads only so much.
    """
    text = shown_text(item, ctx)
    if item.level == "raw" or not item.caption or text.startswith(item.caption):
        return text
    return f"{item.caption}\n{text}"


def _clamp_score(score: float) -> float:
    """Clamp a reranker's score to 0..1; 0 if it is not finite."""
    return min(1.0, max(0.0, score)) if math.isfinite(score) else 0.0


@dataclass(frozen=True, slots=True)
class TopK:
    """Keep the best ``count`` candidates for the more expensive stages that follow."""

    count: int = 60
    name: str = "top"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return pool[: ctx.candidate_limit(self.count)]
