"""Questions of strangers, and questions in disguise."""

from __future__ import annotations

from bethink.eval.case import Case, Question, proper_names, replace_names, sample_foreign_questions
from bethink.model import Draft


def case(name: str, *texts: str) -> Case:
    questions = tuple(Question(f"{name}{n}", text, {"u": 1.0}) for n, text in enumerate(texts))
    return Case(name, questions)


def test_strangers_never_come_from_the_memory_itself():
    """Only other cases' questions are drawn, and none of them has an answer here."""
    cases = [case("a", "one?", "two?"), case("b", "three?", "four?")]

    drawn = sample_foreign_questions(cases, cases[0], 10, 7)

    assert sorted(question.text for question in drawn) == ["four?", "three?"]
    assert not any(question.answerable for question in drawn)


def test_the_same_seed_draws_the_same_strangers():
    """Drawing is repeatable."""
    cases = [case("a", "x?"), case("b", *(f"question {n}" for n in range(50)))]

    assert sample_foreign_questions(cases, cases[0], 5, 7) == sample_foreign_questions(
        cases, cases[0], 5, 7
    )
    assert sample_foreign_questions(cases, cases[0], 5, 7) != sample_foreign_questions(
        cases, cases[0], 5, 8
    )


def test_names_of_strangers_become_names_that_are_known():
    """Proper names change, question words and dates stay."""
    question = Question("q", "When did Caroline meet Melanie in May?", {})

    hidden = replace_names(question, ["Jon", "Gina"])

    assert hidden.text == "When did Jon meet Gina in May?"


def test_speakers_lead_the_names_of_a_memory():
    """Speakers come first, roles are no names, then what is capitalised inside sentences."""
    drafts = [
        Draft("We met Zoltan on Monday and Zoltan smiled", speaker="Ada"),
        Draft("Then we saw Quentin", speaker="assistant"),
    ]

    assert proper_names(drafts) == ["Ada", "Zoltan", "Quentin"]
