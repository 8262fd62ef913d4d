"""Assists of the memind profiles: members of threads and neighbours in the graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.model import Candidate, Evidence, Item, Member, Pool, Thread, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.scope import rejection_reason
from bethink.systems.memind.retrievers import time_factor
from bethink.systems.memind.stages import split_by_level


class _RankedThread(NamedTuple):
    """A thread of the first candidates: the seeds it holds, and its other members."""

    thread: Thread
    seeds: tuple[Candidate, ...]
    left: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ThreadAssist:
    """Add members of the threads that the first ``seeds`` belong to.

    A thread needs two members and a settled state. Preferred are threads with more seeds,
    a better seed, still active, with the latest event, with more other members. Their best
    ``members`` are placed behind the first ``protect`` and before the rest, scored evenly
    between the two, and the pool keeps its length. Off unless ``enabled``.
    """

    enabled: bool = False
    seeds: int = 3
    threads: int = 2
    members: int = 3
    protect: int = 3
    dormant_days: float = 14.0
    apart: tuple[str, ...] = ("insight",)
    name: str = "thread_assist"

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Return why the stage is skipped, or an empty string."""
        return "" if self.enabled else "disabled in this profile"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        direct, others = split_by_level(pool, self.apart)
        room = len(direct) - self.protect
        if room <= 0:
            return pool
        seeds = direct[: self.seeds]
        known = {cand.item.id for cand in direct}
        found = [
            _thread_as_of(thread, ctx.query.as_of)
            for thread in _visible_threads([cand.item.id for cand in seeds], ctx)
        ]
        members = {member.item for thread in found for member in thread.members}
        items = _visible_items(members, self.apart, ctx)
        threads = self._rank_threads(found, seeds, items, ctx)[: self.threads]
        added: dict[str, Candidate] = {}
        for ranked in threads:
            fresh = [member for member in ranked.left if member.item not in known]
            for member in _order_members(fresh, ranked, items)[: self.members]:
                why = f"{member.role} of {_thread_name(ranked.thread)}"
                reason = Evidence(self.name, "seen", member.weight, why, ranked.thread.id)
                added.setdefault(member.item, Candidate(items[member.item], 0.0, (reason,)))
        admitted = list(added.values())[:room]
        ctx.add_step_note(
            f"{len(seeds)} seeds, {len(found)} threads, {len(threads)} followed, "
            f"{len(admitted)} members added"
        )
        return (
            sort_by_score((*self._insert_members(direct, admitted), *others)) if admitted else pool
        )

    def _insert_members(self, direct: Pool, admitted: Sequence[Candidate]) -> list[Candidate]:
        kept, rest = direct[: self.protect], direct[self.protect :]
        # With nothing to protect they come first, but not above the best score.
        high, low = kept[-1].score if kept else rest[0].score, rest[0].score
        step = (high - low) / (len(admitted) + 1)
        placed = [
            cand.with_evidence(
                self.name, "set", high - step * position, "placed after the protected hits"
            )
            for position, cand in enumerate(admitted, start=1)
        ]
        ordered = enforce_order(
            (*kept, *placed, *rest), self.name, "placed after the thread's members"
        )
        return ordered[: len(direct)]

    def _rank_threads(
        self, threads: Sequence[Thread], seeds: Pool, items: dict[str, Item], ctx: Context
    ) -> list[_RankedThread]:
        ranked = []
        for thread in threads:
            held = {member.item for member in thread.members}
            covered = tuple(cand for cand in seeds if cand.item.id in held)
            ids = {cand.item.id for cand in covered}
            left = tuple(m for m in thread.members if m.item not in ids and m.item in items)
            if len(held) >= 2 and thread.state != "uncertain" and left:
                ranked.append(_RankedThread(thread, covered, left))
        return sorted(ranked, key=lambda one: self._preference(one, ctx.query.moment))

    def _preference(
        self, one: _RankedThread, now: datetime
    ) -> tuple[int, float, int, float, int, str]:
        last = one.thread.last_event_at
        return (
            -len(one.seeds),
            -max(cand.score for cand in one.seeds),
            -self._lifecycle_rank(one.thread, now),
            -last.timestamp() if last else math.inf,
            -len(one.left),
            one.thread.id,
        )

    def _lifecycle_rank(self, thread: Thread, now: datetime) -> int:
        """Rank lifecycles: active, recently resolved, dormant, the rest."""
        if thread.state == "resolved":
            last = thread.last_event_at
            recent = last is not None and last >= now - timedelta(days=self.dormant_days)
            return 2 if recent else 0
        return {"active": 3, "dormant": 1}.get(thread.lifecycle, 0)


