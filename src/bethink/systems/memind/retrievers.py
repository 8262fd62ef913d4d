"""Retrievers of the memind profile: keywords, time-weighted vectors and time windows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Protocol

from bethink.core.arrays import NDArray, np
from bethink.core.dataclass import dataclass
from bethink.lang.dates import DAY_S
from bethink.model import Item, Pool
from bethink.ports import Match, Nearest, SearchResult, TextSearch
from bethink.retrieval.context import Context, Retriever, no_embedder
from bethink.retrieval.query_analysis import Period, periods
from bethink.retrieval.retrievers.ranking import ranked_pool

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = DAY_S * 1000


class TimeDecay(Protocol):
    """A part with rates of decay per day and floors: by age, and by distance from a named time."""

    @property
    def per_day(self) -> float: ...
    @property
    def floor(self) -> float: ...
    @property
    def outside_per_day(self) -> float: ...
    @property
    def outside_floor(self) -> float: ...


def time_factor(item: Item, ctx: Context, decay: TimeDecay) -> tuple[float, str]:
    """The factor for a score, at most 1, and the reason; 1 for a memory without a date."""
    at = item.occurred_at
    if at is None:
        return 1.0, "undated"
    named = periods(ctx)
    if not named:
        days = max(0.0, (ctx.query.moment - at).total_seconds() / DAY_S)
        return max(decay.floor, math.exp(-decay.per_day * days)), f"{days:.0f} days old"
    nearest = min(named, key=lambda period: _days_outside(at, item.occurred_end, period))
    days = _days_outside(at, item.occurred_end, nearest)
    if not days:
        return 1.0, f"within {nearest.said}"
    factor = max(decay.outside_floor, math.exp(-decay.outside_per_day * days))
    return factor, f"{days:.0f} days outside {nearest.said}"


def _days_outside(start: datetime, end: datetime | None, period: Period) -> float:
    """Distance in days between an event and the period; 0 where they overlap."""
    last = max(start, end) if end is not None else start
    if start >= period.end:
        return max((start - period.end).total_seconds(), 1.0) / DAY_S
    return max(0.0, (period.start - last).total_seconds() / DAY_S)


@dataclass(frozen=True, slots=True)
class Keyword:
    """BM25 mapped to 0..1 as s / (1 + s), independent of the question's best possible score.

    Only ``levels`` are searched; all levels when empty.
    """

    depth: int = 15
    weight: float = 1.0
    about_weight: float = 1.0
    postings_budget: int = 20_000
    levels: tuple[str, ...] = ()
    name: str = "keyword"
    matches = "words"

    def __call__(self, ctx: Context) -> Pool:
        search = TextSearch(
            ctx.query.text,
            ctx.candidate_limit(self.depth),
            about_weight=self.about_weight,
            postings_budget=self.postings_budget,
        )
        found = ctx.store.search.text(search, ctx.scope_for_levels(self.levels))
        squeezed = tuple(
            match._replace(score=abs(match.score) / (1.0 + abs(match.score)))
            for match in found.matches
        )
        return ranked_pool(self.name, found._replace(matches=squeezed), ctx)


_MAX_WIDENING = 16


@dataclass(frozen=True, slots=True)
class Timed:
    """Nearest vectors, cosine times a time factor; nothing below ``min_score``.

    Fetches ``candidates`` × ``depth`` first, and up to 16 times as many while another one
    could still qualify: the time factor never raises a score, so cosines say when to stop.
    """

    depth: int = 15
    weight: float = 1.0
    min_score: float = 0.1
    candidates: int = 2
    per_day: float = 0.0019
    floor: float = 0.7
    outside_per_day: float = 0.023
    outside_floor: float = 0.3
    weighted: bool = False
    levels: tuple[str, ...] = ()
    name: str = "timed"
    matches = "meaning"

    def __call__(self, ctx: Context) -> Pool:
        if ctx.embedder is None:
            raise no_embedder()
        vector = ctx.weighted_vector() if self.weighted else ctx.embedding().vector
        if not vector.any():
            ctx.add_step_note("the question has no words the embedder knows")
            return ()
        depth, model, scope = (
            ctx.candidate_limit(self.depth),
            ctx.embedder.model,
            ctx.scope_for_levels(self.levels),
        )
        requested = depth * max(1, self.candidates)
        limit = _MAX_WIDENING * requested
        while True:
            choice = _BestByTime(self, ctx, depth, requested, requested >= limit)
            found = ctx.store.search.vector(vector, model, requested, scope, choice)
            if choice.settled:
                best = self._score_matches(found, ctx)[:depth]
                return ranked_pool(self.name, found._replace(matches=tuple(best)), ctx)
            requested *= 4

    def _score_matches(self, found: SearchResult, ctx: Context) -> list[Match]:
        scored = []
        for item, cosine, _ in found.matches:
            factor, why = time_factor(item, ctx, self)
            if cosine * factor >= self.min_score and cosine > 0:
                description = f"cosine {cosine:.3f} × {factor:.3f}, {why}"
                scored.append(Match(item, cosine * factor, description))
        return sorted(scored, key=lambda match: (-match.score, match.item.id))


# Rounding: whether one of these is among the best, its exact score decides.
_ALMOST = 1e-9


class _BestByTime:
    """Chooses the nearest that are among the best by cosine times time factor; none too early.

    ``settled`` says whether no memory that was not fetched could be among the best.
    """

    def __init__(
        self, timed: Timed, ctx: Context, depth: int, requested: int, is_last: bool
    ) -> None:
        self._timed, self._ctx = timed, ctx
        self._depth, self._requested, self._is_last = depth, requested, is_last
        self.settled = True

    def __call__(self, near: Nearest) -> Sequence[int]:
        lowest = self._timed.min_score
        scores = near.cosines * _time_factors(near, self._ctx, self._timed)
        good = np.flatnonzero((scores >= lowest - _ALMOST) & (near.cosines > 0))
        full = len(good) >= self._depth
        if full:
            lowest = max(lowest, float(np.partition(scores[good], -self._depth)[-self._depth]))
        if not self._is_last and len(scores) >= self._requested:
            next_cosine = float(near.cosines[-1])
            self.settled = next_cosine < self._timed.min_score or (full and lowest > next_cosine)
        chosen: list[int] = good[scores[good] >= lowest - _ALMOST].tolist()
        return chosen if self.settled else ()


def _time_factors(near: Nearest, ctx: Context, decay: TimeDecay) -> NDArray[np.float64]:
    """`time_factor` of all at once."""
    named = periods(ctx)
    if named:
        days = np.minimum.reduce([_all_days_outside(near, period) for period in named])
        rate, floor = decay.outside_per_day, decay.outside_floor
    else:
        days = np.maximum((_milliseconds(ctx.query.moment) - near.begins) / _DAY_MS, 0.0)
        rate, floor = decay.per_day, decay.floor
    factors = np.maximum(np.exp(-rate * days), floor)
    return np.where(np.isnan(near.begins), 1.0, factors)


def _all_days_outside(near: Nearest, period: Period) -> NDArray[np.float64]:
    """`_days_outside` of all at once."""
    before = _milliseconds(period.start) - np.fmax(near.begins, near.ends)
    after = near.begins - _milliseconds(period.end)
    return np.where(after >= 0.0, np.maximum(after, 1000.0), np.maximum(before, 0.0)) / _DAY_MS


def _milliseconds(moment: datetime) -> float:
    return (moment - _EPOCH) / timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Window:
    """Memories that happened in, or continued into, a time the question names.

    The middle of that time scores 1, its edges and what began before it 0. A time without an
    end ("since Monday") ends now. Skipped when the question names no time.
    """

    depth: int = 100
    weight: float = 1.0
    levels: tuple[str, ...] = ()
    name: str = "window"
    matches = "time"

    def skip(self, found: Mapping[Retriever, Pool], ctx: Context) -> str:
        return "" if periods(ctx) else "the question names no time"

    def __call__(self, ctx: Context) -> Pool:
        named = [_closed(period, ctx.query.moment) for period in periods(ctx)]
        scope = ctx.scope_for_levels(self.levels)
        best: dict[str, Match] = {}
        for period in named:
            found = ctx.store.search.time(
                period.start, period.end, self.depth, scope, overlapping=True
            )
            ctx.note_damage(found.damage)
            for item, _, why in found.matches:
                known, score = best.get(item.id), _centre_score(item, period)
                if known is None or score > known.score:
                    best[item.id] = Match(item, score, f"{why}, within {period.said}")
        if named:
            ctx.add_step_note("; ".join(_describe_period(period) for period in named))
        matches = sorted(best.values(), key=lambda match: (-match.score, match.item.id))
        return ranked_pool(self.name, SearchResult(tuple(matches[: self.depth])), ctx)


def _closed(period: Period, now: datetime) -> Period:
    """The period up to now, if it has no end of its own."""
    is_open = period.end.year == MAXYEAR and period.start < now
    return period._replace(end=now + timedelta(minutes=1)) if is_open else period


def _centre_score(item: Item, period: Period) -> float:
    """Score 1 in the middle of the period, falling to 0 at its edges and beyond."""
    half = (period.end - period.start) / 2
    away = abs(item.when - (period.start + half))
    return max(0.0, 1.0 - away / half) if half else 0.0


def _describe_period(period: Period) -> str:
    return f"{period.said}: from {period.start:%Y-%m-%d %H:%M} to {period.end:%Y-%m-%d %H:%M}"
