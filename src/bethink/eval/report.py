"""The evaluation report as one JSON document, and its comparison with an earlier one.

``measured_on`` describes what was stored and queried, ``profiles`` holds each
profile's figures with their sample sizes, ``comparisons`` and ``ablations`` the
paired differences. ``questions`` keeps the value of every question, so that a later
run can be compared in pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.eval import metrics
from bethink.eval.runner import Judged, ProfileResult, QuestionResult, Run
from bethink.eval.tune import ABLATION_SEPARATOR
from bethink.version import __version__

REPORT_FORMAT = 2
# Metrics that differences are reported for: headline, order and completeness.
HEADLINE_METRICS = ("recall@10", "ndcg@10", "all@10", "hit@5")


def build_report(run: Run) -> Json:
    """Build the report of a run."""
    scored = {outcome.label: metrics.score_results(outcome.own) for outcome in run.outcomes}
    if not any(scores.keys for scores in scored.values()):
        raise Refused(f"{run.dataset.title}: no question has an answer among the memories")
    mains = [outcome for outcome in run.outcomes if ABLATION_SEPARATOR not in outcome.label]
    return {
        "format": REPORT_FORMAT,
        "bethink": __version__,
        "measured_on": _measured_on(run, len(next(iter(scored.values())).keys)),
        "profiles": [_profile_report(outcome, scored[outcome.label], run) for outcome in mains],
        "comparisons": _comparisons([outcome.label for outcome in mains], scored, run),
        "ablations": [
            _ablation_report(outcome, scored, run)
            for outcome in run.outcomes
            if ABLATION_SEPARATOR in outcome.label
        ],
    }


def _measured_on(run: Run, answerable: int) -> Json:
    counts = ("fingerprint", "cases", "memories", "skipped", "unknown", "split", "stored")
    return {
        **{name: getattr(run.dataset, name) for name in ("name", "label", "title", "level")},
        **{name: getattr(run, name) for name in counts},
        **{name: getattr(run.plan, name) for name in ("k", "max_tokens", "seed", "ungated")},
        "questions": answerable,
        "embedder": run.model,
        "as_shipped": run.plan.as_shipped,
        "resamples": metrics.RESAMPLES,
        "memories_per_second": run.rate,
    }


def _profile_report(outcome: ProfileResult, scores: metrics.Scores, run: Run) -> Json:
    lines = metrics.question_groups(scores, run.dataset.groups)
    return {
        "name": outcome.label,
        "quality": {
            name: {
                key: asdict(value) for key, value in scores.estimates(rows, run.plan.seed).items()
            }
            for name, rows in lines.items()
        },
        "types": _type_rows(outcome, scores, run),
        "abstention": metrics.abstention_report(outcome),
        "calibration": metrics.calibration(metrics.judged_answers(outcome)),
        "answers": {
            name: list(kept) for name, kept in asdict(metrics.judged_answers(outcome)).items()
        },
        "limits": {"k": outcome.profile.budget.k, "max_tokens": outcome.profile.budget.max_tokens},
        "speed": _speed_report(outcome.own),
        "cost": _cost_report(outcome.own),
        "degraded": sorted({part for result in outcome.own for part in result.degraded}),
        "questions": {
            "keys": list(scores.keys),
            "categories": list(scores.categories),
            "values": {name: scores.column(name).tolist() for name in metrics.QUALITY_METRICS},
        },
    }


# Metrics of the tables of several sets, and of the baselines.
TYPE_METRICS = ("hit@1", "hit@3", "hit@10", "recall@10", "all@5", "all@10", "ndcg@10")


def _type_rows(outcome: ProfileResult, scores: metrics.Scores, run: Run) -> list[Json]:
    """A row for all questions, each group and each type, those without an answer too."""
    plain = {name: metrics.score_results(results) for name, results in run.baselines.items()}
    rows = [
        _type_row(name, [result for result in outcome.own if _belongs(result, name, run)], run)
        | {
            "quality": _means(scores, keys),
            "baselines": {method: _means(ranked, keys) for method, ranked in plain.items()},
        }
        for name, places in metrics.question_groups(scores, run.dataset.groups).items()
        if (keys := scores.keys if places is None else [scores.keys[place] for place in places])
    ]
    shown = {row["type"] for row in rows}
    absent = dict.fromkeys(result.category for result in outcome.own if not result.relevant)
    for name in absent:
        if name not in shown:
            results = [one for one in outcome.own if one.category == name and not one.relevant]
            rows.append(_type_row(name, results, run) | {"quality": None, "baselines": {}})
    return rows


def _belongs(result: QuestionResult, name: str, run: Run) -> bool:
    members = run.dataset.groups.get(name, (name,))
    return bool(result.relevant) and (name == metrics.ALL or result.category in members)


def _type_row(name: str, results: Sequence[QuestionResult], run: Run) -> Json:
    corrected = {result.key for result in results if result.outdated}
    return {
        "type": name,
        **metrics.status_shares(results),
        "cost": _cost_report(results),
        "newer_first": _newer_first([one for one in results if one.key in corrected]),
        "newer_first_baselines": {
            method: _newer_first([one for one in ranked if one.key in corrected])
            for method, ranked in run.baselines.items()
        },
    }


def _newer_first(results: Sequence[Judged]) -> float | None:
    return sum(map(metrics.newer_first, results)) / len(results) if results else None


def _means(scores: metrics.Scores, keys: Sequence[str]) -> dict[str, float]:
    wanted = set(keys)
    rows = np.asarray([place for place, key in enumerate(scores.keys) if key in wanted])
    if not len(rows):
        return {}
    return {name: float(scores.column(name)[rows].mean()) for name in TYPE_METRICS}


def _speed_report(results: Sequence[QuestionResult]) -> Json:
    wall = [1000 * result.seconds for result in results]
    busy = [1000 * result.cpu_seconds for result in results]
    return {
        "n": len(results),
        "p50_ms": metrics.percentile(wall, 0.5),
        "p95_ms": metrics.percentile(wall, 0.95),
        "cpu_p50_ms": metrics.percentile(busy, 0.5),
    }


def _cost_report(results: Sequence[QuestionResult]) -> Json:
    """Hits and tokens of an answer, the recall of all its hits, and how many are weak.

    ``weak_share`` is that of hits below 5 % relevance, among the hits of found answers.
    """
    judged = [result for result in results if result.relevant]
    found = [result for result in results if result.is_found]
    returned = sum(result.hits for result in found)
    weak = sum(result.weak for result in found) / returned if returned else None
    if not judged:
        empty = dict.fromkeys(("hits", "tokens", "recall", "recall_per_1000_tokens"))
        return {"n": 0, **empty, "weak_share": weak}
    tokens = sum(result.tokens for result in judged) / len(judged)
    gained = sum(
        metrics.recall(result.ranked, result.relevant, len(result.ranked)) for result in judged
    ) / len(judged)
    return {
        "n": len(judged),
        "hits": sum(result.hits for result in judged) / len(judged),
        "weak_share": weak,
        "tokens": tokens,
        "recall": gained,
        "recall_per_1000_tokens": 1000 * gained / tokens if tokens else None,
    }


def _comparisons(labels: Sequence[str], scored: dict[str, metrics.Scores], run: Run) -> list[Json]:
    """Compare every profile with the first, in pairs of the same question."""
    rows = []
    for label in labels[1:]:
        for name in HEADLINE_METRICS:
            found = metrics.compare_scores(scored[labels[0]], scored[label], name, run.plan.seed)
            if found is not None:
                rows.append(
                    {"base": labels[0], "profile": label, "metric": name, **_difference_json(found)}
                )
    return rows


def _ablation_report(outcome: ProfileResult, scored: dict[str, metrics.Scores], run: Run) -> Json:
    whole, _, part = outcome.label.partition(ABLATION_SEPARATOR)
    base = next(other for other in run.outcomes if other.label == whole)
    before, after = scored[whole], scored[outcome.label]
    changes = {
        name: _difference_json(found)
        for name in HEADLINE_METRICS
        if (found := metrics.compare_scores(before, after, name, run.plan.seed))
    }
    return {
        "profile": whole,
        "part": part,
        "n": len(after.keys),
        "changes": changes,
        "p50_ms": _speed_report(outcome.own)["p50_ms"],
        "p50_ms_change": _speed_report(outcome.own)["p50_ms"] - _speed_report(base.own)["p50_ms"],
        "abstention": metrics.abstention_report(outcome),
    }


def combine_reports(reports: Sequence[Json]) -> Json:
    """One document of the reports of several sets, with the calibration of all together."""
    pooled: dict[str, metrics.JudgedAnswers] = {}
    for report in reports:
        for profile in report["profiles"]:
            kept = {key: tuple(one) for key, one in profile["answers"].items()}
            own = metrics.JudgedAnswers(**kept)
            pooled[profile["name"]] = pooled.get(profile["name"], metrics.JudgedAnswers()) + own
    return {
        "format": REPORT_FORMAT,
        "bethink": __version__,
        "sets": list(reports),
        "pooled": [
            {"name": name, "calibration": metrics.calibration(answers)}
            for name, answers in pooled.items()
        ],
    }


def _difference_json(found: metrics.Difference) -> Json:
    return {**asdict(found), "significant": found.is_significant}


WORSE = "worse"


def read_report(path: Path) -> Json:
    """Read a report that an earlier run saved."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise Refused(f"there is no file {path}", remedy="create one with --save FILE") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not a saved report: {error}") from error
    if not isinstance(report, dict) or report.get("format") != REPORT_FORMAT:
        raise Refused(f"{path} is not a report of this version", remedy="measure again with --save")
    return report


