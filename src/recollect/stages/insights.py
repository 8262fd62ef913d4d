"""Brings in the insights above those that were found: the branch of a leaf, its root."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Evidence, Pool, best_first
from recollect.scope import rejects

_MOST_STEPS = 8


@dataclass(frozen=True, slots=True)
class Ancestors:
    """From every insight found up to its root, each step for ``share`` of the score below.

    An insight that was found itself keeps its own score.
    """

    share: float = 0.9
    name: str = "ancestors"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        known = {cand.item.id: cand for cand in pool}
        below = [cand for cand in pool if cand.item.level == "insight"]
        brought: dict[str, Candidate] = {}
        for _ in range(_MOST_STEPS):
            wanted = {cand.item.parent for cand in below} - known.keys() - brought.keys()
            items = ctx.get(filter(None, wanted))
            above = []
            for cand in best_first(below):
                item = items.get(cand.item.parent or "")
                seen = item is None or item.id in brought or item.level != "insight"
                if item is None or seen or rejects(item, ctx.scope):
                    continue
                energy = self.share * cand.score
                why = f"{item.kind} above the {cand.item.kind}"
                reason = Evidence(self.name, "set", energy, why, cand.item.id)
                brought[item.id] = Candidate(item, energy, (reason,))
                above.append(brought[item.id])
            if not above:
                break
            below = above
        if brought:
            ctx.remark(f"{len(brought)} insights above those found")
        return best_first((*pool, *brought.values()))
