"""Candidates of the pipeline: an item, its score, and the evidence that adds up to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, Literal, Protocol

from bethink.core.named_tuple import NamedTuple
from bethink.model.item import Item

Op = Literal["seen", "add", "times", "set"]

# The reason given to a memory that a newer one, named by ``via``, restates with another value.
OLDER = "older, see"
# That of one that may restate an older one, named by ``via``.
PERHAPS_NEWER = "perhaps newer, on the same thing, than"
# The source of evidence about changes of the code that a memory is tied to.
ANCHOR_EVIDENCE = "anchor"
ELSEWHERE = "changed elsewhere, too:"
# Links from a newer memory to the older one that it updates: surely, and perhaps.
UPDATE_LINKS = ("supersedes", "updates")
NO_UPDATE = "no_update"  # in the journal, of two that a caller said to be none, without a link


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

        Made as a plain tuple is: a fusion calls it for everything any retriever found.
        """
        by, _, value, why, via, rank = self
        return tuple.__new__(Evidence, (by, "seen", value, why, via, rank))


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


class EvidenceColumn(Protocol):
    """What one stage says for every candidate of a pool, as columns of numbers."""

    def gives(self, by: str) -> bool:
        """Whether any of its evidence may be ``by`` this."""

    def reasons(self, row: int) -> tuple[Evidence, ...]:
        """The evidence for one candidate, in order."""


class _MadeRows:
    """A column, and what was made of its rows so far."""

    __slots__ = ("column", "made")

    def __init__(self, column: EvidenceColumn) -> None:
        self.column = column
        self.made: dict[int, tuple[Evidence, ...]] = {}


class LazyEvidence(tuple[Any, ...]):
    """Earlier evidence, a column and a row of it; made into values on first access.

    A stage scores a hundred candidates of which ten are returned. What was made once is
    kept, so that candidates of later steps share it. A tuple, because nothing is made faster.
    """

    __slots__ = ()

    def values(self) -> tuple[Evidence, ...]:
        """All evidence, in order."""
        before, rows, row = self
        made: tuple[Evidence, ...] | None = rows.made.get(row)
        if made is None:
            known = before if type(before) is tuple else before.values()
            made = rows.made[row] = (*known, *rows.column.reasons(row))
        return made

    def last(self, by: str) -> Evidence | None:
        """The last evidence by this, without making any other."""
        before, rows, row = self
        if rows.column.gives(by):
            found = _last_by(rows.column.reasons(row), by)
            if found is not None:
                return found
        return _last_by(before, by) if type(before) is tuple else before.last(by)

    def __eq__(self, other: object) -> bool:
        return self.values() == (other.values() if isinstance(other, LazyEvidence) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.values())

    def __repr__(self) -> str:
        return repr(self.values())


class _OneReason(NamedTuple):
    """A column with evidence for one candidate."""

    reason: Evidence

    def gives(self, by: str) -> bool:
        return self.reason.by == by

    def reasons(self, row: int) -> tuple[Evidence, ...]:
        return (self.reason,)


def _last_by(evidence: tuple[Evidence, ...], by: str) -> Evidence | None:
    for reason in reversed(evidence):
        if reason.by == by:
            return reason
    return None


class _CandidateFields(NamedTuple):
    """The fields of a candidate; its evidence may still be columns."""

    item: Item
    score: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    passage: Passage | None = None
    relevance: float | None = None


class Candidate(_CandidateFields):
    """An item in the pipeline, with its score and the evidence for it.

    Of a long memory a hit shows one ``passage``; None where it shows the whole.
    ``relevance`` is the estimated probability that it is on the subject of the question.
    """

    __slots__ = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What led to the score, in order."""
        known: Any = self[2]
        return known if type(known) is tuple else known.values()

    def __iter__(self) -> Iterator[Any]:
        return iter((self[0], self[1], self.evidence, self[3], self[4]))

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
        known: Any = self[2]
        if type(known) is tuple:
            return Candidate(self[0], score, (*known, reason), self[3], self[4])
        lazy = LazyEvidence((known, _MadeRows(_OneReason(reason)), 0))
        return tuple.__new__(Candidate, (self[0], score, lazy, self[3], self[4]))

    def with_relevance(self, relevance: float) -> Candidate:
        """A copy with the probability that it is on the subject of the question."""
        return tuple.__new__(Candidate, (self[0], self[1], self[2], self[3], relevance))

    @property
    def see_newer(self) -> str | None:
        """The id of a newer memory about the same thing, where one was found."""
        return self._found(OLDER)

    @property
    def conflict(self) -> str | None:
        """What another machine made of it at the same time: how, where, when, and its text."""
        return self._found(ELSEWHERE)

    @property
    def marks(self) -> list[str]:
        """What a reader should know before the text: that it, or its code, has changed."""
        told = [f"{why} {said}" for why in (OLDER, ELSEWHERE) if (said := self._found(why))]
        return [*told, self.code_note] if self.code_note else told

    def _found(self, why: str) -> str | None:
        return next((reason.via for reason in self.evidence if reason.why == why), None)

    @property
    def code_note(self) -> str:
        """How the code that it is tied to changed; empty if it did not, or that is unknown."""
        found = self.reason(ANCHOR_EVIDENCE)
        return found.why if found else ""

    def reason(self, by: str) -> Evidence | None:
        """The last evidence given by a retriever or stage, if any."""
        known: Any = self[2]
        return _last_by(known, by) if type(known) is tuple else known.last(by)


def values_by(pool: Iterable[Candidate], by: str) -> list[float]:
    """The value of the last evidence each candidate has by this; 0 without any.

    As `Candidate.reason` of each; a column is asked only once whether it gives any.
    """
    gives: dict[_MadeRows, bool] = {}
    values = []
    for cand in pool:
        known: Any = cand[2]
        reason = None
        while reason is None and type(known) is not tuple:
            known, rows, row = known
            if rows not in gives:
                gives[rows] = rows.column.gives(by)
            if gives[rows]:
                reason = _last_by(rows.column.reasons(row), by)
        if reason is None and known:
            reason = _last_by(known, by)
        values.append(0.0 if reason is None else reason.value)
    return values


def with_column(
    pool: Sequence[Candidate], scores: Iterable[float], column: EvidenceColumn
) -> list[Candidate]:
    """The candidates with new scores, and a row of the column each as further evidence.

    Replaying the rows must give the scores.
    """
    rows, count = repeat(_MadeRows(column)), range(len(pool))
    lazy = map(LazyEvidence, zip(map(_EVIDENCE, pool), rows, count, strict=False))
    fields = zip(map(_ITEM, pool), scores, lazy, map(_PASSAGE, pool), repeat(None), strict=False)
    return list(map(tuple.__new__, repeat(Candidate), fields))


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
_ITEM, _SCORE, _EVIDENCE, _PASSAGE = map(itemgetter, range(4))
