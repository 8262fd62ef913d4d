"""Lets strong candidates wake the memories they are linked to."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Evidence, Link, Pool, best_first
from recollect.scope import rejects

RELATION_WEIGHTS = (
    ("implies", 0.9),
    ("generalizes", 0.85),
    ("specializes", 0.85),
    ("part_of", 0.8),
    ("context_of", 0.7),
    ("causes", 0.7),
    ("correlates", 0.6),
    ("contradicts", 0.3),
    ("supersedes", 0.1),
)


@dataclass(frozen=True, slots=True)
class Spread:
    """Spreading activation (Collins & Loftus, Psychological Review 1975).

    Along each outgoing link a neighbour is woken with the source's score × link
    weight × relation weight × decay^hop × its own confidence and decay. Several
    paths to one memory do not add up: the strongest counts.
    """

    hops: int = 2
    decay: float = 0.5
    threshold: float = 0.1
    seeds: int = 20
    relations: tuple[tuple[str, float], ...] = RELATION_WEIGHTS
    other_relations: float = 0.5
    name: str = "spread"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        active = {cand.item.id: cand for cand in pool}
        for hop in range(1, self.hops + 1):
            strong = [cand for cand in best_first(active.values()) if cand.score >= self.threshold]
            woken = self._wake(strong[: self.seeds], self.decay**hop, ctx)
            for cand in woken:
                known = active.get(cand.item.id)
                if known is None:
                    active[cand.item.id] = cand
                elif cand.score > known.score:
                    active[cand.item.id] = Candidate(
                        known.item, cand.score, (*known.evidence, *cand.evidence)
                    )
        return best_first(active.values())

    def _wake(self, seeds: list[Candidate], factor: float, ctx: Context) -> list[Candidate]:
        if not seeds:
            return []
        scores = {cand.item.id: cand.score for cand in seeds}
        links = [
            link
            for link in ctx.store.links_of(list(scores), incoming=False)
            if link.dst.kind == "item" and link.src.id != link.dst.id
        ]
        items = ctx.store.get([link.dst.id for link in links], as_of=ctx.query.as_of)
        woken = []
        for link in links:
            item = items.get(link.dst.id)
            if item is None or rejects(item, ctx.scope):
                continue
            energy = scores[link.src.id] * link.weight * self._relation(link) * factor
            energy *= item.confidence * item.decay
            if energy >= self.threshold:
                reason = Evidence(self.name, "set", energy, f"{link.type} of", link.src.id)
                woken.append(Candidate(item, energy, (reason,)))
        return woken

    def _relation(self, link: Link) -> float:
        return dict(self.relations).get(link.type, self.other_relations)