def compare_reports(current: Json, earlier: Json, *, file: str, tolerance: float) -> Json:
    """Compare profiles that both have; worse is a loss above ``tolerance`` that is no noise.

    Of documents of several sets, every set that both have.
    """
    before = {_set_of(report): report for report in earlier.get("sets", [earlier])}
    rows: list[Json] = []
    notes: dict[str, None] = {}
    for report in current.get("sets", [current]):
        then = before.get(_set_of(report))
        found = [] if then is None else list(_comparison_rows(report, then, tolerance))
        if then is not None and found:
            name = f"{report['measured_on']['label']}: " if "sets" in current else ""
            rows += [{**row, "profile": f"{name}{row['profile']}"} for row in found]
            notes[_questions_shared(report["measured_on"], then["measured_on"])] = None
    if not rows:
        titles = ", ".join(report["measured_on"]["title"] for report in before.values())
        raise Refused(
            f"{file} shares no data set, profile and question with this run",
            remedy=f"it was measured on {titles}",
        )
    worse = sum(row["verdict"] == WORSE for row in rows)
    note = "; ".join(notes)
    return {"file": file, "tolerance": tolerance, "rows": rows, "worse": worse, "note": note}


def _set_of(report: Json) -> tuple[str, str]:
    return report["measured_on"]["name"], report["measured_on"]["level"]


