"""What the first candidates are linked to, how closely, and in which words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.context import Context
from recollect.model import Candidate, Item, Pool
from recollect.scope import rejects
from recollect.timely import Curve, time_factor

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
    curve: Curve
    apart: tuple[str, ...]


class Tie(NamedTuple):
    """One tie of a seed: to which item, by which family, how strong, in which words."""

    seed: str
    item: str
    family: str
    strength: float
    why: str
    entity: str = ""


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
    shared = ctx.store.siblings(
        ids, most=limits.hub, min_confidence=limits.min_confidence, as_of=ctx.query.as_of
    )
    ties = [*_by_links(ids, limits, ctx)]
    ties += [
        Tie(
            *(one.of, one.item, "sibling", one.confidence),
            *(f"also speaks of {one.entity}, as does", one.entity),
        )
        for one in shared.siblings
    ]
    items = _visible({tie.item for tie in ties}, limits, ctx)
    usable = [tie for tie in ties if tie.item in items]
    if ctx.query.as_of is not None:
        # An earlier revision may not have spoken of what the live one speaks of.
        spoken = {key: item.entities for key, item in items.items()}
        spoken |= {cand.item.id: cand.item.entities for cand in seeds}
        usable = [
            tie
            for tie in usable
            if not tie.entity or (tie.entity in spoken[tie.item] and tie.entity in spoken[tie.seed])
        ]
    known = {cand.item.id for cand in direct}
    gathered, brought = _gathered(seeds, usable, known, limits)
    by_entities = sum(used for (_, family), used in brought.items() if family == "sibling")
    return Found(
        _ranked(gathered, items, limits, ctx),
        sum(brought.values()) - by_entities,
        by_entities,
        len(gathered.keys() & known),
        shared.hubs,
    )


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
    links = ctx.links_of(ids, tuple(family_of))
    for link in sorted(links, key=lambda link: (-link.weight, link.src.id, link.dst.id, link.type)):
        if link.weight < limits.min_strength or link.src.kind != "item" or link.dst.kind != "item":
            continue
        for seed, other in ((link.src.id, link.dst.id), (link.dst.id, link.src.id)):
            if seed in wanted and seed != other:
                why = f"linked by {link.type} to"
                yield Tie(seed, other, family_of[link.type], link.weight, why)


def _visible(ids: set[str], limits: Limits, ctx: Context) -> dict[str, Item]:
    items = ctx.get(ids)
    return {
        key: item
        for key, item in items.items()
        if item.level not in limits.apart and rejects(item, ctx.scope) is None
    }


def _gathered(
    seeds: Sequence[Candidate], ties: Sequence[Tie], known: set[str], limits: Limits
) -> tuple[dict[str, _Ties], dict[tuple[str, str], int]]:
    """The ties of every neighbour, and how many of which family each seed brought in;
    what was found already does not use up a seed's share."""
    gathered: dict[str, _Ties] = {}
    brought: dict[tuple[str, str], int] = {}
    of_seed: dict[str, list[Tie]] = {}
    for tie in ties:
        of_seed.setdefault(tie.seed, []).append(tie)
    for seed in seeds:
        for tie in of_seed.get(seed.item.id, ()):
            _, weight, most = getattr(limits.families, tie.family)
            if tie.item not in known:
                used = brought.get((tie.seed, tie.family), 0)
                if used >= most:
                    continue
                brought[tie.seed, tie.family] = used + 1
            gathered.setdefault(tie.item, _Ties()).add(tie, seed.score * weight * tie.strength)
    return gathered, brought


def _ranked(
    gathered: dict[str, _Ties], items: dict[str, Item], limits: Limits, ctx: Context
) -> tuple[Reached, ...]:
    ranked = []
    for key, tied in gathered.items():
        factor, _ = time_factor(items[key], ctx, limits.curve)
        ranked.append(Reached(items[key], tied.score(limits.damping) * factor, tied.why, tied.via))
    return tuple(sorted(ranked, key=lambda near: (-near.score, near.item.id)))
