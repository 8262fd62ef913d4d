"""Undoes the last change of a memory; the undoing is a change of its own."""

from __future__ import annotations

from typing import NamedTuple

from recollect.errors import Refused
from recollect.ingest.release import reclaim, release
from recollect.ingest.revise import changeable, revise
from recollect.ingest.writing import WriteContext
from recollect.model import Item
from recollect.ports import Event

LOOK_BACK = 50


class Undo(NamedTuple):
    """What would be, or was, undone: the memory, the change, and what that comes to."""

    item: str
    change: Event
    doing: str


def last_change(item: str | None, actor: str, ctx: WriteContext) -> Undo:
    """The last change of a memory or, without one, the last by this actor."""
    who = None if item is not None else actor
    for change in ctx.store.changes(item=item, actor=who, limit=LOOK_BACK):
        if change.kind == "erased":
            raise Refused(f"{change.item} was erased; that cannot be undone")
        doing = _DOING.get(change.kind)
        if doing is not None and change.item is not None:
            return Undo(change.item, change, doing)
    whose = f"to {item}" if item is not None else f"by {actor}"
    raise Refused(f"there is no change {whose} that could be undone")


_DOING = {
    "stored": "forget it",
    "imported": "forget it",
    "restored": "forget it again",
    "ended": "bring it back",
    "revised": "give it back its text and facts of the revision before",
    "status": "let it stand as it stood before",
}


def carry_out(undo: Undo, ctx: WriteContext) -> Item:
    """Undoes it; the memory as it stands then."""
    item, kind = undo.item, undo.change.kind
    if kind in ("stored", "imported", "restored"):
        release([item], ctx)
        ctx.store.end([item], how="undone", actor=ctx.actor, now=ctx.now)
    elif kind == "ended":
        ctx.store.restore([item], actor=ctx.actor, now=ctx.now)
        reclaim([item], ctx)
    elif kind == "status":
        _restand(undo, ctx)
    else:
        _reverse(item, ctx)
    return ctx.store.get([item])[item]


def _restand(undo: Undo, ctx: WriteContext) -> None:
    """The standing before the last one; without any, a memory was active."""
    changes = ctx.store.changes(item=undo.item, actor=None, limit=LOOK_BACK)
    earlier = [change for change in changes if change.kind == "status"][1:]
    before = earlier[0].detail if earlier else "active"
    ctx.store.set_status([undo.item], before, actor=ctx.actor, now=ctx.now)  # type: ignore[arg-type]


def _reverse(item: str, ctx: WriteContext) -> None:
    revisions = ctx.store.history(item)
    if len(revisions) < 2:
        raise Refused(f"{item} has no earlier revision")
    now, before = revisions[-1], revisions[-2]
    changes = {
        name: getattr(before, name)
        for name in changeable()
        if getattr(before, name) != getattr(now, name)
    }
    revise(now, changes, ctx)
