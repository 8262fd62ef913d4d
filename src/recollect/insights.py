"""The insight tree as it stands: each insight, what it rests on, whether that still holds."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any, NamedTuple

from recollect.model import Filters, Item
from recollect.ports import Scope, Store
from recollect.scope import rejects

_PAGE = 500
_KINDS = ("root", "branch", "leaf")


class Point(NamedTuple):
    """A statement of an insight and the memories that bear it out, as far as they are
    there."""

    text: str
    sources: tuple[Item, ...]


class Branch(NamedTuple):
    """An insight with those it was made of. ``stale`` says that something it rests on was
    changed, corrected or forgotten since."""

    insight: Item
    points: tuple[Point, ...]
    below: tuple[Branch, ...] = ()
    stale: bool = False


def tree_of(store: Store, scope: Scope) -> list[Branch]:
    """The tops of the tree, roots first; an insight below several tops shows below each."""
    insights = {item.id: item for item in _all(store, scope)}
    links = store.links_of(sorted(insights), ("derives_from",), incoming=False)
    made_of: defaultdict[str, list[str]] = defaultdict(list)
    for link in links:
        if link.src.kind == link.dst.kind == "item" and link.src.id in insights:
            made_of[link.src.id].append(link.dst.id)
    sources = _sources(store, {one for several in made_of.values() for one in several}, scope)
    covered = {one for several in made_of.values() for one in several if one in insights}

    def branch(item: Item, above: frozenset[str]) -> Branch:
        inner = [
            insights[one]
            for one in made_of[item.id]
            if one in insights and one not in above | {item.id}
        ]
        return Branch(
            item,
            _points(item, made_of[item.id], sources),
            tuple(branch(one, above | {item.id}) for one in _in_order(inner)),
            _is_stale(item, sources),
        )

    tops = _in_order([item for key, item in insights.items() if key not in covered])
    return [branch(item, frozenset()) for item in tops]


def _all(store: Store, scope: Scope) -> list[Item]:
    found: list[Item] = []
    last: str | None = None
    while page := store.browse(scope, limit=_PAGE, after=last):
        found += page
        last = page[-1].id
    return found


def _sources(store: Store, ids: set[str], scope: Scope) -> dict[str, Item]:
    """What insights rest on, as far as the asker may see it."""
    open_to = Filters(max_classification=scope.filters.max_classification, include_expired=True)
    wide = Scope(open_to, scope.moment, scope.as_of)
    items = store.get(sorted(ids), as_of=scope.as_of)
    return {key: item for key, item in items.items() if rejects(item, wide) is None}


def _points(item: Item, made_of: list[str], sources: dict[str, Item]) -> tuple[Point, ...]:
    told = item.metadata.get("points")
    if not isinstance(told, list):
        there = tuple(sources[one] for one in made_of if one in sources)
        return (Point(item.text, there),)
    return tuple(
        Point(
            str(one.get("text", "")),
            tuple(
                sources[key]
                for key in _listed(one.get("sources"))
                if isinstance(key, str) and key in sources
            ),
        )
        for one in told
        if isinstance(one, dict)
    )


def _is_stale(item: Item, sources: dict[str, Item]) -> bool:
    seen = seen_by(item)
    return any(key not in sources or imprint(sources[key]) != was for key, was in seen.items())


def seen_by(insight: Item) -> dict[str, str]:
    """What an insight was made of, each with the imprint of what was read. Anybody may have
    written the metadata: what is no such pair is passed over."""
    return {
        pair[0]: pair[1]
        for pair in _listed(insight.metadata.get("seen"))
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
    }


def _listed(told: object) -> list[Any]:
    return told if isinstance(told, list) else []


def imprint(item: Item) -> str:
    """Stands for what a memory says, and who may read and trust it: an insight over it holds
    as long as that stays, whatever else is noted of it."""
    said = f"{item.classification}|{item.trust}|{item.topic or ''}|{item.when:%Y-%m-%d}|{item.text}"
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _in_order(items: list[Item]) -> list[Item]:
    def place(item: Item) -> tuple[int, str, str]:
        level = _KINDS.index(item.kind) if item.kind in _KINDS else len(_KINDS)
        return (level, item.caption or item.text, item.id)

    return sorted(items, key=place)
