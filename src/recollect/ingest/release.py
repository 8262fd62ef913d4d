"""Brings back what was superseded by a memory that goes, and lets it go again if that returns.

Whatever is superseded has something above it: what leaves the middle of a chain first joins
its ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.ingest.settle import SINCE
from recollect.ingest.writing import WriteContext
from recollect.jsonable import iso
from recollect.model import Item, Link, Node

CALLER = "caller"  # the source of a link that somebody made by hand
_TYPE = ("supersedes",)
_MOST_STEPS = 64


def releasable(ids: Sequence[str], ctx: WriteContext) -> list[str]:
    """What only these memories keep out of recall."""
    going = {item.id for item in ctx.store.get(ids).values() if _stands(item)}
    return [
        item.id
        for item in _replaced(going, ctx)
        if item.status == "superseded" and not is_held_down(item.id, {*ids, *going}, ctx)
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


def release_from(item_id: str, ctx: WriteContext) -> bool:
    """Makes a memory active that nothing supersedes any more; whether it was brought back."""
    item = ctx.store.get([item_id])[item_id]
    if item.status != "superseded" or is_held_down(item_id, set(), ctx):
        return False
    ctx.store.set_status([item_id], "active", actor=ctx.actor, now=ctx.now)
    return True


def bridge(ids: Sequence[str], ctx: WriteContext) -> None:
    """Lets what supersedes these supersede what they did, before their links go."""
    going = set(ids)
    above = ctx.store.links_of(sorted(going), _TYPE) if going else []
    joined = []
    for upper in above:
        if upper.dst.id not in going or upper.src.id in going or not takes_out(upper):
            continue
        since = str(upper.context or "")
        context = since if since.startswith(SINCE) else f"{SINCE}{iso(ctx.now)}"
        joined += [
            Link(upper.src, Node("item", lower), "supersedes", context=context, created_at=ctx.now)
            for lower in _below(upper.dst.id, going, ctx)
            if lower != upper.src.id
        ]
    if joined:
        ctx.store.add_links(joined, now=ctx.now)


def cut_loose(item: Item, ctx: WriteContext) -> None:
    """Ends what a memory has to do with what it superseded and what superseded it: it no
    longer says what they are about."""
    bridge([item.id], ctx)
    links = ctx.store.links_of([item.id], _TYPE)
    ruled = [link for link in links if (link.context or "").startswith(SINCE)]
    if not ruled:
        return
    ctx.store.remove_links(ruled, actor=ctx.actor, now=ctx.now)
    for one in sorted({link.dst.id for link in ruled}):
        release_from(one, ctx)


def takes_out(link: Link) -> bool:
    """Whether what it leads to left recall for it: by the rules, by maintenance or by
    somebody's word, but not in part."""
    by_rule = link.context is None or link.context.startswith(SINCE)
    return by_rule or link.source == CALLER


def _below(start: str, going: set[str], ctx: WriteContext) -> list[str]:
    """What stays of all that a memory superseded, directly or through others that go."""
    seen, rim, found = {start}, {start}, []
    while rim:
        links = ctx.store.links_of(sorted(rim), _TYPE, incoming=False)
        fresh = {link.dst.id for link in links if link.src.id in rim and takes_out(link)} - seen
        seen |= fresh
        found += sorted(fresh - going)
        rim = fresh & going
    return found


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
            # What is superseded in part never left recall.
            if link.src.id in frontier and takes_out(link)
        }
        items = ctx.store.get(sorted(next_ids - found.keys() - ids)) if next_ids else {}
        found |= items
        frontier = {item.id for item in items.values() if item.live_to is not None}
        if not frontier:
            break
    return [item for item in found.values() if item.live_to is None]


def is_held_down(item_id: str, going: set[str], ctx: WriteContext) -> bool:
    """Whether another memory that stands supersedes it, directly or through others."""
    seen, rim = {item_id}, {item_id}
    while rim:
        links = ctx.store.links_of(sorted(rim), _TYPE)
        above = {link.src.id for link in links if link.dst.id in rim and takes_out(link)}
        rim = above - going - seen
        seen |= rim
        if any(_stands(item) for item in ctx.store.get(sorted(rim)).values()):
            return True
    return False
