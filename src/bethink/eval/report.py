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
from typing import Any

import numpy as np

from bethink.errors import Refused
from bethink.eval.metrics import (
    QUALITY_METRICS,
    RESAMPLES,
    Difference,
    Scores,
    abstention_report,
    compare_scores,
    percentile,
    question_groups,
    recall,
    score_results,
)
from bethink.eval.runner import ProfileResult, QuestionResult, Run
from bethink.eval.tune import ABLATION_SEPARATOR, retriever_statistics, stage_statistics
from bethink.version import __version__

Json = dict[str, Any]

REPORT_FORMAT = 1
# Metrics that differences are reported for: headline, order and completeness.
HEADLINE_METRICS = ("recall@10", "ndcg@10", "all@10", "hit@5")


def build_report(run: Run) -> Json:
    """Build the report of a run."""
    scored = {outcome.label: score_results(outcome.own) for outcome in run.outcomes}
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
    return {
        "name": run.dataset.name,
        "title": run.dataset.title,
        "note": run.dataset.note,
        "level": run.dataset.level,
        "fingerprint": run.fingerprint,
        "cases": run.cases,
        "memories": run.memories,
        "questions": answerable,
        "skipped": run.skipped,
        "unknown": run.unknown,
        "embedder": run.model,
        "seed": run.plan.seed,
        "k": run.plan.depth(run.dataset),
        "resamples": RESAMPLES,
        "stored": run.stored,
        "memories_per_second": run.rate,
    }


def _profile_report(outcome: ProfileResult, scores: Scores, run: Run) -> Json:
    lines = question_groups(scores, run.dataset.groups)
    return {
        "name": outcome.label,
        "quality": {
            name: {
                key: asdict(value) for key, value in scores.estimates(rows, run.plan.seed).items()
            }
            for name, rows in lines.items()
        },
        "abstention": abstention_report(outcome),
        "speed": _speed_report(outcome.own),
        "cost": _cost_report(outcome.own),
        "channels": retriever_statistics(outcome.own),
        "stages": stage_statistics(outcome.own),
        "degraded": sorted({part for result in outcome.own for part in result.degraded}),
        "questions": {
            "keys": list(scores.keys),
            "categories": list(scores.categories),
            "values": {name: scores.column(name).tolist() for name in QUALITY_METRICS},
        },
    }


def _speed_report(results: Sequence[QuestionResult]) -> Json:
    wall = [1000 * result.seconds for result in results]
    busy = [1000 * result.cpu_seconds for result in results]
    return {
        "n": len(results),
        "p50_ms": percentile(wall, 0.5),
        "p95_ms": percentile(wall, 0.95),
        "cpu_p50_ms": percentile(busy, 0.5),
    }


def _cost_report(results: Sequence[QuestionResult]) -> Json:
    """Tokens and recall of an answer within the profile's own limits."""
    judged = [result for result in results if result.relevant]
    if not judged:
        return {"n": 0, "tokens": None, "recall": None, "recall_per_1000_tokens": None}
    tokens = sum(result.tokens for result in judged) / len(judged)
    gained = sum(recall(result.ranked, result.relevant, result.shipped) for result in judged) / len(
        judged
    )
    return {
        "n": len(judged),
        "tokens": tokens,
        "recall": gained,
        "recall_per_1000_tokens": 1000 * gained / tokens if tokens else None,
    }


def _comparisons(labels: Sequence[str], scored: dict[str, Scores], run: Run) -> list[Json]:
    """Compare every profile with the first, in pairs of the same question."""
    rows = []
    for label in labels[1:]:
        for name in HEADLINE_METRICS:
            found = compare_scores(scored[labels[0]], scored[label], name, run.plan.seed)
            if found is not None:
                rows.append(
                    {"base": labels[0], "profile": label, "metric": name, **_difference_json(found)}
                )
    return rows


def _ablation_report(outcome: ProfileResult, scored: dict[str, Scores], run: Run) -> Json:
    whole, _, part = outcome.label.partition(ABLATION_SEPARATOR)
    base = next(other for other in run.outcomes if other.label == whole)
    changes = {
        name: _difference_json(found)
        for name in HEADLINE_METRICS
        if (found := compare_scores(scored[whole], scored[outcome.label], name, run.plan.seed))
    }
    return {
        "profile": whole,
        "part": part,
        "n": len(scored[outcome.label].keys),
        "changes": changes,
        "p50_ms": _speed_report(outcome.own)["p50_ms"],
        "p50_ms_change": _speed_report(outcome.own)["p50_ms"] - _speed_report(base.own)["p50_ms"],
        "abstention": _abstention_summary(abstention_report(outcome)),
    }


def _abstention_summary(account: Json) -> Json:
    return {
        "lost_share": account["lost_share"],
        "kinds": [
            {key: value for key, value in kind.items() if key not in ("scores", "sureness")}
            for kind in account["kinds"]
        ],
    }


def _difference_json(found: Any) -> Json:
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
    """Compare every profile that both reports have.

    Worse is a loss of more than ``tolerance`` that is unlikely to be noise.
    """
    now, before = current["measured_on"], earlier["measured_on"]
    if (now["name"], now["level"]) != (before["name"], before["level"]):
        raise Refused(f"{file} was measured on {before['title']}, not on {now['title']}")
    same = now["fingerprint"] == before["fingerprint"]
    rows = list(_comparison_rows(current, earlier, tolerance))
    if not rows:
        raise Refused(f"{file} shares no profile and question with this run")
    questions = "the same questions" if same else "the questions that both runs share"
    return {
        "file": file,
        "tolerance": tolerance,
        "rows": rows,
        "worse": sum(row["verdict"] == WORSE for row in rows),
        "note": f"{questions}; then seed {before['seed']} and embedder {before['embedder']}",
    }


def _comparison_rows(current: Json, earlier_report: Json, tolerance: float) -> Iterator[Json]:
    earlier = {
        profile["name"]: _scores_from_report(profile) for profile in earlier_report["profiles"]
    }
    for profile in current["profiles"]:
        if profile["name"] not in earlier:
            continue
        for name in HEADLINE_METRICS:
            found = compare_scores(
                earlier[profile["name"]],
                _scores_from_report(profile),
                name,
                current["measured_on"]["seed"],
            )
            if found is not None:
                yield {
                    "profile": profile["name"],
                    "metric": name,
                    **asdict(found),
                    "significant": found.is_significant,
                    "verdict": _verdict(found, tolerance),
                }


def _verdict(found: Difference, tolerance: float) -> str:
    if not found.is_significant or abs(found.value) <= tolerance:
        return "equal"
    return "better" if found.value > 0 else WORSE


def _scores_from_report(profile: Json) -> Scores:
    kept = profile["questions"]
    names = tuple(kept["values"])
    columns = [kept["values"][name] for name in names]
    return Scores(
        keys=tuple(kept["keys"]),
        categories=tuple(kept["categories"]),
        values=np.asarray(columns, dtype=np.float64).T.reshape(len(kept["keys"]), len(names)),
        metrics=names,
    )
