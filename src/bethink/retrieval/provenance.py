"""Provenance of a memory: its links followed breadth first, and the insight tree."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import pydantic_schema
from bethink.model import Draft, Filters, Item, Link, Node
from bethink.ports import Scope, Store
from bethink.retrieval.scope import rejection_reason
from bethink.retrieval.stages.diversify import still_holds

# Links to sources, causes, code, replaced memories and similar memories.
PROVENANCE_LINK_TYPES = (
    "derives_from", "caused_by", "causes", "references", "edits", "calls", "imports", "extends",
    "implements", "instantiates", "supersedes", "contradicts", "part_of", "context_of", "implies",
    "generalizes", "specializes", "correlates", "related_to", "similar_to",
)  # fmt: skip
MAX_EDGES = 200
_CONSOLIDATED_BY_PREFIX = "consolidate:run-"  # `ended_by` of a memory that a learning replaced
MAX_DEPTH = 16


class ProvenanceEdge(NamedTuple):
    """One link on the path, its depth, and the memory it leads to, if it may be seen.

    ``again`` says that the node was visited before.
    """

    depth: int
    link: Link
    item: Item | None
    again: bool = False


@pydantic_schema("bethink.render.wire:provenance_json")
class Provenance(NamedTuple):
    """All links found, nearest first; ``cut`` says that there were more."""

    item: Item
    edges: tuple[ProvenanceEdge, ...]
    cut: bool = False


def provenance(
    item: Item,
    store: Store,
    scope: Scope,
    *,
    depth: int = 4,
    types: Sequence[str] = PROVENANCE_LINK_TYPES,
    max_edges: int = MAX_EDGES,
) -> Provenance:
    """Follow a memory's links breadth first, visiting each memory once, so that cycles end."""
    edges: list[ProvenanceEdge] = []
    seen = {Node("item", item.id)}
    frontier = [Node("item", item.id)]
    for level in range(1, depth + 1):
        links = _outgoing_links(frontier, store, types)
        items = _visible_items(
            [link.dst.id for link in links if link.dst.kind == "item"], store, scope
        )
        frontier = []
        for link in links:
            if link.dst.kind == "item" and link.dst.id not in items:
                continue  # not visible to this caller
            if len(edges) == max_edges:
                return Provenance(item, tuple(edges), cut=True)
            edges.append(ProvenanceEdge(level, link, items.get(link.dst.id), link.dst in seen))
            if link.dst not in seen:
                seen.add(link.dst)
                frontier.append(link.dst)
    return Provenance(item, tuple(edges))


def _outgoing_links(nodes: Sequence[Node], store: Store, types: Sequence[str]) -> list[Link]:
    """The outgoing links of these nodes, ordered by node, then by type."""
    if not nodes:
        return []
    order = {node: number for number, node in enumerate(nodes)}
    rank = {name: number for number, name in enumerate(types)}
    links = store.graph.links_of([node.id for node in nodes], types, incoming=False)
    own = [link for link in links if link.src in order]
    return sorted(
        own, key=lambda link: (order[link.src], rank.get(link.type, 0), link.dst.kind, link.dst.id)
    )


def _visible_items(ids: Sequence[str], store: Store, scope: Scope) -> dict[str, Item]:
    """The items the caller may see; corrected, expired and consolidated ones are included."""
    ceiling = scope.filters.max_classification
    filters = Filters(max_classification=ceiling, include_superseded=True, include_expired=True)
    wide = Scope(filters, scope.moment, scope.as_of)
    items = store.items.get(sorted(set(ids)), as_of=scope.as_of)
    return {
        key: item
        for key, item in items.items()
        if rejection_reason(_as_live_if_consolidated(item), wide) is None
    }


def _as_live_if_consolidated(item: Item) -> Item:
    """A consolidated memory as if it were still live."""
    consolidated = (item.ended_by or "").startswith(_CONSOLIDATED_BY_PREFIX)
    return item._replace(live_to=None) if consolidated else item


_PAGE = 500
_KINDS = ("root", "branch", "leaf")


class InsightPoint(NamedTuple):
    """A statement of an insight and those of its source memories that still exist."""

    text: str
    sources: tuple[Item, ...]


class InsightNode(NamedTuple):
    """An insight with the insights it was derived from.

    ``stale`` says that one of its sources was changed, corrected or forgotten since.
    """

    insight: Item
    points: tuple[InsightPoint, ...]
    below: tuple[InsightNode, ...] = ()
    stale: bool = False


