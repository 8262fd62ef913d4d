"""What the first candidates are linked to, how closely, and in which words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.context import Context
from recollect.model import Candidate, Item, Pool
from recollect.scope import rejects
from recollect.timely import Fading, time_factor

# Which link types belong to a family, its weight, and how many a seed may bring in.
Family = tuple[tuple[str, ...], float, int]


class Families(NamedTuple):
    """The ways in which two memories can be close."""

    semantic: Family
    temporal: Family
    causal: Family
    sibling: Family


class Limits(NamedTuple):
    """How far to look from the first candidates, and what counts."""

    families: Families
    seeds: int
    min_strength: float
    min_confidence: float
    hub: int
    damping: float
    fading: Fading
    apart: tuple[str, ...]


class Tie(NamedTuple):
    """One tie of a seed: to which item, by which family, how strong, in which words."""

    seed: str
    item: str
    family: str
    strength: float
    why: str


class Reached(NamedTuple):
    """A neighbour with the score its ties give it, and the strongest of them."""

    item: Item
    score: float
    why: str
    via: str


class Found(NamedTuple):
    """Neighbours, best first, and what the search came across."""

    ranked: tuple[Reached, ...] = ()
    by_links: int = 0
    by_entities: int = 0
    overlap: int = 0
    hubs: tuple[str, ...] = ()


@dataclass(slots=True)
class _Ties:
    """What ties one memory to the seeds, gathered one by one."""

    semantic: dict[str, float] = field(default_factory=dict)
    other: float = 0.0
    best: float = 0.0
    why: str = ""
    via: str = ""

    def add(self, tie: Tie, worth: float) -> None:
        if tie.family == "semantic":
            self.semantic[tie.seed] = max(worth, self.semantic.get(tie.seed, 0.0))
        else:
            self.other = max(self.other, worth)
        if worth > self.best:
            self.best, self.why, self.via = worth, tie.why, tie.seed

    def score(self, damping: float) -> float:
        summed = sum(
            worth / (1.0 + damping * at)
            for at, worth in enumerate(sorted(self.semantic.values(), reverse=True))
        )
        return max(math.tanh(summed), self.other)


def reach(direct: Pool, limits: Limits, ctx: Context) -> Found:
    """What the first of the pool are tied to, among what the question may see."""
    seeds = direct[: limits.seeds]
    ids = [cand.item.id for cand in seeds]
    shared = ctx.store.siblings(ids, most=limits.hub, min_confidence=limits.min_confidence)
    ties = [*_by_links(ids, limits, ctx)]
    ties += [
        Tie(one.of, one.item, "sibling", one.confidence, f"also speaks of {one.entity}, as does")
        for one in shared.siblings
    ]
    items = _visible({tie.item for tie in ties}, limits, ctx)
    # An earlier revision may not have spoken of what the live one speaks of.
    mentioned = {(one.item, one.of): one.entity for one in shared.siblings}
    usable = [
        tie
        for tie in ties
        if tie.item in items
        and (
            tie.family != "sibling"
            or mentioned[tie.item, tie.seed] in items[tie.item].entities
            or ctx.query.as_of is None
        )
    ]
    return _judged(seeds, usable, items, direct, limits, ctx)._replace(hubs=shared.hubs)


def _by_links(ids: Sequence[str], limits: Limits, ctx: Context) -> Iterator[Tie]:
    """Both directions of every link strong enough, the strongest of a seed first."""
    family_of = {
        kind: name
        for name, (kinds, _, _) in zip(Families._fields, limits.families, strict=True)
        for kind in kinds
    }
    if not family_of:
        return
    wanted = set(ids)
    links = ctx.store.links_of(ids, tuple(family_of))
    for link in sorted(links, key=lambda link: (-link.weight, link.src.id, link.dst.id, link.type)):
        if link.weight < limits.min_strength or link.src.kind != "item" or link.dst.kind != "item":
            continue
        for seed, other in ((link.src.id, link.dst.id), (link.dst.id, link.src.id)):
            if seed in wanted and seed != other:
                why = f"linked by {link.type} to"
                yield Tie(seed, other, family_of[link.type], link.weight, why)


def _visible(ids: set[str], limits: Limits, ctx: Context) -> dict[str, Item]:
    items = ctx.store.get(sorted(ids), as_of=ctx.query.as_of)
    return {
        key: item
        for key, item in items.items()
        if item.level not in limits.apart and rejects(item, ctx.scope) is None
    }


def _judged(
    seeds: Sequence[Candidate],
    ties: Sequence[Tie],
    items: dict[str, Item],
    direct: Pool,
    limits: Limits,
    ctx: Context,
) -> Found:
    """A score for every neighbour; what was found already does not use up a seed's share."""
    known = {cand.item.id for cand in direct}
    gathered: dict[str, _Ties] = {}
    brought: dict[tuple[str, str], int] = {}
    for seed in seeds:
        for tie in ties:
            if tie.seed != seed.item.id:
                continue
            _, weight, most = getattr(limits.families, tie.family)
            if tie.item not in known:
                used = brought.get((tie.seed, tie.family), 0)
                if used >= most:
                    continue
                brought[tie.seed, tie.family] = used + 1
            gathered.setdefault(tie.item, _Ties()).add(tie, seed.score * weight * tie.strength)
    ranked = []
    for key, tied in gathered.items():
        factor, _ = time_factor(items[key], ctx, limits.fading)
        ranked.append(Reached(items[key], tied.score(limits.damping) * factor, tied.why, tied.via))
    ranked.sort(key=lambda near: (-near.score, near.item.id))
    by_entities = sum(used for (_, family), used in brought.items() if family == "sibling")
    return Found(
        tuple(ranked),
        sum(brought.values()) - by_entities,
        by_entities,
        len(gathered.keys() & known),
    )
