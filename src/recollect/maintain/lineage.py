"""What was made from what: everything that derives from some memories, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recollect.ingest.admit import DERIVED
from recollect.maintain.journal import RUN, places_taken
from recollect.model import Item
from recollect.ports import Store

DERIVES = ("derives_from",)


class Reach(NamedTuple):
    """What taking some memories away comes to.

    ``descendants`` are what derives from them alone or was made by maintenance; ``mixed``
    what somebody wrote from them and from others; ``orphans`` what left recall because a
    descendant stood in for it, and should come back.
    """

    ids: tuple[str, ...]
    descendants: tuple[str, ...]
    mixed: tuple[str, ...]
    orphans: tuple[str, ...]

    @property
    def going(self) -> tuple[str, ...]:
        return (*self.ids, *self.descendants)


def descendants_of(ids: Iterable[str], store: Store) -> list[str]:
    """All that derives from these memories, at whatever remove, nearest first."""
    seen = dict.fromkeys(ids)
    found: list[str] = []
    rim = list(seen)
    while rim:
        children = [child for child, _ in _children(rim, store) if child not in seen]
        rim = list(dict.fromkeys(children))
        seen.update(dict.fromkeys(rim))
        found += rim
    return found


def reach_of(ids: Iterable[str], store: Store) -> Reach:
    """What derives from these memories, told apart by whether it can stay."""
    first = tuple(dict.fromkeys(ids))
    going = dict.fromkeys(first)
    mixed: dict[str, None] = {}
    rim = list(first)
    while rim:
        children = dict.fromkeys(child for child, _ in _children(rim, store))
        items = store.get([child for child in children if child not in going])
        rim = []
        for child, item in items.items():
            parents = _parents(child, item, store)
            if item.source_class == DERIVED or parents <= going.keys():
                going[child] = None
                mixed.pop(child, None)
                rim.append(child)
            else:
                mixed[child] = None
    descendants = tuple(one for one in going if one not in first)
    orphans = orphans_of(going, going.keys() | mixed.keys(), store)
    return Reach(first, descendants, tuple(mixed), orphans)


def _children(ids: Iterable[str], store: Store) -> list[tuple[str, str]]:
    wanted = list(ids)
    there = set(wanted)
    return [
        (link.src.id, link.dst.id)
        for link in store.links_of(wanted, DERIVES)
        if link.dst.id in there and link.src.kind == link.dst.kind == "item"
    ]


def _parents(child: str, item: Item, store: Store) -> set[str]:
    links = store.links_of([child], DERIVES, incoming=False)
    named = {item.parent} if item.parent else set()
    return named | {link.dst.id for link in links if link.dst.kind == "item"}


def orphans_of(children: Iterable[str], going: set[str], store: Store) -> tuple[str, ...]:
    """Memories that were ended in favour of one of the children and are not going."""
    wanted = set(children)
    links = store.links_of(sorted(wanted), DERIVES, incoming=False)
    parents = {link.dst.id for link in links if link.src.id in wanted} - going
    places: dict[str, Mapping[str, str]] = {}
    found = []
    for item in store.get(sorted(parents)).values():
        run = (item.ended_by or "").partition(":")[2]
        if item.live_to is None or not run.startswith(RUN):
            continue
        # A later run may have used what an earlier one made: only the journal knows.
        if run not in places:
            places[run] = places_taken(run, store)
        if places[run].get(item.id) in wanted:
            found.append(item.id)
    return tuple(sorted(found))