def _visible_threads(ids: Sequence[str], ctx: Context) -> Iterator[Thread]:
    """Yield the threads of these memories as a caller sees them who may see no more.

    Of what became classified higher since, neither the member nor its events are left, nor
    the headline, which may quote it.
    """
    ceiling = ctx.query.filters.max_classification
    threads = ctx.store.below(ceiling).activity.threads_of(ids)
    members = {member.item for thread in threads for member in thread.members}
    items = ctx.store.items.get(sorted(members))
    hidden = {key for key in members if key not in items or items[key].classification > ceiling}
    for thread in threads:
        left = tuple(member for member in thread.members if member.item not in hidden)
        if len(left) == len(thread.members):
            yield thread
        else:
            events = tuple(event for event in thread.events if event.item not in hidden)
            yield thread._replace(members=left, events=events, headline="")


def _thread_name(thread: Thread) -> str:
    """Name the thread by its headline, unless that may quote what the caller may not see."""
    if not thread.headline:
        return "the same thread"
    return f"the thread “{shorten(thread.headline, 60)}”"


def _thread_as_of(thread: Thread, as_of: datetime | None) -> Thread:
    """Return the thread without members and events after the given moment."""
    if as_of is None:
        return thread
    members = tuple(m for m in thread.members if m.added_at is None or m.added_at <= as_of)
    events = tuple(event for event in thread.events if event.at <= as_of)
    return thread._replace(members=members, events=events)


def _visible_items(ids: set[str], apart: Sequence[str], ctx: Context) -> dict[str, Item]:
    """Return those of the memories that the caller sees, without levels that are left alone."""
    return {
        key: item
        for key, item in ctx.get(ids).items()
        if item.level not in apart and rejection_reason(item, ctx.scope) is None
    }


def _order_members(
    members: Sequence[Member], ranked: _RankedThread, items: dict[str, Item]
) -> list[Member]:
    """Sort by weight, distance to a seed in events and in time, then newest."""
    positions: dict[str, list[int]] = {}
    times: dict[str, list[float]] = {}
    for event in ranked.thread.events:
        if event.item is not None:
            positions.setdefault(event.item, []).append(event.seq)
            times.setdefault(event.item, []).append(event.at.timestamp())
    seeds = [cand.item for cand in ranked.seeds]

    def moments(item: Item) -> list[float]:
        return times.get(item.id) or [item.when.timestamp()]

    def order(member: Member) -> tuple[float, float, float, float, str]:
        own = items[member.item]
        seed_positions = [position for one in seeds for position in positions.get(one.id, ())]
        steps = _min_distance(positions.get(own.id, ()), seed_positions)
        seconds = _min_distance(moments(own), [at for one in seeds for at in moments(one)])
        return (-member.weight, steps, seconds, -max(moments(own)), member.item)

    return sorted(members, key=order)


