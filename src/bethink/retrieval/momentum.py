"""Heat and entity momentum of the candidates, looked up once per recall."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import DAY_S
from bethink.model import Item
from bethink.ports import Usage
from bethink.retrieval.context import Context, PerEach
from bethink.retrieval.heat import Band, UseCounts, band_of, heat


class ItemHeat(NamedTuple):
    """A memory's heat, 0 to 100, and its explanation; ``used`` if it was ever recalled."""

    heat: float
    used: bool
    description: str

    @property
    def band(self) -> Band:
        return band_of(self.heat)


def _compute_heat(items: list[Item], ctx: Context) -> dict[str, ItemHeat]:
    used = ctx.usage([item.id for item in items])
    return {item.id: _compute_item_heat(item, used.get(item.id), ctx) for item in items}


_heat = PerEach[Item, str, ItemHeat](_compute_heat, attrgetter("id"))


def heat_of_items(items: Iterable[Item], ctx: Context) -> dict[str, ItemHeat]:
    """The heat of each item, by id, at the query's moment.

    Days count from the last use or, without one, from the time of storing.
    """
    return _heat(items, ctx)


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


_momenta = PerEach[str, str, float](
    lambda entities, ctx: ctx.store.activity.momenta(sorted(entities), ctx.query.moment), str
)


def top_momentum(items: Iterable[Item], ctx: Context) -> dict[str, EntityMomentum]:
    """For each item its entity with the highest momentum; items without one are left out."""
    requested = list(items)
    known = _momenta({entity for item in requested for entity in item.entities}, ctx)
    top = {}
    for item in requested:
        momenta = [(known[entity], entity) for entity in item.entities if entity in known]
        if momenta:
            top[item.id] = EntityMomentum(*max(momenta))
    return top