def _questions_shared(now: Json, before: Json) -> str:
    same = now["fingerprint"] == before["fingerprint"]
    questions = "the same questions" if same else "the questions that both runs share"
    return f"{questions}; then seed {before['seed']} and embedder {before['embedder']}"


def _comparison_rows(current: Json, earlier_report: Json, tolerance: float) -> Iterator[Json]:
    earlier = {
        profile["name"]: _scores_from_report(profile) for profile in earlier_report["profiles"]
    }
    for profile in current["profiles"]:
        if profile["name"] not in earlier:
            continue
        for name in HEADLINE_METRICS:
            found = metrics.compare_scores(
                earlier[profile["name"]],
                _scores_from_report(profile),
                name,
                current["measured_on"]["seed"],
            )
            if found is not None:
                verdict = "better" if found.value > 0 else WORSE
                if not found.is_significant or abs(found.value) <= tolerance:
                    verdict = "equal"
                about = {"profile": profile["name"], "metric": name}
                yield {**about, **_difference_json(found), "verdict": verdict}


def _scores_from_report(profile: Json) -> metrics.Scores:
    kept = profile["questions"]
    names = tuple(kept["values"])
    columns = [kept["values"][name] for name in names]
    return metrics.Scores(
        keys=tuple(kept["keys"]),
        categories=tuple(kept["categories"]),
        values=np.asarray(columns, dtype=np.float64).T.reshape(len(kept["keys"]), len(names)),
        metrics=names,
    )
