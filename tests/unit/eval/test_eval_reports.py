"""From answers to a report: tables, a page, a comparison with an earlier one."""

from __future__ import annotations

import copy
import dataclasses
import json

import pytest

from bethink.errors import Refused
from bethink.eval.case import Dataset
from bethink.eval.metrics import Difference
from bethink.eval.report import build_report, compare_reports, read_report
from bethink.eval.runner import ProfileResult, QuestionResult, Run, RunPlan
from bethink.eval.tables import headline, report_tables
from bethink.eval.tune import TuneResult, tune_verdict
from bethink.render.wire import dumps
from bethink.retrieval.profile import load_profile

NASTY = "<script>alert('x')</script> & \"co\""


def asked(key: str, ranked: str, relevant: str = "a", **other) -> QuestionResult:
    values = {
        "category": "even" if len(key) % 2 else "odd",
        "offered": tuple(ranked),
        "status": "found" if ranked else "nothing_matched",
        "confidence": None,
        "tokens": 100,
        "seconds": 0.01,
        "cpu_seconds": 0.008,
        "degraded": (),
    }
    values.update(other)
    return QuestionResult(
        key=key, relevant=dict.fromkeys(relevant, 1.0), ranked=tuple(ranked), **values
    )


def run_of(*outcomes: ProfileResult) -> Run:
    dataset = Dataset(name="toy", title=f"toy {NASTY}", cases=lambda: iter(()))
    return Run(dataset, RunPlan(), "words", "f00", list(outcomes), cases=1, memories=9)


def outcome(label: str, ranks: list[str]) -> ProfileResult:
    own = [asked(f"q{n}" * (n % 2 + 1), ranked) for n, ranked in enumerate(ranks)]
    own.append(asked("silent", "", relevant=""))
    foreign = {"foreign": [asked("f1", "", relevant=""), asked("f2", "x", relevant="")]}
    return ProfileResult(load_profile("default"), label, own, foreign)


GOOD = ["axyz"] * 30
POOR = ["xyza", "xyzw", "xayz"] * 10


def report_of(ranks: list[str]) -> dict:
    return build_report(run_of(outcome("default", ranks)))


def test_every_figure_says_of_how_many():
    """Quality, speed, cost, abstention: each stands beside its n."""
    profile = report_of(GOOD)["profiles"][0]

    assert profile["quality"]["all"]["recall@10"]["n"] == 30
    assert profile["speed"]["n"] == 31
    assert profile["cost"]["n"] == 30
    assert [kind["n"] for kind in profile["abstention"]["kinds"]] == [1, 2]


def test_a_report_is_strict_json_and_the_same_every_time():
    """No NaN, no numpy type, and equal runs give equal documents."""
    assert json.loads(dumps(report_of(POOR))) == report_of(POOR)


def test_questions_without_an_answer_do_not_count_as_missed():
    """They belong to abstention, not to recall."""
    report = report_of(GOOD)

    assert report["measured_on"]["questions"] == 30
    assert report["profiles"][0]["quality"]["all"]["recall@10"]["value"] == 1.0
    own = report["profiles"][0]["abstention"]["kinds"][0]
    assert (own["kind"], own["silent_share"]) == ("own without an answer", 1.0)


def test_profiles_are_compared_by_pairs_with_the_first():
    """The difference, its interval and whether it may be noise."""
    report = build_report(run_of(outcome("default", GOOD), outcome("other", POOR)))

    rows = {row["metric"]: row for row in report["comparisons"]}
    assert rows["recall@10"]["value"] == pytest.approx(-1 / 3)
    assert rows["recall@10"]["significant"]
    assert (rows["recall@10"]["base"], rows["recall@10"]["profile"]) == ("default", "other")


def test_ablations_stand_apart_from_profiles():
    """A profile without a part is a difference, not another profile."""
    report = build_report(run_of(outcome("default", GOOD), outcome("default without rerank", POOR)))

    assert [profile["name"] for profile in report["profiles"]] == ["default"]
    (entry,) = report["ablations"]
    assert (entry["profile"], entry["part"]) == ("default", "rerank")
    assert entry["changes"]["ndcg@10"]["significant"]