def _min_distance(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return min((abs(one - other) for one in ours for other in theirs), default=math.inf)


def enforce_order(candidates: Iterable[Candidate], by: str, why: str) -> list[Candidate]:
    """Keep the given order by lowering scores.

    A candidate that scores more than the one before is set just below it, with evidence.
    """
    ordered: list[Candidate] = []
    for cand in candidates:
        last = ordered[-1] if ordered else None
        if last is None or (-last.score, last.item.id) < (-cand.score, cand.item.id):
            ordered.append(cand)
        else:
            below = math.nextafter(last.score, -math.inf)
            ordered.append(cand.with_evidence(by, "set", below, why))
    return ordered


class SeedLink(NamedTuple):
    """A link of a seed: the item, its family, strength and reason."""

    seed: str
    item: str
    family: str
    strength: float
    why: str
    entity: str = ""


class Neighbour(NamedTuple):
    """A neighbour with its score, and the reason and seed of its strongest link."""

    item: Item
    score: float
    why: str
    via: str


class NeighbourSearch(NamedTuple):
    """Neighbours, best first, and counts of the search."""

    ranked: tuple[Neighbour, ...] = ()
    by_links: int = 0
    by_entities: int = 0
    overlap: int = 0
    hubs: tuple[str, ...] = ()


@dataclass(slots=True)
class _NeighbourLinks:
    """The links between one memory and the seeds, accumulated."""

    semantic: dict[str, float] = field(default_factory=dict)
    other: float = 0.0
    best: float = 0.0
    why: str = ""
    via: str = ""

    def add(self, link: SeedLink, strength: float) -> None:
        if link.family == "semantic":
            self.semantic[link.seed] = max(strength, self.semantic.get(link.seed, 0.0))
        else:
            self.other = max(self.other, strength)
        if strength > self.best:
            self.best, self.why, self.via = strength, link.why, link.seed

    def score(self, damping: float) -> float:
        summed = sum(
            strength / (1.0 + damping * at)
            for at, strength in enumerate(sorted(self.semantic.values(), reverse=True))
        )
        return max(math.tanh(summed), self.other)


def find_neighbours(direct: Pool, rules: GraphAssist, ctx: Context) -> NeighbourSearch:
    """Find the visible neighbours of the first candidates."""
    seeds = direct[: rules.seeds]
    ids = [cand.item.id for cand in seeds]
    shared = ctx.store.graph.siblings(
        ids, most=rules.hub, min_confidence=rules.min_confidence, as_of=ctx.query.as_of
    )
    links = [*_seed_links(ids, rules, ctx)]
    links += [
        SeedLink(
            *(sibling.of, sibling.item, "sibling", sibling.confidence),
            *(f"also mentions {sibling.entity}, like", sibling.entity),
        )
        for sibling in shared.siblings
    ]
    items = _visible_items({link.item for link in links}, rules.apart, ctx)
    usable = [link for link in links if link.item in items]
    if ctx.query.as_of is not None:
        # An earlier revision may not have mentioned the entities of the live one.
        mentioned = {key: item.entities for key, item in items.items()}
        mentioned |= {cand.item.id: cand.item.entities for cand in seeds}
        usable = [
            link
            for link in usable
            if not link.entity
            or (link.entity in mentioned[link.item] and link.entity in mentioned[link.seed])
        ]
    known = {cand.item.id for cand in direct}
    gathered, added = _collect_links(seeds, usable, known, rules)
    by_entities = sum(used for (_, family), used in added.items() if family == "sibling")
    return NeighbourSearch(
        _rank_neighbours(gathered, items, rules, ctx),
        sum(added.values()) - by_entities,
        by_entities,
        len(gathered.keys() & known),
        shared.hubs,
    )


def _seed_links(ids: Sequence[str], rules: GraphAssist, ctx: Context) -> Iterator[SeedLink]:
    """Yield both directions of every strong enough link, strongest first."""
    families = {"semantic": rules.semantic, "temporal": rules.temporal, "causal": rules.causal}
    family_of = {kind: name for name, kinds in families.items() for kind in kinds}
    if not family_of:
        return
    seeds = set(ids)
    links = ctx.links_of(ids, tuple(family_of))
    for link in sorted(links, key=lambda link: (-link.weight, link.src.id, link.dst.id, link.type)):
        if link.weight < rules.min_strength or link.src.kind != "item" or link.dst.kind != "item":
            continue
        for seed, other in ((link.src.id, link.dst.id), (link.dst.id, link.src.id)):
            if seed in seeds and seed != other:
                why = f"linked by {link.type} to"
                yield SeedLink(seed, other, family_of[link.type], link.weight, why)


def _collect_links(
    seeds: Sequence[Candidate], links: Sequence[SeedLink], known: set[str], rules: GraphAssist
) -> tuple[dict[str, _NeighbourLinks], dict[tuple[str, str], int]]:
    """Collect the links of every neighbour, and how many each seed added that were not known."""
    gathered: dict[str, _NeighbourLinks] = {}
    added: dict[tuple[str, str], int] = {}
    of_seed: dict[str, list[SeedLink]] = {}
    for link in links:
        of_seed.setdefault(link.seed, []).append(link)
    for seed in seeds:
        for link in of_seed.get(seed.item.id, ()):
            weight, most = rules.share_of(link.family)
            if link.item not in known:
                used = added.get((link.seed, link.family), 0)
                if used >= most:
                    continue
                added[link.seed, link.family] = used + 1
            gathered.setdefault(link.item, _NeighbourLinks()).add(
                link, seed.score * weight * link.strength
            )
    return gathered, added


def _rank_neighbours(
    gathered: dict[str, _NeighbourLinks], items: dict[str, Item], rules: GraphAssist, ctx: Context
) -> tuple[Neighbour, ...]:
    ranked = []
    for key, links in gathered.items():
        factor, _ = time_factor(items[key], ctx, rules)
        score = links.score(rules.damping) * factor
        ranked.append(Neighbour(items[key], score, links.why, links.via))
    return tuple(sorted(ranked, key=lambda near: (-near.score, near.item.id)))


@dataclass(frozen=True, slots=True)
class GraphAssist:
    """Neighbours of the first ``seeds`` by links and shared entities.

    A neighbour scores the seed's score × its family's weight × the link's strength.
    Semantic evidence of several seeds adds up with diminishing weight and is bounded by
    tanh; of the other families the strongest counts. Scores are scaled so that the best is
    1. A new candidate enters with ``weight`` of that; a known one gains ``weight`` of it,
    of what it lacks to 1. In mode "assist" the first ``protect`` stay first: anything that
    would pass them is held just below.
    """

    enabled: bool = True
    mode: Literal["assist", "expand"] = "assist"
    seeds: int = 6
    expanded: int = 12
    weight: float = 0.35
    protect: int = 3
    min_strength: float = 0.55
    min_confidence: float = 0.7
    hub: int = 8
    damping: float = 0.5
    semantic_per_seed: int = 2
    temporal_per_seed: int = 2
    causal_per_seed: int = 2
    siblings_per_seed: int = 3
    semantic_weight: float = 1.0
    causal_weight: float = 0.95
    temporal_weight: float = 0.9
    sibling_weight: float = 0.85
    semantic: tuple[str, ...] = ("similar_to", "semantic")
    temporal: tuple[str, ...] = ("follows", "temporal")
    causal: tuple[str, ...] = ("causes", "caused_by", "causal")
    per_day: float = 0.0019
    floor: float = 0.7
    outside_per_day: float = 0.023
    outside_floor: float = 0.3
    apart: tuple[str, ...] = ("insight",)
    name: str = "graph_assist"

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Return why the stage is skipped, or an empty string."""
        return "" if self.enabled else "disabled in this profile"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        direct, others = split_by_level(pool, self.apart)
        if not direct:
            return pool
        found = find_neighbours(direct, self, ctx)
        merged = self._merge_neighbours(direct, found.ranked)
        final = merged[: max(len(direct), self.expanded)] if self.mode == "expand" else merged
        before = {cand.item.id for cand in direct}
        admitted = sum(cand.item.id not in before for cand in final)
        displaced = len(before - {cand.item.id for cand in final[: len(direct)]})
        ctx.add_step_note(
            f"{len(direct[: self.seeds])} seeds, {found.by_links} by links, "
            f"{found.by_entities} by entities, {admitted} admitted, {displaced} displaced, "
            f"{found.overlap} found already, {len(found.hubs)} hubs skipped"
        )
        return sort_by_score((*final, *others))

    def share_of(self, family: str) -> tuple[float, int]:
        """Return the weight of a family of links, and how many a seed may bring in."""
        return {
            "semantic": (self.semantic_weight, self.semantic_per_seed),
            "temporal": (self.temporal_weight, self.temporal_per_seed),
            "causal": (self.causal_weight, self.causal_per_seed),
            "sibling": (self.sibling_weight, self.siblings_per_seed),
        }[family]

    def _merge_neighbours(self, direct: Pool, ranked: tuple[Neighbour, ...]) -> list[Candidate]:
        if not ranked:
            return list(direct)
        kept = direct[: self.protect] if self.mode == "assist" else ()
        known = {cand.item.id: cand for cand in direct[len(kept) :]}
        safe = {cand.item.id for cand in kept}
        best = ranked[0].score
        unit = 1.0 / best if best > 0 else 1.0
        for near in [near for near in ranked if near.item.id not in safe][: self.expanded]:
            own = known.get(near.item.id)
            known[near.item.id] = (
                self._new_candidate(near, unit) if own is None else self._add_bonus(own, near, unit)
            )
        return enforce_order(
            (*kept, *sort_by_score(known.values())), self.name, "kept below the protected hits"
        )

    def _new_candidate(self, near: Neighbour, unit: float) -> Candidate:
        start = Evidence(self.name, "set", near.score, near.why, near.via)
        cand = Candidate(near.item, near.score, (start,))
        cand = cand.with_evidence(self.name, "times", unit, "scaled: the strongest is 1")
        return cand.with_evidence(self.name, "times", self.weight, "found only through the graph")

    def _add_bonus(self, own: Candidate, near: Neighbour, unit: float) -> Candidate:
        bonus = max(0.0, 1.0 - own.score) * near.score * unit * self.weight
        return own.with_evidence(self.name, "add", bonus, near.why, via=near.via) if bonus else own
