"""Retrieve memories by vector similarity to the question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from bethink.core.dataclass import dataclass, replace
from bethink.model import Pool
from bethink.ports import Embedder, Scope, late_interaction
from bethink.retrieval.context import Context, Retriever, no_embedder
from bethink.retrieval.query_analysis import time_only_filters
from bethink.retrieval.retrievers.ranking import ranked_pool, skip_if_filled


@dataclass(frozen=True, slots=True)
class Dense:
    """Nearest vectors by cosine similarity; drops everything at or below ``min_cosine``.

    With ``weighted``, rare words of the question count for more in its vector. Only
    ``levels`` are searched; all levels when empty. Skipped when the retrievers in
    ``after`` found ``enough`` (0: as many as requested). Fetches ``oversample`` times
    ``depth``, and no fewer than the query requests of these levels. With ``timely``, a
    question that names a time and nothing else searches that time alone: memories of
    other times could only displace the right ones.
    """

    depth: int = 50
    oversample: int = 1
    weight: float = 1.0
    min_cosine: float = 0.0
    weighted: bool = True
    timely: bool = False
    levels: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    enough: int = 0
    name: str = "dense"
    matches = "meaning"

    def prefetch(self, ctx: Context) -> None:
        """Start embedding the question while other retrievers search, if that takes long."""
        if not (self.weighted and late_interaction(ctx.embedder)):
            ctx.prefetch_embedding()

    def read_ahead(self, ctx: Context) -> None:
        """Tell the store which vector will be looked for, where nothing can skip it."""
        if not self.after and late_interaction(ctx.embedder) and not self.skip({}, ctx):
            vector = ctx.weighted_vector() if self.weighted else ctx.embedding().vector
            model, depth = cast("Embedder", ctx.embedder).model, self._depth(ctx)
            ctx.store.search.read_ahead(self._search_scope(ctx), nearest=(vector, model, depth))

    def skip(self, found: Mapping[Retriever, Pool], ctx: Context) -> str:
        if self.levels and self._requested_count(ctx) == 0:
            return f"no {' or '.join(self.levels)} memories were requested"
        return skip_if_filled(found, self.after, self.enough, ctx)

    def _requested_count(self, ctx: Context) -> int | None:
        """Number of hits requested for its levels, if the query limits each of them separately."""
        limits = dict(ctx.query.most)
        if not limits.keys() >= set(self.levels):
            return None
        return sum(limits[level] for level in self.levels)

    def _depth(self, ctx: Context) -> int:
        depth = ctx.candidate_limit(self.depth * self.oversample)
        return max(depth, self._requested_count(ctx) or 0) if self.levels else depth

    def _search_scope(self, ctx: Context) -> Scope:
        scope = ctx.scope_for_levels(self.levels)
        time = time_only_filters(ctx) if self.timely else None
        if time is None:
            return scope
        filters = replace(scope.filters, since=time.since, until=time.until)
        return scope._replace(filters=filters)

    def __call__(self, ctx: Context) -> Pool:
        if ctx.embedder is None:
            raise no_embedder()
        vector = ctx.weighted_vector() if self.weighted else ctx.embedding().vector
        if not vector.any():
            ctx.add_step_note("the question has no words the embedder knows")
            return ()
        ctx.add_step_note(f"model {ctx.embedder.model}")
        scope = self._search_scope(ctx)
        found = ctx.store.search.vector(vector, ctx.embedder.model, self._depth(ctx), scope)
        ctx.note_background(found.background)
        near = tuple(match for match in found.matches if match.score > self.min_cosine)
        return ranked_pool(self.name, found._replace(matches=near), ctx)
