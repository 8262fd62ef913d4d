"""Who spoke before and after whom, among the turns at hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from recollect.context import Context

FOLLOWS = ("follows",)


@dataclass(frozen=True, slots=True)
class Turns:
    """The order of turns as far as it has been looked up."""

    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def beside(self, turn: str) -> list[str]:
        """The turns right before and right after one."""
        return [near for near in (self.before.get(turn), self.after.get(turn)) if near]


def turns_around(ids: Iterable[str], ctx: Context) -> Turns:
    """The order of these turns and their neighbours; each is looked up once a recall."""
    turns = ctx.once("turns", Turns)
    fresh = sorted(set(ids) - turns.known)
    if fresh:
        for link in ctx.links_of(fresh, FOLLOWS):
            turns.before[link.src.id] = link.dst.id
            turns.after[link.dst.id] = link.src.id
        turns.known.update(fresh)
    return turns
