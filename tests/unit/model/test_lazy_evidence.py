"""Evidence kept as columns: values are made when somebody looks."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field

from bethink.model import Candidate, Evidence, replay, sort_by_score, values_by, with_column
from records import record

GIVEN = (
    Evidence("channel.lexical", "seen", 0.5, "shared words", rank=2),
    Evidence("fuse.lexical", "add", 0.25, "rank 2"),
)


@dataclass
class Column:
    """A column that counts how often its rows are made into values."""

    values: list[float]
    made: list[int] = field(default_factory=list)

    def gives(self, by: str) -> bool:
        return by == "stage"

    def reasons(self, row: int) -> tuple[Evidence, ...]:
        self.made.append(row)
        return (Evidence("stage", "add", self.values[row], f"row {row}"),)


def scored(values: list[float]) -> tuple[Column, list[Candidate]]:
    """Candidates to each of which a column adds a value."""
    column = Column(values)
    pool = [Candidate(record(f"i{n}").item, 0.25, GIVEN) for n in range(len(values))]
    return column, with_column(pool, [0.25 + value for value in values], column)


def test_nothing_is_made_before_somebody_looks():
    """Sorting, reading scores, a report by another stage and a relevance need no values."""
    column, pool = scored([0.1, 0.3, 0.2])

    ranked = [cand.with_relevance(0.5) for cand in sort_by_score(pool)]
    changed = ranked[0].with_evidence("boost", "times", 2.0)

    assert [cand.item.id for cand in ranked] == ["i1", "i2", "i0"]
    assert changed.reason("channel.lexical") == GIVEN[0]
    assert changed.reason("boost") == Evidence("boost", "times", 2.0)
    assert column.made == []
    assert changed.reason("nobody") is None


def test_values_of_a_pool_are_those_of_each_candidate():
    """Asked for all at once, the last evidence by somebody is the same, and 0 is for none."""
    column, pool = scored([0.1, 0.3])
    changed = (
        pool[0].with_evidence("boost", "times", 2.0),
        pool[1].with_evidence("stage", "add", 0.5),
        Candidate(record("i2").item),
    )

    assert values_by(changed, "channel.lexical") == [0.5, 0.5, 0.0]
    assert column.made == []
    for by in ("channel.lexical", "fuse.lexical", "stage", "boost", "nobody"):
        reasons = [cand.reason(by) for cand in changed]
        assert values_by(changed, by) == [reason.value if reason else 0.0 for reason in reasons]


def test_the_evidence_replays_to_the_score():
    """A column is evidence like any other, and what follows it is kept in order."""
    _, pool = scored([0.1, 0.3])

    last = pool[1].with_evidence("boost", "times", 2.0).with_evidence("late", "add", 0.125)

    assert [reason.by for reason in last.evidence] == [
        "channel.lexical", "fuse.lexical", "stage", "boost", "late",
    ]  # fmt: skip
    assert last.reason("stage") == Evidence("stage", "add", 0.3, "row 1")
    for cand in (*pool, last):
        assert replay(cand.evidence) == cand.score


def test_values_are_made_once_and_shared():
    """Candidates of later steps have the very same values."""
    column, pool = scored([0.1])

    later = pool[0].with_evidence("late", "add", 0.125)

    assert later.evidence[:3] == pool[0].evidence
    assert all(one is other for one, other in zip(later.evidence, pool[0].evidence, strict=False))
    assert column.made == [0]


def test_a_candidate_is_the_same_value_however_its_evidence_is_kept():
    """Comparing, unpacking, copying, printing and sending it show values only."""
    _, (lazy,) = scored([0.1])
    plain = Candidate(lazy.item, 0.35, (*GIVEN, Evidence("stage", "add", 0.1, "row 0")))

    item, score, evidence, passage, relevance = lazy

    assert lazy == plain
    assert plain == lazy
    assert repr(lazy) == repr(plain)
    assert Candidate(item, score, evidence, passage, relevance) == plain
    assert type(lazy.evidence) is type(evidence) is tuple
    assert lazy._replace(score=1.0).evidence == plain.evidence
    assert copy(lazy).evidence == plain.evidence
