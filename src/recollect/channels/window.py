"""Finds memories by nothing but the time the question names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.asked import Period, periods
from recollect.channels.ranking import ranked
from recollect.context import Channel, Context
from recollect.model import Item, Pool
from recollect.ports import Found, Match


@dataclass(frozen=True, slots=True)
class Window:
    """What happened in, or went on into, a time the question names; skipped without one.

    The middle of that time scores 1, its edges and what began before it 0.
    """

    depth: int = 100
    weight: float = 1.0
    levels: tuple[str, ...] = ()
    name: str = "window"

    def skip(self, found: Mapping[Channel, Pool], ctx: Context) -> str:
        return "" if periods(ctx) else "the question names no time"

    def __call__(self, ctx: Context) -> Pool:
        named = periods(ctx)
        scope = ctx.scope_of(self.levels)
        best: dict[str, Match] = {}
        for period in named:
            found = ctx.store.search_time(
                period.start, period.end, self.depth, scope, overlapping=True
            )
            for item, _, why in found.matches:
                known, score = best.get(item.id), _centred(item, period)
                if known is None or score > known.score:
                    best[item.id] = Match(item, score, f"{why}, of {period.said}")
        if named:
            ctx.remark("; ".join(_told(period) for period in named))
        matches = sorted(best.values(), key=lambda match: (-match.score, match.item.id))
        return ranked(self.name, Found(tuple(matches[: self.depth])), ctx)


def _centred(item: Item, period: Period) -> float:
    """1 in the middle of the period, falling to 0 at its edges and beyond."""
    half = (period.end - period.start) / 2
    away = abs(item.when - (period.start + half))
    return max(0.0, 1.0 - away / half) if half else 0.0


def _told(period: Period) -> str:
    return f"{period.said}: from {period.start:%Y-%m-%d %H:%M} to {period.end:%Y-%m-%d %H:%M}"
