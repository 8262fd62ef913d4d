"""Finds memories whose meaning lies near the question's and whose time suits it."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.errors import ModelError
from recollect.model import Pool
from recollect.ports import Found, Match
from recollect.timely import Curve, time_factor

_FURTHEST = 16


@dataclass(frozen=True, slots=True)
class Timed:
    """Nearest vectors, the cosine times how well the time suits; nothing below ``min_score``.

    ``candidates`` × ``depth`` are looked at first, and up to 16 times as many where one of
    them could still come in: a time never raises a score, so cosines say when to stop.
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

    def __call__(self, ctx: Context) -> Pool:
        if ctx.embedder is None:
            raise ModelError("no embedder is configured", remedy="recollect config embedder")
        vector = ctx.weighted_vector() if self.weighted else ctx.embedding().vector
        if not vector.any():
            ctx.remark("the question has no words the embedder knows")
            return ()
        depth, model, scope = ctx.reach(self.depth), ctx.embedder.model, ctx.scope_of(self.levels)
        looked = depth * max(1, self.candidates)
        most = _FURTHEST * looked
        while True:
            found = ctx.store.search_vector(vector, model, looked, scope)
            best = self._judged(found, ctx)[:depth]
            ended = len(found.matches) < looked or looked >= most
            if ended or self._settled(best, depth, found.matches[-1].score):
                return ranked(self.name, Found(tuple(best), found.note), ctx)
            looked *= 4

    def _judged(self, found: Found, ctx: Context) -> list[Match]:
        curve = Curve(self.per_day, self.floor, self.outside_per_day, self.outside_floor)
        judged = []
        for item, cosine, _ in found.matches:
            factor, why = time_factor(item, ctx, curve)
            if cosine * factor >= self.min_score and cosine > 0:
                told = f"cosine {cosine:.3f} × {factor:.3f}, {why}"
                judged.append(Match(item, cosine * factor, told))
        return sorted(judged, key=lambda match: (-match.score, match.item.id))

    def _settled(self, best: list[Match], depth: int, next_cosine: float) -> bool:
        """Whether nothing that was not looked at could be among the best."""
        return next_cosine < self.min_score or (len(best) == depth and best[-1].score > next_cosine)
