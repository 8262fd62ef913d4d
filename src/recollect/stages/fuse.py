"""Makes one pool of the channels' rankings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from recollect.context import Channel, Context
from recollect.model import Candidate, Evidence, Item, Pool, best_first

Share = Callable[[Channel, Evidence, Pool], Evidence]


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion (Cormack et al., SIGIR 2009): Σ weight / (k + rank).

    Only ranks count, so channels need no common scale. ``pool`` cuts what is
    passed on; 0 passes everything.
    """

    k: float = 60.0
    pool: int = 0
    name: str = "rrf"

    def __call__(self, found: Mapping[Channel, Pool], ctx: Context) -> Pool:
        def share(channel: Channel, seen: Evidence, _: Pool) -> Evidence:
            rank = seen.rank or 1
            return Evidence(
                f"fuse.{channel.name}", "add", channel.weight / (self.k + rank), f"rank {rank}"
            )

        merged = _merge(found, share)
        return merged[: ctx.reach(self.pool)] if self.pool else merged


@dataclass(frozen=True, slots=True)
class Weighted:
    """Weighted sum of the channels' scores, each channel's weight its own.

    ``scale`` "own" takes the scores as they are (for channels whose scores mean the
    same for every question), "max" divides each channel's by its best.
    """

    scale: Literal["own", "max"] = "max"
    pool: int = 0
    name: str = "weighted"

    def __call__(self, found: Mapping[Channel, Pool], ctx: Context) -> Pool:
        def share(channel: Channel, seen: Evidence, pool: Pool) -> Evidence:
            best = pool[0].score if self.scale == "max" and pool[0].score > 0 else 1.0
            part = channel.weight * max(0.0, seen.value) / best
            return Evidence(f"fuse.{channel.name}", "add", part, f"rank {seen.rank}")

        merged = _merge(found, share)
        return merged[: ctx.reach(self.pool)] if self.pool else merged


def _merge(found: Mapping[Channel, Pool], share: Share) -> Pool:
    """Each item once: first what every channel saw, then what each adds."""
    items: dict[str, Item] = {}
    seen: dict[str, list[Evidence]] = {}
    shares: dict[str, list[Evidence]] = {}
    for channel, pool in found.items():
        for cand in pool:
            own = cand.evidence[-1]
            items.setdefault(cand.item.id, cand.item)
            seen.setdefault(cand.item.id, []).append(own.as_seen())
            shares.setdefault(cand.item.id, []).append(share(channel, own, pool))
    return best_first(
        Candidate(item, sum(part.value for part in shares[key]), (*seen[key], *shares[key]))
        for key, item in items.items()
    )
