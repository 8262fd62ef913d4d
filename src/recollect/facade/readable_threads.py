"""A thread as far as somebody may see it: what is above the ceiling leaves no trace."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.model import Item, Thread
from recollect.text import caption, visible


def readable(thread: Thread, items: Mapping[str, Item], ceiling: int) -> Thread | None:
    """The thread without members and events above the ceiling; None where nobody is left.

    ``items`` are its members. Its words stay where a member that is left bears them out.
    """
    seen = {
        one.item: items[one.item]
        for one in thread.members
        if one.item in items and items[one.item].classification <= ceiling
    }
    if len(seen) == len(thread.members):
        return thread
    if not seen:
        return None
    rest = thread._replace(
        members=tuple(one for one in thread.members if one.item in seen),
        events=tuple(one for one in thread.events if one.item is None or one.item in seen),
    )
    is_borne = any(_bears(item, thread.anchor) for item in seen.values())
    anchored = rest if is_borne else rest._replace(anchor=None)
    said = [caption(visible(item.text), limit=80) for item in seen.values()]
    if is_borne:
        said += [f"{_name(thread)}: {one}" for one in said]
    if thread.headline in said:
        return anchored
    if is_borne and _is_made(thread):
        return anchored._replace(headline=_name(thread))
    since = min(item.when for item in seen.values())
    return anchored._replace(headline=f"memories since {since:%Y-%m-%d}")


def _name(thread: Thread) -> str:
    """What its anchor is called, as its headline spells it."""
    key = (thread.anchor or "").partition(":")[2]
    spelt = thread.headline[: len(key)]
    return spelt if spelt.casefold() == key.casefold() else key


def _bears(item: Item, anchor: str | None) -> bool:
    if anchor is None:
        return False
    return anchor in item.entities or anchor == f"topic:{item.topic}"


def _is_made(thread: Thread) -> bool:
    """Whether maintenance gave it its headline, which then begins with its anchor's name."""
    from recollect.maintain.threads import MADE  # start-up time: few threads are mixed

    return thread.id.startswith(MADE)
