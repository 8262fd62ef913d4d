"""Finds memories whose meaning lies near the question's."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.errors import ModelError
from recollect.model import Pool
from recollect.ports import Found


@dataclass(frozen=True, slots=True)
class Dense:
    """Nearest vectors by cosine; nothing at or below ``min_cosine``.

    With ``weighted`` rare words of the question count for more in its vector.
    ``levels`` are searched; all of them where none are named.
    """

    depth: int = 50
    weight: float = 1.0
    min_cosine: float = 0.0
    weighted: bool = True
    levels: tuple[str, ...] = ()
    name: str = "dense"

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
