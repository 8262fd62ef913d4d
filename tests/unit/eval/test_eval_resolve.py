"""Finding the memories that a question means."""

from __future__ import annotations

from bethink.eval.case import Question
from bethink.eval.spaces import resolve_references

TEXTS = {"m1": "The Kite is  red", "m2": "the boat is blue", "m3": "a red boat"}


def relevant(*wanted: str) -> list[dict]:
    asked = Question("q", "?", dict.fromkeys(wanted, 1.0))
    return [dict(question.relevant) for question in resolve_references((asked,), TEXTS)[0]]


def test_ids_and_parts_of_texts_both_find_their_memories():
    """An id stands for itself, any other entry for every text that holds it."""
    assert relevant("m1") == [{"m1": 1.0}]
    assert relevant("kite IS red") == [{"m1": 1.0}]
    assert relevant("m2", "red") == [{"m1": 1.0, "m2": 1.0, "m3": 1.0}]


def test_what_is_nowhere_leaves_the_question_out():
    """A question none of whose answers exists cannot be judged; one without any can."""
    assert relevant("nothing like it") == []
    assert relevant() == [{}]


def test_what_no_memory_is_or_holds_is_named_with_its_question():
    """Ids and texts that are there are not."""
    asked = Question("q7", "which boat?", dict.fromkeys(["m2", "blue", "m9", "a green boat"], 1.0))

    assert resolve_references((asked,), TEXTS)[1] == (
        "'m9' of q7: which boat?",
        "'a green boat' of q7: which boat?",
    )
    assert resolve_references((), TEXTS) == ((), ())
