"""Finds memories that mention whom or what the question names."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.model import Pool


@dataclass(frozen=True, slots=True)
class Entities:
    """Memories about the entities named in the question.

    Entities that more than ``hub_share`` of all memories mention say nothing and
    are left out.
    """

    depth: int = 50
    weight: float = 1.0
    limit: int = 5
    hub_share: float = 0.2
    name: str = "entity"

    def __call__(self, ctx: Context) -> Pool:
        known = ctx.find_entities(self.limit)
        ceiling = max(8.0, self.hub_share * ctx.statistics().documents)
        telling = [entity for entity in known if entity.mentions <= ceiling]
        hubs = [entity.name for entity in known if entity.mentions > ceiling]
        if hubs:
            ctx.remark(f"too common to tell memories apart: {', '.join(hubs)}")
        if not telling:
            return ()
        ctx.remark(f"named: {', '.join(entity.name for entity in telling)}")
        ids = [entity.id for entity in telling]
        return ranked(self.name, ctx.store.search_entities(ids, self.depth, ctx.scope), ctx)
