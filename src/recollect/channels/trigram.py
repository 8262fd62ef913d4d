"""Finds memories by pieces of words: typed on another keyboard, inflected, inside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from recollect.channels.ranking import ranked
from recollect.channels.waiting import filled
from recollect.context import Channel, Context
from recollect.model import Pool
from recollect.ports import PieceSearch


@dataclass(frozen=True, slots=True)
class Trigram:
    """Pieces of the question's words, accents aside: as typed, with z and y swapped, or
    overlapping windows of long words.

    ``within`` the text and the words kept beside it, or the original it was translated
    from. Memories that hold less than ``min_share`` of the question are left out. Not
    asked when those of ``after`` found ``enough`` (0: as many as were asked for).
    """

    depth: int = 30
    weight: float = 1.0
    within: Literal["text", "original"] = "text"
    min_share: float = 0.3
    after: tuple[str, ...] = ()
    enough: int = 0
    name: str = "trigram"

    def skip(self, found: Mapping[Channel, Pool], ctx: Context) -> str:
        return filled(found, self.after, self.enough, ctx)

    def __call__(self, ctx: Context) -> Pool:
        search = PieceSearch(
            ctx.query.text, ctx.reach(self.depth), self.within == "original", self.min_share
        )
        return ranked(self.name, ctx.store.search_pieces(search, ctx.scope), ctx)
