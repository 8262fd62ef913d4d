"""Shows one of several memories about the same that begin alike."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Evidence, Item, Pool
from recollect.text import fold


@dataclass(frozen=True, slots=True)
class Openings:
    """Keeps the best of those that speak of the same entities and share their first
    ``letters``; texts of fewer than ``shortest`` are never taken for the same.

    Coarser than ``collapse``: what differs only further on goes too.
    """

    letters: int = 120
    shortest: int = 16
    name: str = "openings"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        kept: dict[object, Candidate] = {}
        for cand in pool:
            opening = self._opening(cand.item)
            first = kept.get(opening)
            if first is None:
                kept[opening] = cand
            else:
                reason = Evidence(self.name, "seen", 1.0, "also begins", cand.item.id)
                kept[opening] = first._replace(evidence=(*first.evidence, reason))
        if len(kept) < len(pool):
            ctx.remark(f"{len(pool) - len(kept)} that begin alike collapsed")
        return tuple(kept.values())

    def _opening(self, item: Item) -> object:
        start = fold(item.text)[: self.letters]
        return item.id if len(start) < self.shortest else (frozenset(item.entities), start)
