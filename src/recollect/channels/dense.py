"""Finds memories whose meaning lies near the question's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from recollect.asked import time_asked
from recollect.channels.ranking import ranked
from recollect.channels.waiting import filled
from recollect.context import Channel, Context
from recollect.errors import ModelError
from recollect.model import Pool
from recollect.ports import Found, Scope, late_interaction


@dataclass(frozen=True, slots=True)
class Dense:
    """Nearest vectors by cosine; nothing at or below ``min_cosine``.

    With ``weighted`` rare words of the question count for more in its vector.
    ``levels`` are searched; all of them where none are named. Not asked when those of
    ``after`` found ``enough`` (0: as many as were asked for). ``oversample`` times as many
    as ``depth`` are fetched, and no fewer than the question wants of these levels. With
    ``timely`` a question that names a time and nothing else is asked of that time alone:
    what is of other times could only take the place of what is meant.
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

    def begin(self, ctx: Context) -> None:
        """Starts embedding the question while other channels search, if that takes long."""
        if not (self.weighted and late_interaction(ctx.embedder)):
            ctx.begin_embedding()

    def skip(self, found: Mapping[Channel, Pool], ctx: Context) -> str:
        if self.levels and self._wanted(ctx) == 0:
            return f"no {' or '.join(self.levels)} memories were asked for"
        return filled(found, self.after, self.enough, ctx)

    def _wanted(self, ctx: Context) -> int | None:
        """How many the question wants of its levels, where it counts all of them apart."""
        apart = dict(ctx.query.most)
        if not apart.keys() >= set(self.levels):
            return None
        return sum(apart[level] for level in self.levels)

    def _scope(self, ctx: Context) -> Scope:
        scope = ctx.scope_of(self.levels)
        time = time_asked(ctx) if self.timely else None
        if time is None:
            return scope
        filters = replace(scope.filters, since=time.since, until=time.until)
        return scope._replace(filters=filters)

    def __call__(self, ctx: Context) -> Pool:
        if ctx.embedder is None:
            raise ModelError("no embedder is configured", remedy="recollect config embedder")
        vector = ctx.weighted_vector() if self.weighted else ctx.embedding().vector
        if not vector.any():
            ctx.remark("the question has no words the embedder knows")
            return ()
        ctx.remark(f"by {ctx.embedder.model}")
        depth = ctx.reach(self.depth * self.oversample)
        if self.levels:
            depth = max(depth, self._wanted(ctx) or 0)
        found = ctx.store.search_vector(vector, ctx.embedder.model, depth, self._scope(ctx))
        near = tuple(match for match in found.matches if match.score > self.min_cosine)
        return ranked(self.name, Found(near, found.note), ctx)