def test_true_hits_lost_to_the_gate_are_counted():
    """Found before the gate, gone after it: lost. Never found: not the gate's fault."""
    lost = asked("q1", "", offered=("x", "a"))
    never = asked("q2", "", offered=("x", "y"))
    kept = asked("q3", "a")
    account = build_report(run_of(ProfileResult(load_profile("default"), "p", [lost, never, kept])))

    found = account["profiles"][0]["abstention"]
    assert (found["true_hits"], found["lost"]) == (2, 1)


def test_without_any_answerable_question_there_is_no_report():
    """Nothing to judge is said, not shown as zero."""
    with pytest.raises(Refused, match="no question has an answer"):
        build_report(
            run_of(ProfileResult(load_profile("default"), "p", [asked("q", "x", relevant="")]))
        )


def test_tables_name_what_was_measured():
    """The headline tells data, counts, embedder and seed."""
    told = headline(report_of(GOOD))

    assert "30 questions" in told
    assert "9 memories" in told
    assert "embedder words" in told
    assert "seed 7" in told


def test_every_table_is_rectangular():
    """Each row has a cell for each heading."""
    report = build_report(
        run_of(outcome("default", GOOD), outcome("b", POOR), outcome("default without gate", POOR))
    )
    report["against"] = compare_reports(report, report, file="old.json", tolerance=0.0)

    for sheet in report_tables(report):
        assert {len(row) for row in sheet.rows} <= {len(sheet.heads)}


def test_worse_is_told_from_noise_and_from_what_is_borne():
    """A significant loss beyond the tolerance is worse; equal runs are equal."""
    then, now = report_of(GOOD), report_of(POOR)

    assert compare_reports(now, then, file="f", tolerance=0.0)["worse"] > 0
    assert compare_reports(now, then, file="f", tolerance=0.9)["worse"] == 0
    assert compare_reports(then, then, file="f", tolerance=0.0)["worse"] == 0
    better = compare_reports(then, now, file="f", tolerance=0.0)
    assert better["worse"] == 0
    assert "better" in {row["verdict"] for row in better["rows"]}


def test_reports_of_other_data_are_not_compared():
    """Two data sets have nothing to be paired by."""
    other = copy.deepcopy(report_of(GOOD))
    other["measured_on"]["name"] = "another"

    with pytest.raises(Refused, match="shares no data set"):
        compare_reports(report_of(GOOD), other, file="f", tolerance=0.0)


@pytest.mark.parametrize("content", ["not json", "[]", '{"format": 99}'])
def test_a_file_that_is_no_report_is_refused(tmp_path, content):
    """What --against is given must have been saved by --save."""
    path = tmp_path / "old.json"
    path.write_text(content)

    with pytest.raises(Refused, match="is not a"):
        read_report(path)


def test_groups_of_categories_have_lines_of_their_own():
    """What published figures are given for stands between the whole and its parts."""
    run = run_of(outcome("default", POOR))
    run.dataset = dataclasses.replace(run.dataset, groups={"only even": ("even",)})

    report = build_report(run)

    quality = report["profiles"][0]["quality"]
    assert list(quality) == ["all", "only even", "even", "odd"]
    assert quality["only even"] == quality["even"]


def tuned(gain: float, p: float, changes=(("a.b.c", 1.0, 2.0),)) -> TuneResult:
    made = Difference(0.5, 0.5 + gain, gain, gain - 0.1, gain + 0.1, p, 40)
    return TuneResult(load_profile("default"), changes, made, made, 9)


def test_the_verdict_on_a_search_is_honest():
    """A gain is told, noise is called noise, and finding nothing is said."""
    assert "it gains +0.200" in tune_verdict(tuned(0.2, 0.01))
    assert "may be noise" in tune_verdict(tuned(0.2, 0.3))
    assert "may be noise" in tune_verdict(tuned(-0.2, 0.01))
    assert "No improvement" in tune_verdict(tuned(0.0, 1.0, ()))
