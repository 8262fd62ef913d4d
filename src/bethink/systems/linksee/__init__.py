"""Parts of the linksee profile: the entity retriever and the heat and momentum stages."""

from __future__ import annotations

from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.model import Candidate, Evidence, Pool, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.heat import pace_of
from bethink.retrieval.momentum import EntityMomentum, ItemHeat, heat_of_items, top_momentum
from bethink.retrieval.retrievers.ranking import ranked_pool


@dataclass(frozen=True, slots=True)
class Entities:
    """Memories about the entities named in the question.

    Entities that more than ``hub_share`` of all memories mention do not discriminate and
    are left out.
    """

    depth: int = 50
    weight: float = 1.0
    limit: int = 5
    hub_share: float = 0.2
    name: str = "entity"
    matches = "names"

    def __call__(self, ctx: Context) -> Pool:
        known = ctx.find_entities(self.limit)
        ceiling = max(8.0, self.hub_share * ctx.statistics().documents)
        specific = [entity for entity in known if entity.mentions <= ceiling]
        hubs = [entity.name for entity in known if entity.mentions > ceiling]
        if hubs:
            ctx.add_step_note(f"too common to select memories: {', '.join(hubs)}")
        if not specific:
            return ()
        ctx.add_step_note(f"entities named: {', '.join(entity.name for entity in specific)}")
        ids = [entity.id for entity in specific]
        return ranked_pool(self.name, ctx.store.search.entities(ids, self.depth, ctx.scope), ctx)


PINNED_IMPORTANCE = 0.9


class CompositeWeights(NamedTuple):
    """The weight of each component of a composite score."""

    relevance: float
    heat: float
    momentum: float
    importance: float


# Relevance weighs more in longer, more specific questions.
_SHORT_QUERY_WEIGHTS, _LONG_QUERY_WEIGHTS = (
    CompositeWeights(0.60, 0.18, 0.12, 0.10),
    CompositeWeights(0.72, 0.12, 0.08, 0.08),
)
_LONG_QUERY_WORDS = 3


@dataclass(frozen=True, slots=True)
class Composite:
    """Weighted sum of relevance, heat, momentum and importance, each 0 to 1.

    Relevance is the score so far as a share of the best. A memory without an entity has no
    momentum; a pinned one has an importance of at least 0.9. ``by_words`` uses other
    weights: 0.60, 0.18, 0.12, 0.10 for a question of one or two content terms, 0.72, 0.12,
    0.08, 0.08 for a longer one.
    """

    relevance: float = 0.45
    heat: float = 0.25
    momentum: float = 0.15
    importance: float = 0.15
    by_words: bool = False
    name: str = "composite"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not pool:
            return pool
        heats = heat_of_items((cand.item for cand in pool), ctx)
        momenta = top_momentum((cand.item for cand in pool), ctx)
        shares, best = self._choose_weights(ctx), pool[0].score
        return sort_by_score(
            self._compose(cand, heats[cand.item.id], momenta.get(cand.item.id), shares, best)
            for cand in pool
        )

    def _choose_weights(self, ctx: Context) -> CompositeWeights:
        if not self.by_words:
            return CompositeWeights(self.relevance, self.heat, self.momentum, self.importance)
        word_count = sum(not word.common for word in ctx.words()) or len(ctx.words())
        shares = _LONG_QUERY_WEIGHTS if word_count >= _LONG_QUERY_WORDS else _SHORT_QUERY_WEIGHTS
        ctx.add_step_note(
            f"weights for {word_count} words: {', '.join(f'{share:g}' for share in shares)}"
        )
        return shares

    def _compose(
        self,
        cand: Candidate,
        item_heat: ItemHeat,
        entity_momentum: EntityMomentum | None,
        shares: CompositeWeights,
        best: float,
    ) -> Candidate:
        relevance = cand.score / best if best > 0 else 0.0
        least = PINNED_IMPORTANCE if cand.item.pinned else 0.0
        momentum = entity_momentum.momentum if entity_momentum else 0.0
        factor = shares.relevance / best if best > 0 else 0.0
        seen = [Evidence("heat", "seen", item_heat.heat, item_heat.description)]
        if entity_momentum is not None:
            about = pace_of(momentum), entity_momentum.entity
            seen.append(Evidence("momentum", "seen", momentum, *about))
        known = {reason.by for reason in cand.evidence if reason.op == "seen"}
        told = (fact for fact in seen if fact.by not in known)
        noted = Candidate(cand.item, cand.score, (*cand.evidence, *told))
        composed = noted.with_evidence(
            f"{self.name}.relevance", "times", factor, f"{relevance:.2f}"
        )
        for part, share, value in (
            ("heat", shares.heat, item_heat.heat / 100),
            ("momentum", shares.momentum, momentum / 10),
            ("importance", shares.importance, max(cand.item.importance, least)),
        ):
            why = f"{value:.2f} × {share:g}"
            composed = composed.with_evidence(f"{self.name}.{part}", "add", share * value, why)
        return composed
