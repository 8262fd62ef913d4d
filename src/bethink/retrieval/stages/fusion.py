"""Fuse the retrievers' rankings into one pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from bethink.core.dataclass import dataclass
from bethink.model import Candidate, Evidence, Item, Pool, replay, sort_by_score
from bethink.retrieval.context import Context, Retriever

ContributionFunction = Callable[[Retriever, Evidence, Pool], Evidence]


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion (Cormack et al., SIGIR 2009): Σ weight / (k + rank).

    Only ranks count, so retrievers need no common scale. What only retrievers of weight 0
    found is left out. ``pool`` limits the result; 0 returns everything.
    """

    k: float = 60.0
    pool: int = 0
    name: str = "rrf"

    def __call__(self, found: Mapping[Retriever, Pool], ctx: Context) -> Pool:
        merged = merge_pools(found, self.share)
        if any(not channel.weight for channel in found):
            merged = tuple(cand for cand in merged if cand.score)
        return merged[: ctx.candidate_limit(self.pool)] if self.pool else merged

    def share(self, channel: Retriever, seen: Evidence, _: Pool) -> Evidence:
        """Return what a retriever contributes to the score of a memory."""
        rank = seen.rank or 1
        return Evidence(
            f"fuse.{channel.name}", "add", channel.weight / (self.k + rank), f"rank {rank}"
        )


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """Weighted sum of the retrievers' scores.

    ``scale`` "own" takes the scores as they are (for retrievers whose scores are comparable
    between questions), "max" divides each retriever's scores by its best.
    """

    scale: Literal["own", "max"] = "max"
    pool: int = 0
    name: str = "weighted"

    def __call__(self, found: Mapping[Retriever, Pool], ctx: Context) -> Pool:
        def share(channel: Retriever, seen: Evidence, pool: Pool) -> Evidence:
            best = pool[0].score if self.scale == "max" and pool[0].score > 0 else 1.0
            part = channel.weight * max(0.0, seen.value) / best
            return Evidence(f"fuse.{channel.name}", "add", part, f"rank {seen.rank}")

        merged = merge_pools(found, share)
        return merged[: ctx.candidate_limit(self.pool)] if self.pool else merged


def merge_pools(found: Mapping[Retriever, Pool], share: ContributionFunction) -> Pool:
    """Merge the pools: each item once, with what every retriever saw and contributes."""
    merged: dict[str, tuple[Item, list[Evidence], list[Evidence]]] = {}
    for channel, pool in found.items():
        for cand in pool:
            own, item = cand.evidence[-1], cand.item
            known = merged.get(item.id)
            if known is None:
                known = merged[item.id] = (item, [], [])
            known[1].append(own.as_report())
            known[2].append(share(channel, own, pool))
    return sort_by_score(
        Candidate(item, replay(shares), (*seen, *shares)) for item, seen, shares in merged.values()
    )
