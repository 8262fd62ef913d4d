"""Rank fusion on a scale from 0 to 1, with a little more for the very first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.context import Channel, Context
from recollect.model import Candidate, Evidence, Item, Pool, best_first


@dataclass(frozen=True, slots=True)
class RrfBonus:
    """Σ weight / (k + rank), divided by the best sum; then ``first`` more for the first
    and ``second`` more for the two behind it.

    When a single channel found anything, its own scores stay. Channels named in
    ``apart`` are never fused: what they find joins with the score it has there.
    ``pool`` cuts what is passed on; 0 passes everything.
    """

    k: float = 60.0
    first: float = 0.05
    second: float = 0.02
    apart: tuple[str, ...] = ()
    pool: int = 0
    name: str = "rrf_bonus"

    def __call__(self, found: Mapping[Channel, Pool], ctx: Context) -> Pool:
        fused = {ch: pool for ch, pool in found.items() if pool and ch.name not in self.apart}
        beside = [pool for ch, pool in found.items() if ch.name in self.apart]
        merged = self._fuse(fused) if len(fused) > 1 else next(iter(fused.values()), ())
        if len(fused) == 1:
            ctx.remark(f"only {next(iter(fused)).name} found anything: its scores stay")
        if self.pool:
            merged = merged[: ctx.reach(self.pool)]
        known = {cand.item.id for cand in merged}
        others: dict[str, Candidate] = {}
        for cand in best_first(cand for pool in beside for cand in pool):
            if cand.item.id not in known:
                others.setdefault(cand.item.id, cand)
        return best_first((*merged, *others.values()))

    def _fuse(self, found: Mapping[Channel, Pool]) -> Pool:
        items: dict[str, Item] = {}
        seen: dict[str, list[Evidence]] = {}
        shares: dict[str, list[Evidence]] = {}
        for channel, pool in found.items():
            for cand in pool:
                own, key = cand.evidence[-1], cand.item.id
                rank = own.rank or 1
                part = channel.weight / (self.k + rank)
                items.setdefault(key, cand.item)
                seen.setdefault(key, []).append(own.as_seen())
                shares.setdefault(key, []).append(
                    Evidence(f"fuse.{channel.name}", "add", part, f"rank {rank}")
                )
        summed = best_first(
            Candidate(item, sum(part.value for part in shares[key]), (*seen[key], *shares[key]))
            for key, item in items.items()
        )
        best = summed[0].score
        unit = 1.0 / best if best > 0 else 1.0
        return best_first(
            self._with_bonus(cand.because("fuse.scale", "times", unit, "the best is 1"), rank)
            for rank, cand in enumerate(summed, start=1)
        )

    def _with_bonus(self, cand: Candidate, rank: int) -> Candidate:
        bonus = self.first if rank == 1 else self.second if rank <= 3 else 0.0
        return cand.because("fuse.bonus", "add", bonus, f"place {rank}") if bonus else cand
