"""The report: everything a run measured, as one JSON-ready document.

Each number stands beside what it was measured on and how many there were:
``measured_on`` says what was stored and asked, ``profiles`` holds each profile's
figures, ``comparisons`` and ``ablations`` the paired differences. ``questions``
keeps the value of every question, so that a later run can be compared by pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from recollect.errors import Refused
from recollect.eval.ablation import WITHOUT
from recollect.eval.asking import Asked
from recollect.eval.metrics import QUALITY, recall
from recollect.eval.parts import channels, stages
from recollect.eval.resampling import RESAMPLES, percentile
from recollect.eval.runner import Outcome, Run
from recollect.eval.scoring import Scores, compare, score, views
from recollect.eval.silence import abstention
from recollect.version import __version__

Json = dict[str, Any]

FORMAT = 1
# What differences are given for: the headline, its order, and completeness.
HEADLINES = ("recall@10", "ndcg@10", "all@10", "hit@5")


def build(run: Run) -> Json:
    """The document of a run."""
    scored = {outcome.label: score(outcome.own) for outcome in run.outcomes}
    if not any(scores.keys for scores in scored.values()):
        raise Refused(f"{run.dataset.title}: no question has an answer among the memories")
    mains = [outcome for outcome in run.outcomes if WITHOUT not in outcome.label]
    return {
        "format": FORMAT,
        "recollect": __version__,
        "measured_on": _measured_on(run, len(next(iter(scored.values())).keys)),
        "profiles": [_profile(outcome, scored[outcome.label], run) for outcome in mains],
        "comparisons": _comparisons([outcome.label for outcome in mains], scored, run),
        "ablations": [
            _ablation(outcome, scored, run) for outcome in run.outcomes if WITHOUT in outcome.label
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


def _profile(outcome: Outcome, scores: Scores, run: Run) -> Json:
    lines = views(scores, run.dataset.groups)
    return {
        "name": outcome.label,
        "quality": {
            name: {
                key: asdict(value) for key, value in scores.estimates(rows, run.plan.seed).items()
            }
            for name, rows in lines.items()
        },
        "abstention": abstention(outcome),
        "speed": _speed(outcome.own),
        "cost": _cost(outcome.own),
        "channels": channels(outcome.own),
        "stages": stages(outcome.own),
        "degraded": sorted({part for one in outcome.own for part in one.degraded}),
        "questions": {
            "keys": list(scores.keys),
            "categories": list(scores.categories),
            "values": {name: scores.column(name).tolist() for name in QUALITY},
        },
    }


def _speed(asked: Sequence[Asked]) -> Json:
    wall = [1000 * one.seconds for one in asked]
    busy = [1000 * one.cpu_seconds for one in asked]
    return {
        "n": len(asked),
        "p50_ms": percentile(wall, 0.5),
        "p95_ms": percentile(wall, 0.95),
        "cpu_p50_ms": percentile(busy, 0.5),
    }


def _cost(asked: Sequence[Asked]) -> Json:
    """What an answer of the profile's own size costs a prompt, and what it is worth."""
    judged = [one for one in asked if one.relevant]
    if not judged:
        return {"n": 0, "tokens": None, "recall": None, "recall_per_1000_tokens": None}
    tokens = sum(one.tokens for one in judged) / len(judged)
    gained = sum(recall(one.ranked, one.relevant, one.shipped) for one in judged) / len(judged)
    return {
        "n": len(judged),
        "tokens": tokens,
        "recall": gained,
        "recall_per_1000_tokens": 1000 * gained / tokens if tokens else None,
    }


def _comparisons(labels: Sequence[str], scored: dict[str, Scores], run: Run) -> list[Json]:
    """Every profile against the first, by pairs of the same question."""
    rows = []
    for label in labels[1:]:
        for name in HEADLINES:
            found = compare(scored[labels[0]], scored[label], name, run.plan.seed)
            if found is not None:
                rows.append(
                    {"base": labels[0], "profile": label, "metric": name, **_difference(found)}
                )
    return rows


def _ablation(outcome: Outcome, scored: dict[str, Scores], run: Run) -> Json:
    whole, _, part = outcome.label.partition(WITHOUT)
    base = next(other for other in run.outcomes if other.label == whole)
    changes = {
        name: _difference(found)
        for name in HEADLINES
        if (found := compare(scored[whole], scored[outcome.label], name, run.plan.seed))
    }
    return {
        "profile": whole,
        "part": part,
        "n": len(scored[outcome.label].keys),
        "changes": changes,
        "p50_ms": _speed(outcome.own)["p50_ms"],
        "p50_ms_change": _speed(outcome.own)["p50_ms"] - _speed(base.own)["p50_ms"],
        "abstention": _slim(abstention(outcome)),
    }


def _slim(account: Json) -> Json:
    return {
        "lost_share": account["lost_share"],
        "kinds": [
            {key: value for key, value in kind.items() if key not in ("scores", "sureness")}
            for kind in account["kinds"]
        ],
    }


def _difference(found: Any) -> Json:
    return {**asdict(found), "significant": found.is_significant}
