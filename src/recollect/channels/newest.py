"""Finds the newest memories that the filters leave, whatever the question says."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.model import Item, Pool
from recollect.ports import Found, Match


@dataclass(frozen=True, slots=True)
class Newest:
    """By when they were stored; the first scores 1, the second 1/2, the third 1/3.

    A question without words is asked by this channel alone. ``levels`` are looked
    through; all of them where none are named.
    """

    depth: int = 50
    weight: float = 1.0
    levels: tuple[str, ...] = ()
    name: str = "newest"

    def __call__(self, ctx: Context) -> Pool:
        scope = ctx.scope_of(self.levels)
        items = ctx.store.browse(scope, limit=ctx.reach(self.depth))
        matches = tuple(_ranked(item, rank) for rank, item in enumerate(items, 1))
        return ranked(self.name, Found(matches), ctx)


def _ranked(item: Item, rank: int) -> Match:
    return Match(item, 1.0 / rank, f"stored {item.stored_at:%Y-%m-%d}")
