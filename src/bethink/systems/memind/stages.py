"""Stages of the memind profile: rank fusion with bonus, time, insights, graph and threads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal, NamedTuple

from bethink.core.text import caption, shorten
from bethink.model import (
    Candidate,
    Caption,
    Evidence,
    Filters,
    Item,
    Member,
    Pool,
    Thread,
    sort_by_score,
)
from bethink.ports import Scope
from bethink.retrieval.context import AnswerExtras, Context, Retriever
from bethink.retrieval.scope import rejection_reason
from bethink.retrieval.stages.conversation import (
    LinkFamilies,
    Neighbour,
    NeighbourLimits,
    find_neighbours,
)
from bethink.retrieval.stages.fusion import enforce_order, split_by_level
from bethink.retrieval.time_decay import TimeDecay, time_factor


@dataclass(frozen=True, slots=True)
class RrfBonus:
    """Σ weight / (k + rank), divided by the best sum, with a bonus for the top three.

    ``first`` for the first and ``second`` for the two behind it. When a single retriever
    found anything, its own scores stay. Retrievers named in ``apart`` are never fused:
    their candidates join with their own scores. ``pool`` limits the result; 0 returns
    everything.
    """

    k: float = 60.0
    first: float = 0.05
    second: float = 0.02
    apart: tuple[str, ...] = ()
    pool: int = 0
    name: str = "rrf_bonus"

    def __call__(self, found: Mapping[Retriever, Pool], ctx: Context) -> Pool:
        fused = {ch: pool for ch, pool in found.items() if pool and ch.name not in self.apart}
        beside = [pool for ch, pool in found.items() if ch.name in self.apart]
        merged = self._fuse(fused) if len(fused) > 1 else next(iter(fused.values()), ())
        if len(fused) == 1:
            ctx.remark(f"only {next(iter(fused)).name} found anything: its scores stay")
        if self.pool:
            merged = merged[: ctx.candidate_limit(self.pool)]
        known = {cand.item.id for cand in merged}
        others: dict[str, Candidate] = {}
        for cand in sort_by_score(cand for pool in beside for cand in pool):
            if cand.item.id not in known:
                others.setdefault(cand.item.id, cand)
        return sort_by_score((*merged, *others.values()))

    def _fuse(self, found: Mapping[Retriever, Pool]) -> Pool:
        items: dict[str, Item] = {}
        seen: dict[str, list[Evidence]] = {}
        shares: dict[str, list[Evidence]] = {}
        for channel, pool in found.items():
            for cand in pool:
                own, key = cand.evidence[-1], cand.item.id
                rank = own.rank or 1
                part = channel.weight / (self.k + rank)
                items.setdefault(key, cand.item)
                seen.setdefault(key, []).append(own.as_report())
                shares.setdefault(key, []).append(
                    Evidence(f"fuse.{channel.name}", "add", part, f"rank {rank}")
                )
        summed = sort_by_score(
            Candidate(item, sum(part.value for part in shares[key]), (*seen[key], *shares[key]))
            for key, item in items.items()
        )
        best = summed[0].score
        unit = 1.0 / best if best > 0 else 1.0
        return sort_by_score(
            self._with_bonus(cand.with_evidence("fuse.scale", "times", unit, "the best is 1"), rank)
            for rank, cand in enumerate(summed, start=1)
        )

    def _with_bonus(self, cand: Candidate, rank: int) -> Candidate:
        bonus = self.first if rank == 1 else self.second if rank <= 3 else 0.0
        return cand.with_evidence("fuse.bonus", "add", bonus, f"place {rank}") if bonus else cand


@dataclass(frozen=True, slots=True)
class TimeFactor:
    """× a time factor: by age, or by distance from a time the question names.

    Candidates of the retrievers in ``already`` had it applied there and are skipped.
    """

    per_day: float = 0.0019
    floor: float = 0.7
    outside_per_day: float = 0.023
    outside_floor: float = 0.3
    already: tuple[str, ...] = ()
    apart: tuple[str, ...] = ("insight",)
    name: str = "time_factor"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        curve = TimeDecay(self.per_day, self.floor, self.outside_per_day, self.outside_floor)
        judged = {f"channel.{name}" for name in self.already}

        def weigh(cand: Candidate) -> Candidate:
            if cand.item.level in self.apart or any(r.by in judged for r in cand.evidence):
                return cand
            factor, why = time_factor(cand.item, ctx, curve)
            return cand if factor == 1.0 else cand.with_evidence(self.name, "times", factor, why)

        return sort_by_score(weigh(cand) for cand in pool)


DERIVES = ("derives_from",)
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Ancestors:
    """Add the ancestors of every insight found, each with ``share`` of the score below.

    An insight that was found itself keeps its own score.
    """

    share: float = 0.9
    name: str = "ancestors"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        known = {cand.item.id for cand in pool}
        below = [cand for cand in pool if cand.item.level == "insight"]
        brought: dict[str, Candidate] = {}
        for _ in range(_MAX_DEPTH):
            above = list(self._parents_above(below, known | brought.keys(), ctx)) if below else []
            if not above:
                break
            brought.update((cand.item.id, cand) for cand in above)
            below = above
        if brought:
            ctx.remark(f"{len(brought)} insights above those found")
        return sort_by_score((*pool, *brought.values()))

    def _parents_above(
        self, below: Sequence[Candidate], known: set[str], ctx: Context
    ) -> Iterator[Candidate]:
        """Yield new insights one level up, each from the best child."""
        parents = parents_of([cand.item for cand in below], ctx)
        wanted = {one for several in parents.values() for one in several} - known
        items = ctx.get(sorted(wanted))
        for cand in sort_by_score(below):
            for key in parents[cand.item.id]:
                item = items.pop(key, None)
                if item is None or item.level != "insight" or rejection_reason(item, ctx.scope):
                    continue
                energy = self.share * cand.score
                why = f"{item.kind} above the {cand.item.kind}"
                reason = Evidence(self.name, "set", energy, why, cand.item.id)
                yield Candidate(item, energy, (reason,))


def parents_of(items: Sequence[Item], ctx: Context) -> dict[str, list[str]]:
    """Map each insight to its possible parents: its own, and what derives from it."""
    ids = {item.id for item in items}
    parents = {item.id: [item.parent] if item.parent else [] for item in items}
    for link in ctx.links_of(sorted(ids), DERIVES):
        if link.dst.id in ids and link.src.kind == "item" and link.src.id not in ids:
            parents[link.dst.id].append(link.src.id)
    return {key: sorted(set(several)) for key, several in parents.items()}


@dataclass(frozen=True, slots=True)
class Elbow:
    """Cut the pool at its widest score gap or below ``ratio`` of the best, if earlier.

    The gap must be at least ``gap``. One candidate is always kept, and nothing is cut from
    fewer than ``least``. Levels in ``apart`` are neither counted nor cut.
    """

    gap: float = 0.35
    ratio: float = 0.65
    least: int = 3
    apart: tuple[str, ...] = ("insight",)
    name: str = "elbow"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        mine, others = split_by_level(pool, self.apart)
        if len(mine) < max(self.least, 1):
            return pool
        scores = [cand.score for cand in mine]
        by_gap, by_ratio = self._gap_index(scores), self._ratio_index(scores)
        kept = max(1, min(by_gap, by_ratio))
        if kept < len(mine):
            how = "the widest gap" if by_gap <= by_ratio else f"below {self.ratio:g} of the best"
            ctx.remark(f"kept {kept} of {len(mine)}: {how}")
        return sort_by_score((*mine[:kept], *others))

    def _gap_index(self, scores: list[float]) -> int:
        gaps = [high - low for high, low in pairwise(scores)]
        widest = max(gaps, default=0.0)
        if widest <= 0 or widest < self.gap:
            return len(scores)
        return gaps.index(widest) + 1

    def _ratio_index(self, scores: list[float]) -> int:
        floor = self.ratio * scores[0]
        return next((at for at, score in enumerate(scores) if score < floor), len(scores))


@dataclass(frozen=True, slots=True)
class Captions:
    """One caption per source, scored by the best memory from it; at most ``most``.

    A memory's source is the episode it was made from, else its conversation, else, for an
    episode, itself. Counts everything considered before the gate, so that the sources of
    candidates that were cut off are named too.
    """

    most: int = 5
    name: str = "captions"

    def __call__(self, hits: Pool, ctx: Context) -> AnswerExtras:
        told = [cand for cand in ctx.offered or hits if cand.item.level != "insight"]
        if not hits:
            return AnswerExtras()
        episodes = _episodes({cand.item.parent for cand in told if cand.item.parent}, ctx)
        groups: dict[str, list[Candidate]] = {}
        for cand in told:
            source = _source_id(cand.item, episodes)
            if source is not None:
                groups.setdefault(source, []).append(cand)
        ranked = sorted(groups.items(), key=lambda group: (-group[1][0].score, group[0]))
        return AnswerExtras(
            captions=tuple(
                Caption(
                    source,
                    _caption_text(episodes.get(source, group[0].item)),
                    group[0].score,
                    tuple(cand.item.id for cand in group),
                )
                for source, group in ranked[: self.most]
            )
        )


def _source_id(item: Item, episodes: dict[str, Item]) -> str | None:
    if item.parent in episodes:
        return item.parent
    return item.session or (item.id if item.level == "raw" else None)


def _caption_text(item: Item) -> str:
    return item.caption or caption(item.text, item.speaker)


def _episodes(ids: set[str], ctx: Context) -> dict[str, Item]:
    """Return episodes the caller may see; the query's filters apply to hits, not to sources."""
    if not ids:
        return {}
    query = ctx.query
    filters = Filters(max_classification=query.filters.max_classification, include_superseded=True)
    scope = Scope(filters, query.moment, query.as_of)
    found = ctx.get(ids)
    return {
        key: item
        for key, item in found.items()
        if item.level == "raw" and rejection_reason(item, scope) is None
    }


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
        return "" if self.enabled else "off in this profile"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        direct, others = split_by_level(pool, self.apart)
        room = len(direct) - self.protect
        if room <= 0:
            return pool
        seeds = direct[: self.seeds]
        known = {cand.item.id for cand in direct}
        found = [
            _thread_as_of(thread, ctx.query.as_of)
            for thread in ctx.store.threads_of([cand.item.id for cand in seeds])
        ]
        items = _visible_members(found, self.apart, ctx)
        threads = self._rank_threads(found, seeds, items, ctx)[: self.threads]
        brought: dict[str, Candidate] = {}
        for ranked in threads:
            fresh = [member for member in ranked.left if member.item not in known]
            for member in _order_members(fresh, ranked, items)[: self.members]:
                why = f"{member.role} of {_thread_name(ranked.thread, ctx)}"
                reason = Evidence(self.name, "seen", member.weight, why, ranked.thread.id)
                brought.setdefault(member.item, Candidate(items[member.item], 0.0, (reason,)))
        admitted = list(brought.values())[:room]
        ctx.remark(
            f"{len(seeds)} seeds, {len(found)} threads, {len(threads)} followed, "
            f"{len(admitted)} members brought in"
        )
        return (
            sort_by_score((*self._insert_members(direct, admitted), *others)) if admitted else pool
        )

    def _insert_members(self, direct: Pool, admitted: Sequence[Candidate]) -> list[Candidate]:
        kept, rest = direct[: self.protect], direct[self.protect :]
        # Without anything to protect they come first, but not above what was first.
        high, low = kept[-1].score if kept else rest[0].score, rest[0].score
        step = (high - low) / (len(admitted) + 1)
        between = [
            cand.with_evidence(
                self.name, "set", high - step * place, "between the first and the rest"
            )
            for place, cand in enumerate(admitted, start=1)
        ]
        ordered = enforce_order((*kept, *between, *rest), self.name, "behind the thread")
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


