"""Stages of the memind profiles: rank fusion with bonus, time, insights, captions, reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter

from bethink.core.dataclass import dataclass
from bethink.core.sentences import caption
from bethink.errors import ModelError
from bethink.model import Candidate, Caption, Evidence, Filters, Item, Pool, sort_by_score
from bethink.ports import Scope, late_interaction
from bethink.retrieval.context import AnswerExtras, Context, PerEach, Retriever
from bethink.retrieval.scope import rejection_reason
from bethink.retrieval.stages.fusion import Rrf, merge_pools
from bethink.retrieval.stages.late_interaction import similarity_features
from bethink.systems.memind.retrievers import time_factor


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
        separate = [pool for ch, pool in found.items() if ch.name in self.apart]
        merged = self._fuse(fused) if len(fused) > 1 else next(iter(fused.values()), ())
        if len(fused) == 1:
            ctx.add_step_note(f"only {next(iter(fused)).name} found anything: its scores are kept")
        if self.pool:
            merged = merged[: ctx.candidate_limit(self.pool)]
        known = {cand.item.id for cand in merged}
        others: dict[str, Candidate] = {}
        for cand in sort_by_score(cand for pool in separate for cand in pool):
            if cand.item.id not in known:
                others.setdefault(cand.item.id, cand)
        return sort_by_score((*merged, *others.values()))

    def _fuse(self, found: Mapping[Retriever, Pool]) -> Pool:
        summed = merge_pools(found, Rrf(self.k).share)
        best = summed[0].score
        unit = 1.0 / best if best > 0 else 1.0
        return sort_by_score(
            self._with_bonus(
                cand.with_evidence("fuse.scale", "times", unit, "scaled: the best is 1"), rank
            )
            for rank, cand in enumerate(summed, start=1)
        )

    def _with_bonus(self, cand: Candidate, rank: int) -> Candidate:
        bonus = self.first if rank == 1 else self.second if rank <= 3 else 0.0
        return cand.with_evidence("fuse.bonus", "add", bonus, f"rank {rank}") if bonus else cand


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
        already_timed = {f"channel.{name}" for name in self.already}

        def weigh(cand: Candidate) -> Candidate:
            if cand.item.level in self.apart or any(r.by in already_timed for r in cand.evidence):
                return cand
            factor, why = time_factor(cand.item, ctx, self)
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
        added: dict[str, Candidate] = {}
        for _ in range(_MAX_DEPTH):
            above = list(self._parents_above(below, known | added.keys(), ctx)) if below else []
            if not above:
                break
            added.update((cand.item.id, cand) for cand in above)
            below = above
        if added:
            ctx.add_step_note(f"{len(added)} parent insights added")
        return sort_by_score((*pool, *added.values()))

    def _parents_above(
        self, below: Sequence[Candidate], known: set[str], ctx: Context
    ) -> Iterator[Candidate]:
        """Yield new insights one level up, each from the best child."""
        parents = parents_of([cand.item for cand in below], ctx)
        missing = {one for several in parents.values() for one in several} - known
        items = ctx.get(sorted(missing))
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
    return {key: sorted(set(ids_of_parents)) for key, ids_of_parents in parents.items()}


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
            reason = (
                "cut at the widest gap"
                if by_gap <= by_ratio
                else f"cut below {self.ratio:g} of the best"
            )
            ctx.add_step_note(f"kept {kept} of {len(mine)}: {reason}")
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
    episode, itself; an episode that others here were made from is its own source. Counts
    everything considered before the gate, so that the sources of candidates that were cut
    off are named too.
    """

    most: int = 5
    name: str = "captions"

    def __call__(self, hits: Pool, ctx: Context) -> AnswerExtras:
        candidates = [cand for cand in ctx.offered or hits if cand.item.level != "insight"]
        if not hits:
            return AnswerExtras()
        episodes = _episodes({cand.item.parent for cand in candidates if cand.item.parent}, ctx)
        groups: dict[str, list[Candidate]] = {}
        for cand in candidates:
            source = _source_id(cand.item, episodes)
            if source is not None:
                groups.setdefault(source, []).append(cand)
        ranked = sorted(groups.items(), key=lambda group: (-group[1][0].score, group[0]))
        captions: dict[str, Caption] = {}
        for source, group in ranked:
            told = episodes.get(source, group[0].item)
            text = told.caption or _made_captions((told,), ctx)[told.id]
            ids = tuple(cand.item.id for cand in group)
            # A conversation and an episode of it may have the same caption: one source.
            known = captions.get(text, Caption(source, text, group[0].score, ()))
            captions[text] = known._replace(items=(*known.items, *ids))
        return AnswerExtras(captions=tuple(captions.values())[: self.most])


def _source_id(item: Item, episodes: dict[str, Item]) -> str | None:
    if item.parent in episodes:
        return item.parent
    if item.id in episodes:
        return item.id
    return item.session or (item.id if item.level == "raw" else None)


# Each pass of a deep recall has much the same candidates.
_made_captions = PerEach[Item, str, str](
    lambda items, _: {item.id: caption(item.text, item.speaker) for item in items}, attrgetter("id")
)


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


def split_by_level(pool: Pool, apart: Sequence[str]) -> tuple[Pool, Pool]:
    """Split the pool: candidates a stage works on, and those of levels it leaves alone."""
    mine = tuple(cand for cand in pool if cand.item.level not in apart)
    return mine, tuple(cand for cand in pool if cand.item.level in apart)


@dataclass(frozen=True, slots=True)
class MaxSim:
    """Late interaction (Khattab & Zaharia, SIGIR 2020) over the embedder's own tokens.

    Every content term of the question takes its best match in the memory; rare words count
    for more. ``weight`` × that mean is added, so earlier scores are never erased.
    """

    weight: float = 0.5
    top: int = 50
    name: str = "maxsim"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if late_interaction(ctx.embedder) is None:
            raise ModelError("the embedder in use cannot compare token by token")
        close = similarity_features(pool[: self.top], ctx)

        def judge(cand: Candidate) -> Candidate:
            score = close.interaction[close.row(cand.item.id)]
            return cand.with_evidence(self.name, "add", self.weight * score, f"MaxSim {score:.2f}")

        return sort_by_score([*map(judge, pool[: self.top]), *pool[self.top :]])
