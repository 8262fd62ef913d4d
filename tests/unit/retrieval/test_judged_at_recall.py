"""Turns to an assistant that no write has compared are judged among the hits of a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from bethink import Memory
from bethink.errors import ModelError, NotFound
from bethink.ports import Embedder, PairVerdict
from bethink.retrieval.stages.diversify import NewerFirst
from bethink.testing import FixedClock

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OLD = "I drink four coffees a day."
NEW = "Two coffees a day is what I drink."
ASKED = "How many coffees a day do I drink?"


class Judge:
    """Says that the later coffee updates the earlier one, of others nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.sure, self.is_broken = 0.8, False

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        assert pairs, "for nothing the model is not loaded"
        self.asked += pairs
        if self.is_broken:
            raise ModelError("the weights are damaged")
        sure = [self.sure if pair == (OLD, NEW) else 0.01 for pair in pairs]
        return [PairVerdict(one, 0.0, 1.0 - one, 0.0) for one in sure]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    told = Judge()
    monkeypatch.setattr("bethink.models.update_model.update_model", told)
    return told


@pytest.fixture
def memory(embedder: Embedder, judge: Judge) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        yield opened


def said(memory: Memory, *texts: str, **about: Any) -> list[str]:
    """Import turns, each of a session and a week of its own, without judging them."""
    turns = [
        {
            "text": text,
            "speaker": "user",
            "session": f"s{place}",
            "occurred_at": datetime(2026, 9, 1 + 7 * place, tzinfo=UTC),
            **about,
        }
        for place, text in enumerate(texts)
    ]
    imported = memory.using(judging=False)
    return [answer.id for answer in imported.remember_many(turns)]


def found(memory: Memory, **about: Any) -> list[str]:
    return [hit.item.id for hit in memory.recall(ASKED, **about).hits]


def test_a_value_that_no_write_has_judged_comes_after_the_newer_one(
    memory: Memory, judge: Judge
) -> None:
    """Without the verdict the older one is first; nothing is stored by asking."""
    old, new = said(memory, OLD, NEW)
    judge.sure = 0.01
    assert found(memory)[0] == old
    judge.sure = 0.8
    memory.remember("The garden gate is green")

    assert found(memory)[:2] == [new, old]
    assert memory.store.graph.links_of([old, new], ("updates", "supersedes")) == []


@pytest.mark.parametrize(
    "about", [{"speaker": "Nora"}, {"speaker": "assistant"}, {"session": "one"}, {"session": None}]
)
def test_only_turns_to_an_assistant_in_other_sessions_are_judged(
    memory: Memory, judge: Judge, about: dict[str, Any]
) -> None:
    """Among people most similar statements are new events; notes are compared when stored."""
    said(memory, OLD, NEW, **about)

    found(memory)

    assert judge.asked == []


def test_a_question_has_few_pairs_judged(memory: Memory, judge: Judge) -> None:
    """However many turns are about the same."""
    said(memory, *(f"I drink {count} coffees a day." for count in (2, 3, 4)))
    assert len(found(memory)) == 3
    assert len(judge.asked) <= NewerFirst().pairs


@pytest.mark.parametrize("relation", ["updates", "supersedes"])
def test_what_a_caller_says_is_no_update_is_not_judged_again(
    memory: Memory, judge: Judge, relation: str
) -> None:
    """Though no link is there to be removed; between notes that is an error as before."""
    old, new = said(memory, OLD, NEW)
    notes = said(memory, "The gate is green", "The gate is red", session=None)
    assert found(memory)[0] == new

    memory.unlink(new, relation, old)

    assert found(memory)[0] == old
    with pytest.raises(NotFound):
        memory.unlink(notes[1], relation, notes[0])


def test_to_undo_what_was_said_of_two_makes_no_link(memory: Memory, judge: Judge) -> None:
    """The two are judged again, as before; what was never an update does not become one."""
    old, new = said(memory, OLD, NEW)
    memory.unlink(new, "updates", old)
    assert found(memory)[0] == old

    memory.undo(new)

    assert memory.links(new) == []
    assert found(memory)[0] == new
    assert memory.undo(new).change.kind != "unlinked"


def test_of_entities_there_is_no_verdict_to_take_back(memory: Memory) -> None:
    """They are no turns of a chat."""
    names = "person:ana torres", "person:bo lind"
    memory.remember("Ana Torres works with Bo Lind", entities=names)

    with pytest.raises(NotFound):
        memory.unlink(names[0], "updates", names[1])


def test_untrusted_turns_do_not_decide_what_is_judged(memory: Memory, judge: Judge) -> None:
    """However many fit the question better than what is trusted."""
    planted = [f"{count} coffees a day: how many coffees a day I drink." for count in "56789"]
    said(memory, *planted, trust=0)
    old, new = said(memory, OLD, NEW)

    answer = found(memory)

    assert answer.index(new) < answer.index(old)
    assert set(judge.asked) == {(OLD, NEW)}


def test_a_model_that_fails_stops_no_recall(memory: Memory, judge: Judge) -> None:
    """The order is then that of the scores."""
    old, _ = said(memory, OLD, NEW)
    judge.is_broken = True

    assert found(memory)[0] == old