def _thread_name(thread: Thread, ctx: Context) -> str:
    """Name the thread by its headline, unless that may quote what the caller may not see."""
    members = ctx.store.get([member.item for member in thread.members])
    ceiling = ctx.query.filters.max_classification
    if any(item.classification > ceiling for item in members.values()):
        return "the same thread"
    return f"the thread “{shorten(thread.headline, 60)}”"


def _thread_as_of(thread: Thread, as_of: datetime | None) -> Thread:
    """Return the thread without members and events after the given moment."""
    if as_of is None:
        return thread
    members = tuple(m for m in thread.members if m.added_at is None or m.added_at <= as_of)
    events = tuple(event for event in thread.events if event.at <= as_of)
    return thread._replace(members=members, events=events)


def _visible_members(
    threads: Sequence[Thread], apart: Sequence[str], ctx: Context
) -> dict[str, Item]:
    ids = {member.item for thread in threads for member in thread.members}
    items = ctx.get(ids)
    return {
        key: item
        for key, item in items.items()
        if item.level not in apart and rejection_reason(item, ctx.scope) is None
    }


def _order_members(
    members: Sequence[Member], ranked: _RankedThread, items: dict[str, Item]
) -> list[Member]:
    """Sort by weight, distance to a seed in events and in time, then newest."""
    places: dict[str, list[int]] = {}
    times: dict[str, list[float]] = {}
    for event in ranked.thread.events:
        if event.item is not None:
            places.setdefault(event.item, []).append(event.seq)
            times.setdefault(event.item, []).append(event.at.timestamp())
    seeds = [cand.item for cand in ranked.seeds]

    def moments(item: Item) -> list[float]:
        return times.get(item.id) or [item.when.timestamp()]

    def order(member: Member) -> tuple[float, float, float, float, str]:
        own = items[member.item]
        theirs = [place for one in seeds for place in places.get(one.id, ())]
        steps = _min_distance(places.get(own.id, ()), theirs)
        seconds = _min_distance(moments(own), [at for one in seeds for at in moments(one)])
        return (-member.weight, steps, seconds, -max(moments(own)), member.item)

    return sorted(members, key=order)


