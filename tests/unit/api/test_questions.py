"""Saved questions: one for the same words, seen by those who may, measured by `bethink eval`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bethink import Memory
from bethink.access.people import Directory
from bethink.access.policy import Right
from bethink.api import questions
from bethink.config.settings import Settings
from bethink.errors import NotFound, Refused
from bethink.eval.datasets.jsonl import saved_dataset
from bethink.people import seen_by


def test_a_question_is_kept_once_with_what_was_said_last(memory: Memory) -> None:
    """The same words replace; an unknown memory, no words and a wrong filter are refused."""
    item = memory.remember("The deploy key is in vault B").id
    memory.save_question("who is on call?")
    memory.save_question(" where is the key? ", relevant=[item[:12]], filters={"kind": "fact"})
    memory.save_question("where is the key?", wrong=[item])

    last, first = memory.questions()
    assert (last.query, last.relevant, last.wrong) == ("where is the key?", None, [item])
    assert (first.query, first.filters) == ("who is on call?", {})
    for query, wrong in (
        (" ", {}),
        ("q", {"relevant": ["no-such-id"]}),
        ("q", {"filters": {"x": 1}}),
    ):
        with pytest.raises((Refused, NotFound)):
            memory.save_question(query, **wrong)
    memory.drop_question("who is on call?")
    with pytest.raises(NotFound):
        memory.drop_question("who is on call?")
    assert [one.query for one in memory.questions()] == ["where is the key?"]


def test_a_question_names_no_memory_that_was_erased_or_is_above_the_ceiling(
    memory: Memory,
) -> None:
    gone, raised = memory.remember("The mill is sold").id, memory.remember("The dam leaks").id
    memory.below(1).save_question("what happened?", relevant=[gone, raised], wrong=[gone])
    memory.forget(gone, erase=True)
    memory.update(raised, classification=2)

    named = [(one.relevant, one.wrong) for m in (memory, memory.below(1)) for one in m.questions()]
    assert named == [([raised], []), ([], [])]
    assert gone not in str(memory.store.admin.questions())


def test_questions_of_others_and_above_the_ceiling_are_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each person has their own; who sees less neither sees nor changes what was asked above."""
    monkeypatch.setattr(questions, "MAX_QUESTIONS", 2)
    settings = Settings(data_dir=tmp_path / "data", embedder="none", actor="http")
    directory = Directory(tmp_path)
    for name in ("anna", "ben"):
        directory.add(name, "team", "writer" if name == "ben" else "owner")
    with Memory.open("team", settings=settings) as space:
        high = space.using(settings=replace(space.settings, max_classification=3))
        anna, ben = (seen_by(space, name, directory, Right.ADMIN) for name in ("anna", "ben"))
        high.save_question("what is secret?")
        anna.save_question("which flat?")
        space.save_question("what is secret?")
        space.save_question("when is the release?")
        with pytest.raises(Refused):
            space.save_question("one too many?")
        space.drop_question("what is secret?")

        assert [one.query for one in space.questions()] == ["when is the release?"]
        told = [one.query for one in high.questions()]
        assert told == ["when is the release?", "what is secret?"]
        assert [one.query for one in anna.questions()] == ["which flat?"]
        assert ben.questions() == []


def test_judged_questions_are_a_data_set(memory: Memory) -> None:
    """Those with marked answers, also where nothing stored answers; the others are left out."""
    item = memory.remember("The deploy key is in vault B").id
    memory.save_question("not judged yet?")
    with pytest.raises(Refused):
        saved_dataset("work", memory.questions())
    memory.save_question("where is the key?", relevant=[item], filters={"kind": "fact"})
    memory.save_question("who is the king?", relevant=[])
    (case,) = saved_dataset("work", memory.questions()).cases()

    asked = {one.text: (dict(one.relevant), dict(one.filters)) for one in case.questions}
    assert asked == {
        "where is the key?": ({item: 1.0}, {"kind": "fact"}),
        "who is the king?": ({}, {}),
    }
    assert (case.space, all(one.now for one in case.questions)) == ("work", True)
