"""Whether what answers say of themselves comes true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.eval.html import reliability_diagram
from bethink.eval.metrics import JudgedAnswers, calibration, judged_answers
from bethink.eval.runner import ProfileResult, QuestionResult
from bethink.retrieval.profile import load_profile

LEVELS = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)


def answers(*rows: tuple[float, bool], answerable: bool = True) -> JudgedAnswers:
    said, right = zip(*rows, strict=True)
    return JudgedAnswers(said, right, (answerable,) * len(rows))


def asked(
    key: str, ranked: str, relevant: str, confidence: float | None, **other
) -> QuestionResult:
    values = {"offered": tuple(ranked), "status": "found" if ranked else "nothing_matched"}
    values.update(other)
    return QuestionResult(
        key=key, category="", relevant=dict.fromkeys(relevant, 1.0), ranked=tuple(ranked),
        confidence=confidence, case="c", best=None, tokens=0, seconds=0.0, cpu_seconds=0.0,
        degraded=(), looks=(), **values,
    )  # fmt: skip


def test_what_comes_true_as_often_as_it_was_said_has_no_error():
    """Of ten answers at 0.3 three are right: the error is zero."""
    found = calibration(answers(*[(0.3, place < 3) for place in range(10)]))

    assert found["ece"] == pytest.approx(0.0)


def test_the_error_is_the_mean_distance_over_bins_of_equal_weight():
    """Half of the answers say 0.9 and are wrong, half say 0.1 and are wrong: 0.5 on average."""
    rows = [(0.9, False)] * 50 + [(0.1, False)] * 50

    found = calibration(answers(*rows))

    assert found["ece"] == pytest.approx(0.5)
    assert [one["share"] for one in found["bins"]] == pytest.approx([0.1] * 10)


@pytest.mark.parametrize("times", [1, 3, 20])
def test_how_many_have_no_answer_does_not_matter(times):
    """Questions with and without an answer weigh the same, however many were asked."""
    yes = answers((0.9, True), (0.6, True), (0.4, False))
    no = answers(*[(0.7, False), (0.1, False)] * times, answerable=False)

    found, once = (
        calibration(yes + no),
        calibration(yes + answers((0.7, False), (0.1, False), answerable=False)),
    )

    assert found["ece"] == pytest.approx(once["ece"])
    assert found["auc"] == pytest.approx(once["auc"])


@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.booleans()), min_size=1, max_size=60),
       st.randoms())  # fmt: skip
def test_the_order_of_answers_does_not_matter(rows, random):
    """Equal confidences are equally right, whoever comes first."""
    shuffled = random.sample(rows, len(rows))

    first, again = calibration(answers(*rows)), calibration(answers(*shuffled))

    assert first["ece"] == pytest.approx(again["ece"])
    assert sum(one["share"] for one in first["bins"]) == pytest.approx(1.0)
    assert 0.0 <= first["ece"] <= 1.0


def test_auc_is_of_answerable_questions_against_the_others():
    """All answerable above all others: 1; without others there is nothing to compare."""
    yes = answers((0.8, True), (0.7, False))
    no = answers((0.2, False), (0.6, False), answerable=False)

    assert calibration(yes + no)["auc"] == 1.0
    assert calibration(yes)["auc"] is None
    assert calibration(JudgedAnswers()) is None


def test_a_silent_answer_is_judged_by_what_it_withheld():
    """Its confidence is about those; an answer that was given by what it shows."""
    own = [
        asked("silent but right", "", "a", 0.1, offered=("x", "a")),
        asked("silent and right so", "", "a", 0.1, offered=("x", "y")),
        asked("cut away", "x", "a", 0.6, offered=("x", "a")),
    ]

    judged = judged_answers(ProfileResult(load_profile("default"), "p", own))

    assert judged.right == (True, False, False)
    assert judged.answerable == (True, True, True)


def test_every_kind_without_an_answer_counts_once():
    """Foreign ones and those without their memories count; in disguise they would count twice."""
    foreign = {
        "foreign": [asked("f", "x", "", 0.4)],
        "foreign, names replaced": [asked("f", "x", "", 0.5)],
        "answer taken out": [asked("n", "x", "", 0.6), asked("no estimate", "x", "", None)],
    }

    judged = judged_answers(ProfileResult(load_profile("default"), "p", [], foreign))

    assert judged.confidence == (0.4, 0.6)
    assert not any(judged.right)


def test_the_diagram_has_a_point_for_every_bin():
    """One circle for each bin inside the frame, and nothing that loads or runs."""
    found = calibration(answers(*[(place / 100, place % 3 == 0) for place in range(100)]))

    drawn = reliability_diagram("<p>", found)

    assert drawn.count("<circle") == len(found["bins"])
    assert "&lt;p&gt;" in drawn
    assert "nan" not in drawn
