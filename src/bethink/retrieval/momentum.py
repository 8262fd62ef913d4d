"""Heat and entity momentum of the candidates, looked up once per recall."""

from __future__ import annotations

from collections.abc import Iterable

from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import DAY_S
from bethink.model import Item
from bethink.ports import Momentum, Usage
from bethink.retrieval.context import Context, PerRecall
from bethink.retrieval.heat import Band, UseCounts, band_of, heat


class ItemHeat(NamedTuple):
    """A memory's heat, 0 to 100, and its explanation; ``used`` if it was ever recalled."""

    heat: float
    used: bool
    description: str

    @property
    def band(self) -> Band:
        return band_of(self.heat)


_known_heat: PerRecall[dict[str, ItemHeat]] = PerRecall(lambda _: {})


def heat_of_items(items: Iterable[Item], ctx: Context) -> dict[str, ItemHeat]:
    """The heat of each item at the query's moment, by id.

    Days count from the last use or, without one, from the time of storing.
    """
    known = _known_heat(ctx)
    requested = list(items)
    missing = [item for item in requested if item.id not in known]
    if missing:
        used = ctx.usage([item.id for item in missing])
        known.update(
            {item.id: _compute_item_heat(item, used.get(item.id), ctx) for item in missing}
        )
    return {item.id: known[item.id] for item in requested}


def _compute_item_heat(item: Item, usage: Usage | None, ctx: Context) -> ItemHeat:
    used = usage or Usage()
    since = (ctx.query.moment - (used.last_at or item.stored_at)).total_seconds() / DAY_S
    uses = UseCounts(used.in_30_days, used.in_90_days, used.recalls)
    value = heat(uses, since, item.importance)
    usage_text = (
        f"recalled {used.recalls} times, {used.in_30_days} in 30 days" if usage else "never used"
    )
    return ItemHeat(value, usage is not None, f"{band_of(value)}: {usage_text}")


class EntityMomentum(NamedTuple):
    """The entity of a memory with the highest momentum, 0 to 10."""

    momentum: float
    entity: str


_known_momenta: PerRecall[dict[str, Momentum]] = PerRecall(lambda _: {})


def top_momentum(items: Iterable[Item], ctx: Context) -> dict[str, EntityMomentum]:
    """For each item its entity with the highest momentum; items without one are left out."""
    requested = list(items)
    known = _known_momenta(ctx)
    missing = {entity for item in requested for entity in item.entities} - known.keys()
    if missing:
        known.update(ctx.store.activity.momenta(sorted(missing), ctx.query.moment))
    top = {}
    for item in requested:
        momenta = [(known[entity].value, entity) for entity in item.entities if entity in known]
        if momenta:
            top[item.id] = EntityMomentum(*max(momenta))
    return top


def recomputed_momenta(items: Iterable[Item], ctx: Context) -> dict[str, float]:
    """The momenta of these items' entities that were recomputed during this recall."""
    known = _known_momenta(ctx)
    entities = {entity for item in items for entity in item.entities}
    fresh = {entity: known[entity] for entity in sorted(entities & known.keys())}
    return {entity: found.value for entity, found in fresh.items() if found.recomputed}
