"""Brings in what the best are linked to, without letting it push the best aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recollect.context import Context
from recollect.model import Candidate, Evidence, Pool, best_first
from recollect.stages.neighbours import Families, Limits, Reached, reach
from recollect.stages.order import falling, parted
from recollect.timely import Curve


@dataclass(frozen=True, slots=True)
class GraphAssist:
    """Neighbours of the first ``seeds`` by links and shared entities.

    A neighbour is worth the seed's score × its family's weight × the link's strength.
    Semantic evidence of several seeds adds up with less for each further one and is
    bent by tanh; of the others the strongest counts. All are scaled so that the best is
    1. One that nothing else found enters with ``weight`` of that; one that was found
    gains ``weight`` of it, of what it lacks to 1. In mode "assist" the first
    ``protect`` stay first: whatever would pass them is held just below.
    """

    enabled: bool = True
    mode: Literal["assist", "expand"] = "assist"
    seeds: int = 6
    expanded: int = 12
    weight: float = 0.35
    protect: int = 3
    min_strength: float = 0.55
    min_confidence: float = 0.7
    hub: int = 8
    damping: float = 0.5
    semantic_per_seed: int = 2
    temporal_per_seed: int = 2
    causal_per_seed: int = 2
    siblings_per_seed: int = 3
    semantic_weight: float = 1.0
    causal_weight: float = 0.95
    temporal_weight: float = 0.9
    sibling_weight: float = 0.85
    semantic: tuple[str, ...] = ("similar_to", "semantic")
    temporal: tuple[str, ...] = ("follows", "temporal")
    causal: tuple[str, ...] = ("causes", "caused_by", "causal")
    per_day: float = 0.0019
    floor: float = 0.7
    outside_per_day: float = 0.023
    outside_floor: float = 0.3
    apart: tuple[str, ...] = ("insight",)
    name: str = "graph_assist"

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Why it is left out, if so."""
        return "" if self.enabled else "off in this profile"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        direct, others = parted(pool, self.apart)
        if not direct:
            return pool
        found = reach(direct, self._limits(), ctx)
        merged = self._merged(direct, found.ranked)
        final = merged[: max(len(direct), self.expanded)] if self.mode == "expand" else merged
        before = {cand.item.id for cand in direct}
        admitted = sum(cand.item.id not in before for cand in final)
        displaced = len(before - {cand.item.id for cand in final[: len(direct)]})
        ctx.remark(
            f"{len(direct[: self.seeds])} seeds, {found.by_links} by links, "
            f"{found.by_entities} by entities, {admitted} admitted, {displaced} displaced, "
            f"{found.overlap} found already, {len(found.hubs)} hubs skipped"
        )
        return best_first((*final, *others))

    def _limits(self) -> Limits:
        curve = Curve(self.per_day, self.floor, self.outside_per_day, self.outside_floor)
        families = Families(
            semantic=(self.semantic, self.semantic_weight, self.semantic_per_seed),
            temporal=(self.temporal, self.temporal_weight, self.temporal_per_seed),
            causal=(self.causal, self.causal_weight, self.causal_per_seed),
            sibling=((), self.sibling_weight, self.siblings_per_seed),
        )
        return Limits(
            families, self.seeds, self.min_strength, self.min_confidence, self.hub,
            self.damping, curve, self.apart,
        )  # fmt: skip

    def _merged(self, direct: Pool, ranked: tuple[Reached, ...]) -> list[Candidate]:
        if not ranked:
            return list(direct)
        kept = direct[: self.protect] if self.mode == "assist" else ()
        known = {cand.item.id: cand for cand in direct[len(kept) :]}
        safe = {cand.item.id for cand in kept}
        best = ranked[0].score
        unit = 1.0 / best if best > 0 else 1.0
        for near in [near for near in ranked if near.item.id not in safe][: self.expanded]:
            own = known.get(near.item.id)
            known[near.item.id] = (
                self._alone(near, unit) if own is None else self._both(own, near, unit)
            )
        return falling((*kept, *best_first(known.values())), self.name, "held below the first")

    def _alone(self, near: Reached, unit: float) -> Candidate:
        start = Evidence(self.name, "set", near.score, near.why, near.via)
        cand = Candidate(near.item, near.score, (start,))
        cand = cand.because(self.name, "times", unit, "the strongest is 1")
        return cand.because(self.name, "times", self.weight, "found through the graph alone")

    def _both(self, own: Candidate, near: Reached, unit: float) -> Candidate:
        bonus = max(0.0, 1.0 - own.score) * near.score * unit * self.weight
        return own.because(self.name, "add", bonus, near.why, via=near.via) if bonus else own
