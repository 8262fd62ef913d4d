"""Finds by rules what a text says of two entities: who works with whom, what depends on what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from recollect.model import Item, Link, Node
from recollect.ports import Mention

MOST_EDGES = 4
_SURE = 0.8
_LONGEST = 40  # characters between two names
# What stands between two names, and what that makes of them.
_BETWEEN = {
    "works_with": "works with / work with / collaborates with / pairs with / works together with",
    "reports_to": "reports to / answers to / works under",
    "works_on": "works on / is working on / contributes to",
    "works_at": "works at / works for / is employed by",
    "depends_on": "depends on / relies on / requires / needs",
    "part_of": "is part of / is a part of / belongs to / is a module of / is a member of / is in",
    "owns": "owns / is the owner of",
    "leads": "leads / heads / is the lead of / runs the",
    "manages": "manages / is the manager of",
    "maintains": "maintains / looks after / is responsible for / takes care of",
    "uses": "uses / is built on / is written in / is based on",
    "runs_on": "runs on / is hosted on / is deployed on / is deployed to",
    "calls": "calls / talks to / sends requests to",
    "imports": "imports",
    "extends": "extends / inherits from",
    "implements": "implements",
    "knows": "knows / is a friend of / is friends with",
    "married_to": "is married to",
    "replaces": "replaces / is the successor of",
}
_WORDS = {
    phrase.strip(): kind for kind, phrases in _BETWEEN.items() for phrase in phrases.split("/")
}
_FILLING = frozenset(
    {"the", "a", "an", "our", "now", "also", "currently", "still", "service"}
) | frozenset({"project", "module", "team", "class", "function", "tool", "library", "company"})


def edges_of(item: Item, mentions: Sequence[Mention], now: datetime) -> list[Link]:
    """What a memory says of entities that it names one after the other; it is the context."""
    if len(mentions) < 2:
        return []
    text = item.text
    lower = text.lower()
    if len(lower) != len(text):
        return []  # a letter that changes its length: places would not fit
    found = sorted(_places(lower, mentions))
    edges: dict[tuple[str, str, str], Link] = {}
    for (_, end, one), (start, _, other) in pairwise(found):
        kind = _kind(lower[end:start]) if 0 < start - end <= _LONGEST else None
        if kind is not None and one != other:
            ends = Node("entity", one), Node("entity", other)
            link = Link(*ends, kind, confidence=_SURE, context=item.id, created_at=now)
            edges.setdefault((one, kind, other), link)
    if text.rstrip().endswith("?"):
        return []
    return list(edges.values())[:MOST_EDGES]


def _places(lower: str, mentions: Sequence[Mention]) -> list[tuple[int, int, str]]:
    """Where each entity is first named: from, to, which."""
    places = []
    for mention in mentions:
        name = mention.entity.name.lower()
        at = lower.find(name)
        if at >= 0:
            places.append((at, at + len(name), mention.entity.id))
    return places


def _kind(between: str) -> str | None:
    if any(mark in between for mark in ".,;:!?()"):
        return None
    words = [word for word in between.split() if word not in _FILLING]
    return _WORDS.get(" ".join(words))
