"""Finds memories whose meaning lies near the question's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.channels.ranking import ranked
from recollect.channels.waiting import filled
from recollect.context import Channel, Context
from recollect.errors import ModelError
from recollect.model import Pool
from recollect.ports import Found, late_interaction


@dataclass(frozen=True, slots=True)
class Dense:
    """Nearest vectors by cosine; nothing at or below ``min_cosine``.

    With ``weighted`` rare words of the question count for more in its vector.
    ``levels`` are searched; all of them where none are named. Not asked when those of
    ``after`` found ``enough`` (0: as many as were asked for).
    """

    depth: int = 50
    weight: float = 1.0
    min_cosine: float = 0.0
    weighted: bool = True
    levels: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    enough: int = 0
    name: str = "dense"

    def begin(self, ctx: Context) -> None:
        """Starts embedding the question while other channels search, if that takes long."""
        if not (self.weighted and late_interaction(ctx.embedder)):
            ctx.begin_embedding()

    def skip(self, found: Mapping[Channel, Pool], ctx: Context) -> str:
        return filled(found, self.after, self.enough, ctx)

    def __call__(self, ctx: Context) -> Pool:
        if ctx.embedder is None:
            raise ModelError("no embedder is configured", remedy="recollect config embedder")
        vector = ctx.weighted_vector() if self.weighted else ctx.embedding().vector
        if not vector.any():
            ctx.remark("the question has no words the embedder knows")
            return ()
        found = ctx.store.search_vector(
            vector, ctx.embedder.model, ctx.reach(self.depth), ctx.scope_of(self.levels)
        )
        near = tuple(match for match in found.matches if match.score > self.min_cosine)
        return ranked(self.name, Found(near, found.note), ctx)
