"""A memory on its way through the walk: its score, and the reasons that add up to it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter, itemgetter
from typing import Literal, NamedTuple

from recollect.model.item import Item

Op = Literal["seen", "add", "times", "set"]


class Evidence(NamedTuple):
    """One reason a candidate's score is what it is.

    ``seen`` reports a fact and leaves the score alone; the other three change
    it. ``via`` names the node through which a score arrived, ``rank`` the
    place a channel gave.
    """

    by: str
    op: Op
    value: float
    why: str = ""
    via: str | None = None
    rank: int | None = None

    def as_seen(self) -> Evidence:
        """The same as a mere report. (Three times as fast as ``_replace``, and a fusion
        does it for everything that any channel found.)"""
        return Evidence(self.by, "seen", self.value, self.why, self.via, self.rank)


def replay(evidence: Iterable[Evidence], start: float = 0.0) -> float:
    """The score a chain of reasons adds up to, in the order it was given."""
    score = start
    for reason in evidence:
        if reason.op == "add":
            score += reason.value
        elif reason.op == "times":
            score *= reason.value
        elif reason.op == "set":
            score = reason.value
    return score


class Candidate(NamedTuple):
    """An item on its way through the walk, with its score and the reasons."""

    item: Item
    score: float = 0.0
    evidence: tuple[Evidence, ...] = ()

    def because(
        self, by: str, op: Op, value: float, why: str = "", *, via: str | None = None
    ) -> Candidate:
        """A copy with one more reason. Nothing else may change a score."""
        reason = Evidence(by, op, value, why, via)
        return Candidate(self.item, replay((reason,), self.score), (*self.evidence, reason))

    def reason(self, by: str) -> Evidence | None:
        """The last reason given by a channel or stage, if it gave one."""
        for reason in reversed(self.evidence):
            if reason.by == by:
                return reason
        return None


Pool = tuple[Candidate, ...]


def best_first(candidates: Iterable[Candidate]) -> Pool:
    """Sorted by falling score; equal scores by id, so that order never wavers."""
    ranked = list(candidates)
    # Two stable sorts by plain keys take half the time of one sort by a pair, and the
    # first is only needed where scores are equal.
    if len(set(map(_SCORE, ranked))) < len(ranked):
        ranked.sort(key=_ID)
    ranked.sort(key=_SCORE, reverse=True)
    return tuple(ranked)


_ID = attrgetter("item.id")
_SCORE = itemgetter(1)