def _min_distance(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return min((abs(one - other) for one in ours for other in theirs), default=math.inf)


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
        return "" if self.enabled else "off in this profile"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        direct, others = split_by_level(pool, self.apart)
        if not direct:
            return pool
        found = find_neighbours(direct, self._limits(), ctx)
        merged = self._merge_neighbours(direct, found.ranked)
        final = merged[: max(len(direct), self.expanded)] if self.mode == "expand" else merged
        before = {cand.item.id for cand in direct}
        admitted = sum(cand.item.id not in before for cand in final)
        displaced = len(before - {cand.item.id for cand in final[: len(direct)]})
        ctx.remark(
            f"{len(direct[: self.seeds])} seeds, {found.by_links} by links, "
            f"{found.by_entities} by entities, {admitted} admitted, {displaced} displaced, "
            f"{found.overlap} found already, {len(found.hubs)} hubs skipped"
        )
        return sort_by_score((*final, *others))

    def _limits(self) -> NeighbourLimits:
        curve = TimeDecay(self.per_day, self.floor, self.outside_per_day, self.outside_floor)
        families = LinkFamilies(
            semantic=(self.semantic, self.semantic_weight, self.semantic_per_seed),
            temporal=(self.temporal, self.temporal_weight, self.temporal_per_seed),
            causal=(self.causal, self.causal_weight, self.causal_per_seed),
            sibling=((), self.sibling_weight, self.siblings_per_seed),
        )
        return NeighbourLimits(
            families, self.seeds, self.min_strength, self.min_confidence, self.hub,
            self.damping, curve, self.apart,
        )  # fmt: skip

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
            (*kept, *sort_by_score(known.values())), self.name, "held below the first"
        )

    def _new_candidate(self, near: Neighbour, unit: float) -> Candidate:
        start = Evidence(self.name, "set", near.score, near.why, near.via)
        cand = Candidate(near.item, near.score, (start,))
        cand = cand.with_evidence(self.name, "times", unit, "the strongest is 1")
        return cand.with_evidence(self.name, "times", self.weight, "found through the graph alone")

    def _add_bonus(self, own: Candidate, near: Neighbour, unit: float) -> Candidate:
        bonus = max(0.0, 1.0 - own.score) * near.score * unit * self.weight
        return own.with_evidence(self.name, "add", bonus, near.why, via=near.via) if bonus else own
