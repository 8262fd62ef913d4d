"""Brings in the insights above those that were found: the branch of a leaf, its root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Evidence, Item, Pool, best_first
from recollect.scope import rejects

DERIVES = ("derives_from",)
_MOST_STEPS = 8


@dataclass(frozen=True, slots=True)
class Ancestors:
    """From every insight found up to its root, each step for ``share`` of the score below.

    An insight that was found itself keeps its own score.
    """

    share: float = 0.9
    name: str = "ancestors"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        known = {cand.item.id for cand in pool}
        below = [cand for cand in pool if cand.item.level == "insight"]
        brought: dict[str, Candidate] = {}
        for _ in range(_MOST_STEPS):
            above = list(self._above(below, known | brought.keys(), ctx)) if below else []
            if not above:
                break
            brought.update((cand.item.id, cand) for cand in above)
            below = above
        if brought:
            ctx.remark(f"{len(brought)} insights above those found")
        return best_first((*pool, *brought.values()))

    def _above(
        self, below: Sequence[Candidate], known: set[str], ctx: Context
    ) -> Iterator[Candidate]:
        """The insights one step up that are not there yet, each from the best below it."""
        parents = parents_of([cand.item for cand in below], ctx)
        wanted = {one for several in parents.values() for one in several} - known
        items = ctx.get(sorted(wanted))
        for cand in best_first(below):
            for key in parents[cand.item.id]:
                item = items.pop(key, None)
                if item is None or item.level != "insight" or rejects(item, ctx.scope):
                    continue
                energy = self.share * cand.score
                why = f"{item.kind} above the {cand.item.kind}"
                reason = Evidence(self.name, "set", energy, why, cand.item.id)
                yield Candidate(item, energy, (reason,))


def parents_of(items: Sequence[Item], ctx: Context) -> dict[str, list[str]]:
    """For each insight what may stand above it: its parent, and what derives from it."""
    ids = {item.id for item in items}
    parents = {item.id: [item.parent] if item.parent else [] for item in items}
    for link in ctx.links_of(sorted(ids), DERIVES):
        if link.dst.id in ids and link.src.kind == "item" and link.src.id not in ids:
            parents[link.dst.id].append(link.src.id)
    return {key: sorted(set(several)) for key, several in parents.items()}
