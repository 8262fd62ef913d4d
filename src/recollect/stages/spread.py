"""Lets strong candidates wake the memories they are linked to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from recollect.context import Context
from recollect.model import Candidate, Evidence, Item, Link, Pool, best_first
from recollect.ports import Scope
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
    weight × relation weight × decay^hop × its own confidence and what forgetting has
    left of it. Several paths to one memory do not add up: the strongest counts. Sources
    and neighbours below ``threshold`` do not take part, nor do levels that are not
    named (all do where none are), nor ``not_along`` links of rules, which say nothing of
    the content. Where the question names a topic, a memory of another one is only woken
    if ``other_topics`` is above 0, and by that factor weaker.
    """

    hops: int = 2
    decay: float = 0.5
    threshold: float = 0.1
    relations: tuple[tuple[str, float], ...] = RELATION_WEIGHTS
    other_relations: float = 0.5
    other_topics: float = 0.0
    levels: tuple[str, ...] = ()
    not_along: tuple[str, ...] = ("follows", "derives_from", "similar_to")
    name: str = "spread"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        active = {cand.item.id: cand for cand in pool}
        woken = 0
        for hop in range(1, self.hops + 1):
            sources = [cand for cand in active.values() if self._takes_part(cand)]
            # What is woken in this hop only goes on in the next one.
            for cand in self._wake(sources, self.decay**hop, ctx):
                known = active.get(cand.item.id)
                woken += known is None
                active[cand.item.id] = stronger(known, cand)
        if woken:
            ctx.remark(f"{woken} woken")
        return best_first(active.values())

    def _takes_part(self, cand: Candidate) -> bool:
        return cand.score >= self.threshold and self._has_level(cand.item)

    def _has_level(self, item: Item) -> bool:
        return not self.levels or item.level in self.levels

    def _wake(self, sources: list[Candidate], factor: float, ctx: Context) -> list[Candidate]:
        if not sources:
            return []
        scores = {cand.item.id: cand.score for cand in sources}
        links = [
            link
            for link in ctx.links_of(list(scores), incoming=False)
            if link.src.kind == link.dst.kind == "item"
            and link.src.id != link.dst.id
            and link.type not in self.not_along
        ]
        items = ctx.get(link.dst.id for link in links)
        scope = self._scope(ctx)
        reached = {
            key: item
            for key, item in items.items()
            if self._has_level(item) and rejects(item, scope) is None
        }
        woken = [
            self._woken(link, scores[link.src.id], factor, reached[link.dst.id], ctx)
            for link in links
            if link.dst.id in reached
        ]
        return [cand for cand in woken if cand.score >= self.threshold]

    def _scope(self, ctx: Context) -> Scope:
        """The question's; its topic is left to the penalty where that may be crossed."""
        scope = ctx.scope
        if self.other_topics <= 0:
            return scope
        return scope._replace(filters=replace(scope.filters, topics=()))

    def _woken(
        self, link: Link, score: float, factor: float, item: Item, ctx: Context
    ) -> Candidate:
        factors = [score, link.weight, self._relation(link), factor, item.confidence, item.decay]
        topics = ctx.query.filters.topics
        if topics and item.topic is not None and item.topic not in topics:
            factors.append(self.other_topics)
        energy = 1.0
        for one in factors:
            energy *= one
        shown = " × ".join(f"{one:.4g}" for one in factors)
        reason = Evidence(self.name, "set", energy, f"{link.type}, {shown}, from", link.src.id)
        return Candidate(item, energy, (reason,))

    def _relation(self, link: Link) -> float:
        return dict(self.relations).get(link.type, self.other_relations)


def stronger(known: Candidate | None, woken: Candidate) -> Candidate:
    """Of two ways to the same memory the stronger; it keeps the reasons of the weaker."""
    if known is None:
        return woken
    if woken.score <= known.score:
        return known
    return Candidate(known.item, woken.score, (*known.evidence, *woken.evidence))
