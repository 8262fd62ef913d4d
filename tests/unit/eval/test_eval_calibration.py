"""Whether what answers say of themselves comes true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.eval.metrics import JudgedAnswers, calibration, judged_answers
from bethink.eval.runner import ProfileResult, QuestionResult
from bethink.retrieval.profile import load_profile

LEVELS = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)


def answers(*rows: tuple[float, bool]) -> JudgedAnswers:
    said, right = zip(*rows, strict=True)
    return JudgedAnswers(said, right)


def asked(
    key: str, ranked: str, relevant: str, confidence: float | None, **other
) -> QuestionResult:
    values = {
        "category": "",
        "offered": tuple(ranked),
        "status": "found" if ranked else "nothing_matched",
    }
    values.update(other)
    return QuestionResult(
        key=key, relevant=dict.fromkeys(relevant, 1.0), ranked=tuple(ranked),
        confidence=confidence, tokens=0, seconds=0.0, cpu_seconds=0.0,
        degraded=(), **values,
    )  # fmt: skip


def test_what_comes_true_as_often_as_it_was_said_has_no_error():
    """Either kind has half of the weight: who says 0.5 of all is right as often."""
    found = calibration(answers(*[(0.5, place < 3) for place in range(10)]))

    assert found["ece"] == pytest.approx(0.0)


def test_the_error_is_the_mean_distance_over_bins_of_equal_weight():
    """Half of them say 0.9, half say 0.1, and nothing of it is stored: 0.5 on average."""
    rows = [(0.9, False)] * 50 + [(0.1, False)] * 50

    found = calibration(answers(*rows))

    assert found["ece"] == pytest.approx(0.5)
    assert [one["share"] for one in found["bins"]] == pytest.approx([0.1] * 10)


@pytest.mark.parametrize("times", [1, 3, 20])
def test_how_many_are_foreign_does_not_matter(times):
    """Questions on stored and on other subjects weigh the same, however many were asked."""
    yes = answers((0.9, True), (0.6, True), (0.4, True))
    no = answers(*[(0.7, False), (0.1, False)] * times)

    found, once = (
        calibration(yes + no),
        calibration(yes + answers((0.7, False), (0.1, False))),
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


def test_auc_is_of_stored_subjects_against_the_others():
    """All of them above all others: 1; without others there is nothing to compare."""
    yes = answers((0.8, True), (0.7, True))
    no = answers((0.2, False), (0.6, False))

    assert calibration(yes + no)["auc"] == 1.0
    assert calibration(yes)["auc"] is None
    assert calibration(JudgedAnswers()) is None


def test_calibration_counts_where_the_subject_is_known():
    """Answerable and near ones are on a stored subject; far and foreign ones are not."""
    own = [
        asked("answered", "x", "a", 0.9),
        asked("near", "x", "", 0.8, category="absent-near"),
        asked("far", "x", "", 0.3, category="absent-far"),
        asked("of another type", "x", "", 0.7, category="unanswerable"),
        asked("no estimate", "x", "a", None),
    ]
    foreign = {
        "foreign": [asked("f", "x", "", 0.4)],
        "answer taken out": [asked("n", "x", "", 0.6)],
    }

    judged = judged_answers(ProfileResult(load_profile("default"), "p", own, foreign))

    assert judged.confidence == (0.9, 0.8, 0.3, 0.4)
    assert judged.right == (True, True, False, False)
