"""Candidates of the pipeline: an item, its score, and the evidence that adds up to it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter, itemgetter
from typing import Literal, NamedTuple

from bethink.model.item import Item

Op = Literal["seen", "add", "times", "set"]

# The reason given to a memory that a newer one, named by ``via``, restates with another value.
OLDER = "older, see"


class Evidence(NamedTuple):
    """One reason for a candidate's score.

    ``seen`` reports a fact and leaves the score unchanged; the other operations change
    it. ``via`` names the node through which a score arrived, ``rank`` the position a
    retriever gave.
    """

    by: str
    op: Op
    value: float
    why: str = ""
    via: str | None = None
    rank: int | None = None

    def as_report(self) -> Evidence:
        """The same evidence as a mere report.

        Three times as fast as ``_replace``; a fusion calls it for everything any retriever found.
        """
        return Evidence(self.by, "seen", self.value, self.why, self.via, self.rank)


def replay(evidence: Iterable[Evidence], start: float = 0.0) -> float:
    """Compute the score of a chain of evidence, in order."""
    score = start
    for reason in evidence:
        if reason.op == "add":
            score += reason.value
        elif reason.op == "times":
            score *= reason.value
        elif reason.op == "set":
            score = reason.value
    return score


class Passage(NamedTuple):
    """The part of a long memory's text that is shown, by its characters; its tokens."""

    start: int
    end: int
    tokens: int


class Candidate(NamedTuple):
    """An item in the pipeline, with its score and the evidence for it.

    Of a long memory a hit shows one ``passage``; None where it shows the whole.
    ``relevance`` is the estimated probability that it answers the question.
    """

    item: Item
    score: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    passage: Passage | None = None
    relevance: float | None = None

    @property
    def text(self) -> str:
        """The text to show: of a long memory the best passage, else the whole."""
        shown = self.passage
        return self.item.text if shown is None else self.item.text[shown.start : shown.end]

    @property
    def marked_text(self) -> str:
        """The text to show, with an ellipsis where something was left out."""
        shown = self.passage
        if shown is None:
            return self.item.text
        before = "… " if shown.start > 0 else ""
        return f"{before}{self.text}{' …' if shown.end < len(self.item.text) else ''}"

    def with_evidence(
        self, by: str, op: Op, value: float, why: str = "", *, via: str | None = None
    ) -> Candidate:
        """A copy with one more piece of evidence. Nothing else may change a score."""
        reason = Evidence(by, op, value, why, via)
        score = replay((reason,), self.score)
        return Candidate(self.item, score, (*self.evidence, reason), self.passage)

    @property
    def see_newer(self) -> str | None:
        """The id of a newer memory that speaks of the same thing, where one was found."""
        return next((reason.via for reason in self.evidence if reason.why == OLDER), None)

    def reason(self, by: str) -> Evidence | None:
        """The last evidence given by a retriever or stage, if any."""
        for reason in reversed(self.evidence):
            if reason.by == by:
                return reason
        return None


Pool = tuple[Candidate, ...]


def sort_by_score(candidates: Iterable[Candidate]) -> Pool:
    """Sort by descending score, then by id, so that the order is deterministic."""
    ranked = list(candidates)
    # Two stable sorts by plain keys take half the time of one sort by a pair, and the
    # first is only needed where scores are equal.
    if len(set(map(_SCORE, ranked))) < len(ranked):
        ranked.sort(key=_ITEM_ID)
    ranked.sort(key=_SCORE, reverse=True)
    return tuple(ranked)


_ITEM_ID = attrgetter("item.id")
_SCORE = itemgetter(1)
