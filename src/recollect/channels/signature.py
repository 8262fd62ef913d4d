"""Finds memories made of much the same words, by signatures of 256 bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.channels.ranking import ranked
from recollect.channels.waiting import filled
from recollect.context import Channel, Context
from recollect.model import Pool


@dataclass(frozen=True, slots=True)
class Signature:
    """Memories whose signature agrees with the question's; no model is needed.

    The score is the share of bits that agree, allowing for the question's length: 0.5 is
    chance, and below ``min_likeness`` nothing is passed on. Not asked when those of
    ``after`` found ``enough`` (0: as many as were asked for).
    """

    depth: int = 5
    weight: float = 1.0
    min_likeness: float = 0.65
    after: tuple[str, ...] = ()
    enough: int = 0
    name: str = "signature"

    def skip(self, found: Mapping[Channel, Pool], ctx: Context) -> str:
        return filled(found, self.after, self.enough, ctx)

    def __call__(self, ctx: Context) -> Pool:
        found = ctx.store.search_signature(ctx.query.text, self.depth, self.min_likeness, ctx.scope)
        return ranked(self.name, found, ctx)
