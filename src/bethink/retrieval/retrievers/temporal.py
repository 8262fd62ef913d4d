"""Retrieve memories by time: the period the question names, or the newest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bethink.core.dataclass import dataclass, replace
from bethink.errors import ModelError
from bethink.model import Filters, Pool
from bethink.ports import Match, Scope, SearchResult, is_remote
from bethink.retrieval.context import Context, Retriever
from bethink.retrieval.query_analysis import (
    Period,
    asks_only_for_time,
    narrow_to_period,
    periods,
    requested_kinds,
)
from bethink.retrieval.retrievers.ranking import ranked_pool


@dataclass(frozen=True, slots=True)
class Temporal:
    """The nearest in meaning among memories of a time that the question names.

    If the question names nothing else but a kind ("what did we decide in May?"), as many
    of that kind are added and ranked first: similarity to such a question says little.
    Skipped when the question names no time. When vectors cannot be compared (no embedder,
    one that fails, vectors of another model), memories nearest to the middle of that time.
    """

    depth: int = 20
    weight: float = 1.0
    name: str = "temporal"
    matches = "time"

    def skip(self, _: Mapping[Retriever, Pool], ctx: Context) -> str:
        return "" if periods(ctx) else "the question names no time"

    def read_ahead(self, ctx: Context) -> None:
        """Tell the store which times will be looked at."""
        for scope in self._scopes(periods(ctx), ctx.query.filters, ctx):
            ctx.store.search.read_ahead(scope)

    @staticmethod
    def _scopes(named: Sequence[Period], filters: Filters, ctx: Context) -> list[Scope]:
        return [
            ctx.scope_of(narrow_to_period(filters, period.start, period.end)) for period in named
        ]

    def __call__(self, ctx: Context) -> Pool:
        named = periods(ctx)
        for event in (period for period in named if period.event is not None):
            ctx.add_step_note(event.describe())
        kinds = requested_kinds(ctx.query.text) if asks_only_for_time(ctx) else ()
        found = self._search_periods(named, ctx.query.filters, ctx)
        for result in found:
            ctx.note_damage(result.damage)
        matches = self._best_matches(named, found)
        if kinds and not ctx.query.filters.kinds:
            of_kind = replace(ctx.query.filters, kinds=kinds)
            for key, match in self._best_matches(
                named, self._search_periods(named, of_kind, ctx)
            ).items():
                why = f"{match.why}, requested kind: {match.item.kind}"
                matches[key] = match._replace(score=1.0 + match.score, why=why)
        ranked = sorted(matches.values(), key=lambda match: (-match.score, match.item.id))
        return ranked_pool(self.name, SearchResult(tuple(ranked)), ctx)

    def _best_matches(
        self, named: Sequence[Period], found: Sequence[SearchResult]
    ) -> dict[str, Match]:
        """Merge the matches of all periods, each labelled with its period."""
        best: dict[str, Match] = {}
        for period, result in zip(named, found, strict=True):
            for match in result.matches:
                known = best.get(match.item.id)
                if known is None or match.score > known.score:
                    best[match.item.id] = match._replace(why=f"within {period.said}")
        ranked = sorted(best.values(), key=lambda match: (-match.score, match.item.id))
        return {match.item.id: match for match in ranked[: self.depth]}

    def _search_periods(
        self, named: Sequence[Period], filters: Filters, ctx: Context
    ) -> list[SearchResult]:
        """Search all periods by meaning or, where that fails, all by time.

        The two kinds of scores cannot be compared, so they are never mixed.
        """
        scopes = self._scopes(named, filters, ctx)
        if named and ctx.embedder is not None:
            try:
                for scope in scopes if is_remote(ctx.store) else ():
                    vector, model = ctx.weighted_vector(), ctx.embedder.model
                    ctx.store.search.read_ahead(scope, nearest=(vector, model, self.depth))
                return [self._search_by_vector(scope, ctx, ctx.embedder.model) for scope in scopes]
            except ModelError as error:
                ctx.add_step_note(f"ranked by time only: {error.message}")
        search = ctx.store.search.time
        return [
            search(period.start, period.end, self.depth, scope)
            for period, scope in zip(named, scopes, strict=True)
        ]

    def _search_by_vector(self, scope: Scope, ctx: Context, model: str) -> SearchResult:
        vector = ctx.weighted_vector()
        if not vector.any():
            raise ModelError("the question has no words the embedder knows")
        return ctx.store.search.vector(vector, model, self.depth, scope)


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest stored memories that pass the filters; scores are 1, 1/2, 1/3, ...

    The only retriever used for a question without words. Only ``levels`` are searched;
    all levels when empty.
    """

    depth: int = 50
    weight: float = 1.0
    levels: tuple[str, ...] = ()
    name: str = "newest"

    def __call__(self, ctx: Context) -> Pool:
        scope = ctx.scope_for_levels(self.levels)
        items = ctx.store.items.browse(scope, limit=ctx.candidate_limit(self.depth))
        matches = tuple(
            Match(item, 1.0 / rank, f"stored {item.stored_at:%Y-%m-%d}")
            for rank, item in enumerate(items, 1)
        )
        return ranked_pool(self.name, SearchResult(matches), ctx)
