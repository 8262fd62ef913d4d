"""`insights`: the tree of what it all comes to, or one branch of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.errors import NotFound
from recollect.insights import Branch, Point
from recollect.mcp.fencing import NOTICE, Quote, cut, quoted
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.mcp.tools.pages import fitting, weight
from recollect.wire import insight_json

_GLIMPSE = 200  # characters of a memory that bears an insight out, for a model


def insights(call: Call) -> Reply:
    """The insight tree, from its tops down as far as it fits."""
    tree = call.memory.insights()
    if "id" in call.told:
        wanted = seen(call.memory, call.told["id"]).id
        tree = [one for one in _by_level(tree) if one.insight.id == wanted][:1]
        if not tree:
            raise NotFound(f"{wanted} is no insight", remedy="insights without an id lists them")
    offset = call.told.get("offset", 0)
    tree = _after(tree, offset)
    told = tree if call.whole else [_glimpsed(one) for one in tree]
    nodes = list(_by_level(told))
    count = fitting(call, (weight(call, *_texts(one)) for one in nodes))
    kept = _upper(told, count)
    left_out = len(nodes) - count
    text = quoted(list(_drawn(kept)), "insights") or "There are no insights yet."
    if left_out:
        text += f"\n{left_out} further down left out, which offset {offset + count} gets."
    content = {
        "notice": NOTICE,
        "insights": [insight_json(one) for one in kept],
        "left_out": left_out,
    }
    return Reply(text, content)


def _by_level(tree: Sequence[Branch]) -> Iterator[Branch]:
    """Every branch, those higher up first."""
    while tree:
        yield from tree
        tree = [below for one in tree for below in one.below]


def _after(level: Sequence[Branch], count: int) -> list[Branch]:
    """The tree without its first so many branches, those higher up first."""
    below = [under for one in level[:count] for under in one.below]
    rest = max(0, count - len(level))
    return _after(below, rest) if rest and below else [*level[count:], *below]


def _upper(level: Sequence[Branch], count: int) -> list[Branch]:
    """The first so many branches, those higher up first, as a tree again."""
    here = level[:count]
    if not here:
        return []
    below = _upper([under for one in here for under in one.below], count - len(here))
    made, at = [], 0
    for one in here:
        made.append(one._replace(below=tuple(below[at : at + len(one.below)])))
        at += len(one.below)
    return made


def _texts(branch: Branch) -> Iterator[str]:
    yield branch.insight.text
    for point in branch.points:
        yield point.text
        yield from (source.text for source in point.sources)


def _glimpsed(branch: Branch) -> Branch:
    """The same, with of each memory that bears it out only the beginning."""
    points = tuple(
        Point(
            point.text,
            tuple(one._replace(text=cut(one.text, _GLIMPSE)) for one in point.sources),
        )
        for point in branch.points
    )
    return branch._replace(points=points, below=tuple(map(_glimpsed, branch.below)))


def _drawn(tree: Sequence[Branch], depth: int = 0) -> Iterator[Quote]:
    for branch in tree:
        item = branch.insight
        stale = " | stale" if branch.stale else ""
        yield Quote(f"{item.id} | {item.kind} at depth {depth}{stale}", item.text)
        yield from _drawn(branch.below, depth + 1)