def insight_tree(store: Store, scope: Scope) -> list[InsightNode]:
    """The insight forest, roots first; an insight under several parents appears under each."""
    insights = {item.id: item for item in _browse_all(store, scope)}
    links = store.graph.links_of(sorted(insights), ("derives_from",), incoming=False)
    sources_of: defaultdict[str, list[str]] = defaultdict(list)
    for link in links:
        if link.src.kind == link.dst.kind == "item" and link.src.id in insights:
            sources_of[link.src.id].append(link.dst.id)
    sources = _visible_sources(
        store, {source_id for source_ids in sources_of.values() for source_id in source_ids}, scope
    )
    covered = {
        source_id
        for source_ids in sources_of.values()
        for source_id in source_ids
        if source_id in insights
    }

    def branch(item: Item, ancestors: frozenset[str]) -> InsightNode:
        children = [
            insights[source_id]
            for source_id in sources_of[item.id]
            if source_id in insights and source_id not in ancestors | {item.id}
        ]
        return InsightNode(
            item,
            _points(item, sources_of[item.id], sources),
            tuple(
                branch(source_id, ancestors | {item.id}) for source_id in _sorted_by_kind(children)
            ),
            _is_stale(item, sources),
        )

    roots = _sorted_by_kind([item for key, item in insights.items() if key not in covered])
    return [branch(item, frozenset()) for item in roots]


def _browse_all(store: Store, scope: Scope) -> list[Item]:
    found: list[Item] = []
    last: str | None = None
    while page := store.items.browse(scope, limit=_PAGE, after=last):
        found += page
        last = page[-1].id
    return found


def _visible_sources(store: Store, ids: set[str], scope: Scope) -> dict[str, Item]:
    """The sources of insights that the caller is allowed to see."""
    filters = Filters(max_classification=scope.filters.max_classification, include_expired=True)
    wide = Scope(filters, scope.moment, scope.as_of)
    found = store.items.get(sorted(ids), as_of=scope.as_of)
    items = mark_outdated(list(found.values()), store)
    return {item.id: item for item in items if rejection_reason(item, wide) is None}


def mark_outdated(items: Sequence[Item], store: Store, *, for_all: bool = False) -> list[Item]:
    """Return memories, as superseded where a newer one outdates them: only a link may say so."""
    by_id = {item.id: item for item in items}
    links = store.graph.links_of(list(by_id), ("supersedes",))
    found = store.items.get([link.src.id for link in links if link.dst.id in by_id])
    for link in links:
        newer, older = found.get(link.src.id), by_id.get(link.dst.id)
        if newer is None or older is None or newer.live_to or newer.status == "quarantined":
            continue
        is_seen = not for_all or newer.classification <= older.classification
        if is_seen and still_holds(newer, older):
            by_id[older.id] = older._replace(status="superseded")
    return list(by_id.values())


def _points(
    item: Item, source_ids: list[str], sources: dict[str, Item]
) -> tuple[InsightPoint, ...]:
    points = item.metadata.get("points")
    if not isinstance(points, list):
        visible = tuple(sources[point] for point in source_ids if point in sources)
        return (InsightPoint(item.text, visible),)
    return tuple(
        InsightPoint(
            str(point.get("text", "")),
            tuple(
                sources[key]
                for key in _as_list(point.get("sources"))
                if isinstance(key, str) and key in sources
            ),
        )
        for point in points
        if isinstance(point, dict)
    )


def _is_stale(item: Item, sources: dict[str, Item]) -> bool:
    recorded = recorded_sources(item)
    return any(
        key not in sources or content_digest(sources[key]) != recorded_digest
        for key, recorded_digest in recorded.items()
    )


_TO_LETTERS = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")
_FROM_LETTERS = str.maketrans("ghijklmnopqrstuv", "0123456789abcdef")


def source_record(item_id: str, digest: str) -> list[str]:
    """Return how an insight records a source: its id, and the digest in letters.

    Sixteen digits would be taken for the number of a card, and redacted.
    """
    return [item_id, digest.translate(_TO_LETTERS)]


def recorded_sources(insight: Item | Draft) -> dict[str, str]:
    """The recorded sources of an insight by id, each with the digest of the text read.

    The metadata may come from anyone: malformed entries are ignored.
    """
    return {
        pair[0]: pair[1].translate(_FROM_LETTERS)
        for pair in _as_list(insight.metadata.get("seen"))
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
    }


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def content_digest(item: Item) -> str:
    """A digest of a memory's content, classification and trust.

    An insight over it stays valid while the digest stays equal, whatever else changes.
    """
    day = item.when.date().isoformat()
    content = f"{item.classification}|{item.trust}|{item.topic or ''}|{day}|{item.text}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _sorted_by_kind(items: list[Item]) -> list[Item]:
    def sort_key(item: Item) -> tuple[int, str, str]:
        level = _KINDS.index(item.kind) if item.kind in _KINDS else len(_KINDS)
        return (level, item.caption or item.text, item.id)

    return sorted(items, key=sort_key)
