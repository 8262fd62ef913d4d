"""Questions of strangers, and questions in disguise."""

from __future__ import annotations

from bethink.eval.case import Case, Question, sample_foreign_questions


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
