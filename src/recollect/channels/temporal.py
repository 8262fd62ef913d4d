"""Finds memories of the time the question names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.asked import Period, asks_only_when, kinds_asked, periods, within
from recollect.channels.ranking import ranked
from recollect.context import Channel, Context
from recollect.errors import ModelError
from recollect.model import Filters, Pool
from recollect.ports import Found, Match, Scope


@dataclass(frozen=True, slots=True)
class Temporal:
    """The nearest in meaning among what happened in a time the question names.

    Where it names nothing else but a kind ("what did we decide in May?"), as many of that
    kind, and these before all others: a likeness to such a question says little.
    Not asked when it names none. Where meaning cannot be compared (no embedder, one
    that fails, vectors of another model), what lies nearest to the middle of that time.
    """

    depth: int = 20
    weight: float = 1.0
    name: str = "temporal"

    def skip(self, _: Mapping[Channel, Pool], ctx: Context) -> str:
        return "" if periods(ctx) else "the question names no time"

    def __call__(self, ctx: Context) -> Pool:
        named = periods(ctx)
        for event in (period for period in named if period.event is not None):
            ctx.remark(event.shown())
        kinds = kinds_asked(ctx.query.text) if asks_only_when(ctx) else ()
        matches = self._best(named, self._search(named, ctx.query.filters, ctx))
        if kinds and not ctx.query.filters.kinds:
            of_kind = replace(ctx.query.filters, kinds=kinds)
            for key, match in self._best(named, self._search(named, of_kind, ctx)).items():
                told = f"{match.why}, asked for: {match.item.kind}"
                matches[key] = match._replace(score=1.0 + match.score, why=told)
        first = sorted(matches.values(), key=lambda match: (-match.score, match.item.id))
        return ranked(self.name, Found(tuple(first)), ctx)

    def _best(self, named: Sequence[Period], found: Sequence[Found]) -> dict[str, Match]:
        """The best of all times together, each with the time it is of."""
        best: dict[str, Match] = {}
        for period, one in zip(named, found, strict=True):
            for match in one.matches:
                known = best.get(match.item.id)
                if known is None or match.score > known.score:
                    best[match.item.id] = match._replace(why=f"of {period.said}")
        first = sorted(best.values(), key=lambda match: (-match.score, match.item.id))
        return {match.item.id: match for match in first[: self.depth]}

    def _search(self, named: Sequence[Period], filters: Filters, ctx: Context) -> list[Found]:
        """All of them by meaning or, where that fails, all by time: two kinds of scores
        cannot be compared."""
        scopes = [
            Scope(within(filters, one.start, one.end), ctx.query.moment, ctx.query.as_of)
            for one in named
        ]
        if named and ctx.embedder is not None:
            try:
                return [self._by_meaning(scope, ctx, ctx.embedder.model) for scope in scopes]
            except ModelError as error:
                ctx.remark(f"by time alone: {error.message}")
        search = ctx.store.search_time
        return [
            search(one.start, one.end, self.depth, scope)
            for one, scope in zip(named, scopes, strict=True)
        ]

    def _by_meaning(self, scope: Scope, ctx: Context, model: str) -> Found:
        vector = ctx.weighted_vector()
        if not vector.any():
            raise ModelError("the question has no words the embedder knows")
        return ctx.store.search_vector(vector, model, self.depth, scope)
