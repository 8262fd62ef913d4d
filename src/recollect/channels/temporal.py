"""Finds memories of the time the question names."""

from __future__ import annotations

from dataclasses import dataclass, replace

from recollect.asked import Period, periods
from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.model import Filters, Pool
from recollect.ports import Found, Match, Scope


@dataclass(frozen=True, slots=True)
class Temporal:
    """The nearest in meaning among what happened in a time the question names.

    Only finds something when it names one. Without an embedder, what lies nearest
    to the middle of that time.
    """

    depth: int = 20
    weight: float = 1.0
    name: str = "temporal"

    def __call__(self, ctx: Context) -> Pool:
        best: dict[str, Match] = {}
        for period in periods(ctx):
            for match in self._search(period, ctx).matches:
                known = best.get(match.item.id)
                if known is None or match.score > known.score:
                    best[match.item.id] = match._replace(why=f"of {period.said}")
        matches = sorted(best.values(), key=lambda match: (-match.score, match.item.id))
        return ranked(self.name, Found(tuple(matches[: self.depth])), ctx)

    def _search(self, period: Period, ctx: Context) -> Found:
        within = _within(ctx.query.filters, period)
        scope = Scope(within, ctx.query.moment, ctx.query.as_of)
        if ctx.embedder is None:
            return ctx.store.search_time(period.start, period.end, self.depth, scope)
        vector = ctx.weighted_vector()
        return ctx.store.search_vector(vector, ctx.embedder.model, self.depth, scope)


def _within(filters: Filters, period: Period) -> Filters:
    """The filters, narrowed to the period."""
    since = max(filter(None, (filters.since, period.start)))
    until = min(filter(None, (filters.until, period.end)))
    return replace(filters, since=since, until=until)
