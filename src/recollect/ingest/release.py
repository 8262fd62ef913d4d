"""Brings back what was superseded by a memory that goes, and lets it go again if that returns."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.ingest.settle import SINCE
from recollect.ingest.writing import WriteContext
from recollect.model import Item

_TYPE = ("supersedes",)
_MOST_STEPS = 64


def releasable(ids: Sequence[str], ctx: WriteContext) -> list[str]:
    """What only these memories keep out of recall."""
    going = {item.id for item in ctx.store.get(ids).values() if _stands(item)}
    return [
        item.id
        for item in _replaced(going, ctx)
        if item.status == "superseded" and not _held_down(item.id, {*ids, *going}, ctx)
    ]


def release(ids: Sequence[str], ctx: WriteContext) -> list[str]:
    """Makes active what only these memories supersede; gives those that came back.

    To be called before they end: there is no moment at which neither of the two stands.
    """
    back = releasable(ids, ctx)
    if back:
        ctx.store.set_status(back, "active", actor=ctx.actor, now=ctx.now)
    return back


def reclaim(ids: Sequence[str], ctx: WriteContext) -> list[str]:
    """Lets what these memories supersede go again, once they are back."""
    standing = {item.id for item in ctx.store.get(ids).values() if _stands(item)}
    gone = [item.id for item in _replaced(standing, ctx) if item.status == "active"]
    if gone:
        ctx.store.set_status(gone, "superseded", actor=ctx.actor, now=ctx.now)
    return gone


def _stands(item: Item) -> bool:
    return item.live_to is None and item.status == "active"


def _replaced(ids: set[str], ctx: WriteContext) -> list[Item]:
    """What these supersede, by rules; through those that are gone by now also what they did."""
    found: dict[str, Item] = {}
    frontier = set(ids)
    for _ in range(_MOST_STEPS):
        links = ctx.store.links_of(sorted(frontier), _TYPE, incoming=False) if frontier else []
        next_ids = {
            link.dst.id
            for link in links
            # What is superseded in part, or by somebody's word alone, never left recall.
            if link.src.id in frontier and (link.context or "").startswith(SINCE)
        }
        items = ctx.store.get(sorted(next_ids - found.keys() - ids)) if next_ids else {}
        found |= items
        frontier = {item.id for item in items.values() if item.live_to is not None}
        if not frontier:
            break
    return [item for item in found.values() if item.live_to is None]


def _held_down(item_id: str, going: set[str], ctx: WriteContext) -> bool:
    """Whether another memory that stands supersedes it too."""
    links = ctx.store.links_of([item_id], _TYPE)
    others = sorted({link.src.id for link in links if link.dst.id == item_id} - going)
    return any(_stands(item) for item in ctx.store.get(others).values()) if others else False
