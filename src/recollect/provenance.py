"""Where a memory comes from: its links followed outwards, breadth first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recollect.model import Filters, Item, Link, Node
from recollect.ports import Scope, Store
from recollect.scope import rejects

# What a memory was made of, caused by, speaks about in code, replaces or resembles.
ORIGINS = (
    "derives_from", "caused_by", "causes", "references", "edits", "calls", "imports", "extends",
    "implements", "instantiates", "supersedes", "contradicts", "part_of", "context_of", "implies",
    "generalizes", "specializes", "correlates", "related_to", "similar_to",
)  # fmt: skip
MOST_EDGES = 200
_TAKEN_UP = "consolidate:run-"  # how a memory ends that a learning tells of from then on
MOST_DEPTH = 16


class Origin(NamedTuple):
    """One link on the way, how far out it lies, and the memory it leads to, if it may
    be seen. ``again`` says that the way has been there before."""

    depth: int
    link: Link
    item: Item | None
    again: bool = False


class Provenance(NamedTuple):
    """All that was found, nearest first; ``cut`` says that there was more."""

    item: Item
    edges: tuple[Origin, ...]
    cut: bool = False


def provenance(
    item: Item,
    store: Store,
    scope: Scope,
    *,
    depth: int = 4,
    types: Sequence[str] = ORIGINS,
    most: int = MOST_EDGES,
) -> Provenance:
    """Follows a memory's links, each memory once, so that circles end."""
    edges: list[Origin] = []
    seen = {Node("item", item.id)}
    frontier = [Node("item", item.id)]
    for level in range(1, depth + 1):
        links = _leaving(frontier, store, types)
        items = _visible([link.dst.id for link in links if link.dst.kind == "item"], store, scope)
        frontier = []
        for link in links:
            if link.dst.kind == "item" and link.dst.id not in items:
                continue  # the asker may not know of it
            if len(edges) == most:
                return Provenance(item, tuple(edges), cut=True)
            edges.append(Origin(level, link, items.get(link.dst.id), link.dst in seen))
            if link.dst not in seen:
                seen.add(link.dst)
                frontier.append(link.dst)
    return Provenance(item, tuple(edges))


def _leaving(nodes: Sequence[Node], store: Store, types: Sequence[str]) -> list[Link]:
    """The links that leave these nodes, in the order of the nodes, then of the types."""
    if not nodes:
        return []
    place = {node: number for number, node in enumerate(nodes)}
    rank = {name: number for number, name in enumerate(types)}
    links = store.links_of([node.id for node in nodes], types, incoming=False)
    own = [link for link in links if link.src in place]
    return sorted(
        own, key=lambda link: (place[link.src], rank.get(link.type, 0), link.dst.kind, link.dst.id)
    )


def _visible(ids: Sequence[str], store: Store, scope: Scope) -> dict[str, Item]:
    """Those the asker may know of; what was corrected, has run out or was taken up in a
    learning is part of the story."""
    ceiling = scope.filters.max_classification
    open_to = Filters(max_classification=ceiling, include_superseded=True, include_expired=True)
    wide = Scope(open_to, scope.moment, scope.as_of)
    items = store.get(sorted(set(ids)), as_of=scope.as_of)
    return {key: one for key, one in items.items() if rejects(_as_told(one), wide) is None}


def _as_told(item: Item) -> Item:
    """A memory that a learning took up as if it were there still."""
    taken_up = (item.ended_by or "").startswith(_TAKEN_UP)
    return item._replace(live_to=None) if taken_up else item
