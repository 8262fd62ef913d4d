"""Finds memories of the time the question names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recollect.asked import Period, periods
from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.errors import ModelError
from recollect.model import Filters, Pool
from recollect.ports import Found, Match, Scope


@dataclass(frozen=True, slots=True)
class Temporal:
    """The nearest in meaning among what happened in a time the question names.

    Only finds something when it names one. Where meaning cannot be compared (no
    embedder, one that fails, vectors of another model), what lies nearest to the
    middle of that time.
    """

    depth: int = 20
    weight: float = 1.0
    name: str = "temporal"

    def __call__(self, ctx: Context) -> Pool:
        named = periods(ctx)
        for event in (period for period in named if period.event is not None):
            ctx.remark(event.shown())
        best: dict[str, Match] = {}
        for period, found in zip(named, self._search(named, ctx), strict=True):
            for match in found.matches:
                known = best.get(match.item.id)
                if known is None or match.score > known.score:
                    best[match.item.id] = match._replace(why=f"of {period.said}")
        matches = sorted(best.values(), key=lambda match: (-match.score, match.item.id))
        return ranked(self.name, Found(tuple(matches[: self.depth])), ctx)

    def _search(self, named: Sequence[Period], ctx: Context) -> list[Found]:
        """All of them by meaning or, where that fails, all by time: two kinds of scores
        cannot be compared."""
        if named and ctx.embedder is not None:
            try:
                return [self._by_meaning(period, ctx, ctx.embedder.model) for period in named]
            except ModelError as error:
                ctx.remark(f"by time alone: {error.message}")
        search = ctx.store.search_time
        return [search(one.start, one.end, self.depth, _scope(one, ctx)) for one in named]

    def _by_meaning(self, period: Period, ctx: Context, model: str) -> Found:
        vector = ctx.weighted_vector()
        if not vector.any():
            raise ModelError("the question has no words the embedder knows")
        return ctx.store.search_vector(vector, model, self.depth, _scope(period, ctx))


def _scope(period: Period, ctx: Context) -> Scope:
    return Scope(_within(ctx.query.filters, period), ctx.query.moment, ctx.query.as_of)


def _within(filters: Filters, period: Period) -> Filters:
    """The filters, narrowed to the period."""
    since = max(filter(None, (filters.since, period.start)))
    until = min(filter(None, (filters.until, period.end)))
    return replace(filters, since=since, until=until)
