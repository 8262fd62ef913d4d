"""How warm the memories at hand are and how much goes on around them, looked up once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recollect.context import Context
from recollect.heat import Band, Uses, band_of, heat
from recollect.model import Item
from recollect.ports import Momentum, Usage

DAY_S = 86_400.0
_WARMTH = "warmth"
_MOMENTA = "momenta"


class Warmth(NamedTuple):
    """A memory's heat, 0 to 100, and what made it so; ``used`` if it ever was."""

    heat: float
    used: bool
    told: str

    @property
    def band(self) -> Band:
        return band_of(self.heat)


def warmth_of(items: Iterable[Item], ctx: Context) -> dict[str, Warmth]:
    """The warmth of each item at the query's moment, by id.

    The days count from the last use or, where there was none, from the storing.
    """
    known: dict[str, Warmth] = ctx.once(_WARMTH, dict)
    asked = list(items)
    strangers = [item for item in asked if item.id not in known]
    if strangers:
        used = ctx.usage([item.id for item in strangers])
        known.update({item.id: _warmth(item, used.get(item.id), ctx) for item in strangers})
    return {item.id: known[item.id] for item in asked}


def _warmth(item: Item, usage: Usage | None, ctx: Context) -> Warmth:
    used = usage or Usage()
    since = (ctx.query.moment - (used.last_at or item.stored_at)).total_seconds() / DAY_S
    uses = Uses(used.in_30_days, used.in_90_days, used.recalls)
    value = heat(uses, since, item.importance)
    told = f"recalled {used.recalls} times, {used.in_30_days} in 30 days" if usage else "never used"
    return Warmth(value, usage is not None, f"{band_of(value)}: {told}")


class Stir(NamedTuple):
    """The liveliest entity that a memory speaks of, and its momentum, 0 to 10."""

    momentum: float
    entity: str


def stirs_of(items: Iterable[Item], ctx: Context) -> dict[str, Stir]:
    """For each item the liveliest of its entities; items without one are left out."""
    asked = list(items)
    known: dict[str, Momentum] = ctx.once(_MOMENTA, dict)
    wanted = {entity for item in asked for entity in item.entities} - known.keys()
    if wanted:
        known.update(ctx.store.momenta(sorted(wanted), ctx.query.moment))
    stirs = {}
    for item in asked:
        lively = [(known[entity].value, entity) for entity in item.entities if entity in known]
        if lively:
            stirs[item.id] = Stir(*max(lively))
    return stirs


def worked_out(items: Iterable[Item], ctx: Context) -> dict[str, float]:
    """The momenta of these items' entities that were worked out anew in this walk."""
    known: dict[str, Momentum] = ctx.once(_MOMENTA, dict)
    entities = {entity for item in items for entity in item.entities}
    fresh = {entity: known[entity] for entity in sorted(entities & known.keys())}
    return {entity: found.value for entity, found in fresh.items() if found.worked_out}
