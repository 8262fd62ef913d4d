"""Undoes a maintenance run: what it ended comes back, what it made goes."""

from __future__ import annotations

from typing import NamedTuple

from recollect.errors import NotFound, Refused
from recollect.maintain.job import ACTOR, Work
from recollect.maintain.journal import Trail, note_undone, trail_of
from recollect.model import Link, Node


class Undone(NamedTuple):
    """What undoing a run did or, with ``preview``, would do: ids by what becomes of them."""

    run: str
    restored: tuple[str, ...]
    ended: tuple[str, ...]
    judged: tuple[tuple[str, str], ...]
    unlinked: int
    preview: bool


def undo_run(run: str, work: Work, *, preview: bool = False) -> Undone:
    """Brings back everything a run let go of, then takes back what it made.

    What was changed by others since is left as they left it. Cut off, it can be repeated.
    """
    trail = trail_of(run, work.store)
    if trail is None:
        raise NotFound(f"there is no run {run!r}", remedy="recollect maintain --runs")
    undone = _would(run, trail, work)
    if not (undone.restored or undone.ended or undone.judged or undone.unlinked):
        told = "was undone already" if trail.undone else "changed nothing that could be undone"
        raise Refused(f"{run} {told}")
    if not preview:
        _carry_out(undone, trail, work)
    return undone._replace(preview=preview)


def _would(run: str, trail: Trail, work: Work) -> Undone:
    judged_ids = [item for item, _, _ in trail.statuses]
    items = work.store.get([*trail.made, *trail.ended, *judged_ids])
    restored = [
        item_id
        for item_id in trail.ended
        if item_id in items
        and items[item_id].live_to is not None
        and (items[item_id].ended_by or "").endswith(f":{run}")
    ]
    ended = [one for one in trail.made if one in items and items[one].live_to is None]
    judged = [
        (item_id, before)
        for item_id, before, after in trail.statuses
        if item_id in items and items[item_id].live_to is None and items[item_id].status == after
    ]
    there = {
        (link.src.id, link.type, link.dst.id)
        for link in work.store.links_of([src for src, _, _ in trail.links], incoming=False)
    }
    unlinked = len(there.intersection(trail.links))
    return Undone(run, tuple(restored), tuple(ended), tuple(judged), unlinked, preview=True)


def _carry_out(undone: Undone, trail: Trail, work: Work) -> None:
    store, now = work.store, work.now
    if undone.restored:
        store.restore(undone.restored, actor=ACTOR, now=now)
    for item_id, before in undone.judged:
        store.set_status([item_id], before, actor=ACTOR, now=now)  # type: ignore[arg-type]
    if undone.unlinked:
        store.remove_links(
            [Link(Node("item", src), Node("item", dst), kind) for src, kind, dst in trail.links],
            actor=ACTOR,
            now=now,
        )
    if undone.ended:
        store.end(undone.ended, how=f"undone:{undone.run}", actor=ACTOR, now=now)
    note_undone(undone.run, work)
