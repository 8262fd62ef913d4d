"""Finds what is known to connect the entities that a question names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.model import Entity, Item, Link, Node, Pool
from recollect.ports import Found, Match
from recollect.scope import rejects

PREFIX = "edge:"
MOST_LOOKED_AT = 200  # edges of an entity on the way to another
TOGETHER = "mentioned with"

Path = tuple[Link, ...]


class _Way(NamedTuple):
    """How entities are connected: the edges in order, and what that is worth."""

    path: Path
    score: float


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges between entities and, where the question names two or more, the ways of one or
    two edges between them: ``one_hop`` and ``two_hops``, ``depth`` at most. Where it names
    one, or none of them are connected, the ``each`` newest edges of up to ``limit``
    entities.

    A hit is the memory that an edge came from. An edge whose memory may not be seen is
    not told; one that came from none is told in its own words, ``alice —[knows]→ bob``.
    Two entities without an edge that a memory mentions together are connected by it.
    """

    depth: int = 20
    weight: float = 1.0
    limit: int = 3
    each: int = 10
    one_hop: float = 0.6
    two_hops: float = 0.5
    name: str = "edges"

    def __call__(self, ctx: Context) -> Pool:
        known = ctx.find_entities()
        if not known:
            ctx.remark("the question names no entity")
            return ()
        ctx.remark(f"named: {', '.join(entity.name for entity in known)}")
        if ctx.query.filters.bands:
            ctx.remark("an edge has no band: nobody counts its use")
            return ()
        names = {entity.id: entity.name for entity in known}
        ways = self._between(known, ctx) if len(known) > 1 else []
        ways = ways or self._around(known[: self.limit], ctx)
        best: dict[str, Match] = {}
        for match in _matches(ways, names, ctx):
            held = best.get(match.item.id)
            if held is None or match.score > held.score:
                best[match.item.id] = match
        matches = sorted(best.values(), key=lambda match: (-match.score, match.item.id))
        return ranked(self.name, Found(tuple(matches[: self.depth])), ctx)

    def _between(self, known: Sequence[Entity], ctx: Context) -> list[_Way]:
        """Ways of one or two edges between every two of the entities."""
        ids = [entity.id for entity in known]
        edges = ctx.store.edges(ids, MOST_LOOKED_AT, ctx.query.moment)
        ways: list[_Way] = []
        for one, other in combinations(ids, 2):
            direct = [link for link in edges[one] if other in _ends(link)]
            found = [_Way((link,), self.one_hop) for link in direct]
            found = found or self._together((one, other), ctx)
            beyond = {_other(link, other): link for link in reversed(edges[other])}
            found += [
                _Way((link, beyond[middle]), self.two_hops)
                for link in edges[one]
                if (middle := _other(link, one)) in beyond and middle not in (one, other)
            ]
            ways += found
        return ways

    def _together(self, ids: Sequence[str], ctx: Context) -> list[_Way]:
        """Memories that mention all of these, as edges between the first two."""
        found = ctx.store.search_entities(ids, self.depth, ctx.scope)
        one, other = (Node("entity", entity) for entity in ids[:2])
        return [
            _Way((Link(one, other, TOGETHER, context=match.item.id),), self.one_hop)
            for match in found.matches
            if match.score == 1.0
        ]

    def _around(self, known: Sequence[Entity], ctx: Context) -> list[_Way]:
        """The newest edges of each entity; of one that has none, those memories make."""
        ids = [entity.id for entity in known]
        edges = ctx.store.edges(ids, self.each, ctx.query.moment)
        ways = [_Way((link,), self.one_hop) for entity in ids for link in edges[entity]]
        for entity, items in ctx.store.mentioning(ids, self.each, ctx.scope).items():
            for item in items if not edges[entity] else ():
                others = [other for other in item.entities if other != entity]
                if others:
                    ends = (Node("entity", entity), Node("entity", others[0]))
                    link = Link(*ends, TOGETHER, context=item.id)
                    ways.append(_Way((link,), self.one_hop))
        return ways


def _matches(ways: Sequence[_Way], names: Mapping[str, str], ctx: Context) -> Iterable[Match]:
    """The hits of the ways: the memories behind them, or the ways in words."""
    links = [link for way in ways for link in way.path]
    memories = ctx.get(_told_by(links))
    later = set() if ctx.query.as_of is None else _later(_told_by(links) - memories.keys(), ctx)
    for path, score in ways:
        if any(later & {link.context, link.source} for link in path):
            continue
        origins = [_origin(link, memories) for link in path]
        if any(item is not None and rejects(item, ctx.scope) for item in origins):
            continue
        told = in_words(path, names)
        behind = [item for item in origins if item is not None]
        if not behind:
            made = way_item(path, names)
            behind = [made] if rejects(made, ctx.scope) is None else []
        for item in behind:
            yield Match(item, score, told)


def _told_by(links: Iterable[Link]) -> set[str]:
    """What may be the ids of the memories that told of the links."""
    return {name for link in links for name in (link.context, link.source) if name}


def _later(ids: set[str], ctx: Context) -> set[str]:
    """Memories of today that were not there at the moment asked for: an edge that was told
    again knows only of who told it last."""
    return set(ctx.store.get(sorted(ids)))


def _origin(link: Link, memories: Mapping[str, Item]) -> Item | None:
    """The memory an edge came from, where its context or its source names one."""
    return memories.get(link.context or "") or memories.get(link.source)


def _ends(link: Link) -> tuple[str, str]:
    return link.src.id, link.dst.id


def _other(link: Link, end: str) -> str:
    return link.dst.id if link.src.id == end else link.src.id


def in_words(path: Path, names: Mapping[str, str]) -> str:
    """``alice —[works_with]→ bob``; a second edge goes on where the first one ended."""

    def name(entity: str) -> str:
        return names.get(entity) or entity.partition(":")[2] or entity

    first = path[0]
    if len(path) == 1:
        return f"{name(first.src.id)} —[{first.type}]→ {name(first.dst.id)}"
    second = path[1]
    middle = next(iter(set(_ends(first)) & set(_ends(second))))
    start, target = _other(first, middle), _other(second, middle)
    steps = (_step(first, start, name(middle)), _step(second, middle, name(target)))
    return " ".join((name(start), *steps))


def _step(link: Link, start: str, target: str) -> str:
    """One edge from where one stands, whichever way it points."""
    if link.src.id == start:
        return f"—[{link.type}]→ {target}"
    return f"←[{link.type}]— {target}"


def way_item(path: Path, names: Mapping[str, str]) -> Item:
    """A way in words as an item of its own: no memory, but something to be shown."""
    newest = max(link.created_at for link in path if link.created_at is not None)
    ends = dict.fromkeys(end for link in path for end in _ends(link))
    text = in_words(path, names)
    return Item(
        id=way_id(path),
        text=text,
        stored_at=newest,
        source=path[0].source,
        source_class="tool",
        writer="links",
        kind="relation",
        entities=tuple(ends),
        trust=1,
        confidence=min(link.confidence for link in path),
        tokens=-(-len(text.encode()) // 4),
    )


def way_id(path: Path) -> str:
    """An id that a way can be looked up by again."""
    return PREFIX + ";".join(f"{link.src.id}|{link.type}|{link.dst.id}" for link in path)
