"""Ranking metrics, scores per question, bootstrap intervals, abstention and calibration.

``ranked`` holds units, best first, each once; ``relevant`` maps the relevant units to
their gains. A name like ``recall@10`` is a function and its cutoff. Resampling is
seeded: the same values and the same seed give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.eval.runner import FOREIGN, Judged, ProfileResult, QuestionResult

Ranked = Sequence[str]
Gains = Mapping[str, float]
Metric = Callable[[Ranked, Gains], float]

QUALITY_METRICS = (
    "recall@5", "recall@10", "hit@1", "hit@3", "hit@5", "hit@10", "all@5", "all@10", "ndcg@10",
    "mrr", "precision@5", "precision@10",
)  # fmt: skip


def recall(ranked: Ranked, relevant: Gains, cutoff: int) -> float:
    """Share of the relevant units among the first ``cutoff``."""
    return _count_found(ranked, relevant, cutoff) / len(relevant)


def hit(ranked: Ranked, relevant: Gains, cutoff: int) -> float:
    """1 if any relevant unit is among the first ``cutoff``."""
    return float(_count_found(ranked, relevant, cutoff) > 0)


def all_found(ranked: Ranked, relevant: Gains, cutoff: int) -> float:
    """1 if every relevant unit is among the first ``cutoff``."""
    return float(_count_found(ranked, relevant, cutoff) == len(relevant))


def precision(ranked: Ranked, relevant: Gains, cutoff: int) -> float:
    """Share of relevant ones among the first ``cutoff`` returned; a short answer is no fault."""
    returned = min(cutoff, len(ranked))
    return _count_found(ranked, relevant, cutoff) / returned if returned else 0.0


def ndcg(ranked: Ranked, relevant: Gains, cutoff: int) -> float:
    """Normalised discounted cumulative gain, with linear gains."""
    gained = sum(
        relevant.get(unit, 0.0) / math.log2(place + 1)
        for place, unit in enumerate(ranked[:cutoff], start=1)
    )
    best = sum(
        gain / math.log2(place + 1)
        for place, gain in enumerate(sorted(relevant.values(), reverse=True)[:cutoff], start=1)
    )
    return gained / best


def mrr(ranked: Ranked, relevant: Gains, cutoff: int) -> float:
    """Reciprocal rank of the first relevant unit; ``cutoff`` 0 means no cutoff."""
    for place, unit in enumerate(ranked[:cutoff] if cutoff else ranked, start=1):
        if unit in relevant:
            return 1.0 / place
    return 0.0


def newer_first(result: Judged) -> float:
    """1 if a relevant unit was returned and stands above every outdated one."""
    for unit in result.ranked:
        if unit in result.relevant:
            return 1.0
        if unit in result.outdated:
            return 0.0
    return 0.0


_FUNCTIONS: dict[str, Callable[[Ranked, Gains, int], float]] = {
    "recall": recall,
    "hit": hit,
    "all": all_found,
    "precision": precision,
    "ndcg": ndcg,
    "mrr": mrr,
}


@cache
def get_metric(name: str) -> Metric:
    """Return the metric of a name: ``recall@10``, ``all@5``, ``mrr``."""
    kind, _, digits = name.partition("@")
    function = _FUNCTIONS.get(kind)
    if function is None or (digits and not digits.isdecimal()) or (not digits and kind != "mrr"):
        allowed = ", ".join(f"{known}@10" for known in _FUNCTIONS)
        raise Refused(f"unknown metric {name!r}", remedy=f"for example {allowed}")
    cut = int(digits or 0)
    return lambda ranked, relevant: function(ranked, relevant, cut)


def _count_found(ranked: Ranked, relevant: Gains, cutoff: int) -> int:
    return sum(1 for unit in ranked[:cutoff] if unit in relevant)


Values = NDArray[np.float64]

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, its 95 % interval, and the sample size."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Paired difference between ``before`` and ``after`` on the same questions.

    ``p`` is two-sided: how often a resample's difference lies on the other side of zero.
    Below 0.05 it is significant.
    """

    before: float
    after: float
    value: float
    low: float
    high: float
    p: float
    n: int

    @property
    def is_significant(self) -> bool:
        return self.p < 0.05


def bootstrap_means(values: Values, seed: int) -> Values:
    """Bootstrap means: one row per resample, one column per metric."""
    table = values.reshape(len(values), -1)
    n = len(table)
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES)
    result: Values = draws @ table / n
    return result


def estimates(values: Values, seed: int) -> list[Estimate]:
    """One estimate per column; none where there is no row."""
    if not len(values):
        return []
    drawn = bootstrap_means(values, seed)
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    centre = values.reshape(len(values), -1).mean(axis=0)
    return [
        Estimate(float(value), float(below), float(above), len(values))
        for value, below, above in zip(centre, low, high, strict=True)
    ]


def paired_difference(before: Values, after: Values, seed: int) -> Difference:
    """Paired difference of two lists of values for the same questions."""
    if len(before) != len(after) or not len(before):
        raise ValueError("a paired comparison needs the same questions twice, at least one")
    gains = after - before
    drawn = bootstrap_means(gains, seed)[:, 0]
    low, high = np.percentile(drawn, (2.5, 97.5))
    # Add one above and below, so that no finite number of resamples claims certainty.
    below = (np.count_nonzero(drawn <= 0.0) + 1) / (RESAMPLES + 1)
    above = (np.count_nonzero(drawn >= 0.0) + 1) / (RESAMPLES + 1)
    return Difference(
        before=float(before.mean()),
        after=float(after.mean()),
        value=float(gains.mean()),
        low=float(low),
        high=float(high),
        p=float(min(1.0, 2 * min(below, above))),
        n=len(gains),
    )


def auc(positives: Sequence[float], negatives: Sequence[float]) -> float | None:
    """Probability that a positive scores above a negative, ties counting half; None without any."""
    if not positives or not negatives:
        return None
    ordered = np.sort(np.asarray(negatives, dtype=np.float64))
    values = np.asarray(positives, dtype=np.float64)
    under = np.searchsorted(ordered, values, side="left")
    upto = np.searchsorted(ordered, values, side="right")
    return float((under + upto).mean() / 2 / len(ordered))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the values lie."""
    return float(np.percentile(np.asarray(values, dtype=np.float64), share * 100))


Rows = NDArray[np.intp]

ALL = "all"


@dataclass(frozen=True)
class Scores:
    """Scores of the answerable questions of one profile. ``keys`` pair two profiles."""

    keys: tuple[str, ...]
    categories: tuple[str, ...]
    values: Values
    metrics: tuple[str, ...] = QUALITY_METRICS

    def column(self, name: str) -> Values:
        """One metric's value for every question."""
        column: Values = self.values[:, self.metrics.index(name)]
        return column

    def estimates(self, rows: Rows | None, seed: int) -> dict[str, Estimate]:
        """Every metric with its interval, over all rows or a selection."""
        chosen = self.values if rows is None else self.values[rows]
        return dict(zip(self.metrics, estimates(chosen, seed), strict=True)) if len(chosen) else {}


def score_results(results: Sequence[Judged]) -> Scores:
    """Score the answerable questions."""
    judged = [result for result in results if result.relevant]
    functions = [get_metric(name) for name in QUALITY_METRICS]
    rows = [
        [function(result.ranked, result.relevant) for function in functions] for result in judged
    ]
    return Scores(
        keys=tuple(result.key for result in judged),
        categories=tuple(result.category for result in judged),
        values=np.asarray(rows, dtype=np.float64).reshape(len(judged), len(QUALITY_METRICS)),
    )


def question_groups(scores: Scores, groups: Mapping[str, Sequence[str]]) -> dict[str, Rows | None]:
    """The rows of a table: all questions, the data set's groups, each category if several occur."""
    names = np.asarray(scores.categories)
    categories = sorted(set(scores.categories) - {""})
    members = dict(groups)
    if len(categories) > 1:
        members.update({name: (name,) for name in categories})
    lines: dict[str, Rows | None] = {ALL: None}
    for name, of in members.items():
        lines[name] = np.flatnonzero(np.isin(names, list(of)))
    return lines


def compare_scores(before: Scores, after: Scores, name: str, seed: int) -> Difference | None:
    """Difference of a metric on the questions that both have; None without any."""
    places = {key: place for place, key in enumerate(after.keys)}
    shared = [(old, places[key]) for old, key in enumerate(before.keys) if key in places]
    if not shared:
        return None
    old, new = (np.asarray(side) for side in zip(*shared, strict=True))
    return paired_difference(before.column(name)[old], after.column(name)[new], seed)


TRUE_HIT_CUTOFF = 10
OWN_UNANSWERABLE = "own without an answer"


def abstention_report(outcome: ProfileResult) -> Json:
    """Abstention statistics: correct abstentions, and true hits lost.

    A true hit is an answerable question with a relevant unit among the first ten before
    the gate. It is silenced when the answer is empty, and lost when none of them is in it.
    """
    answerable = [result for result in outcome.own if result.relevant]
    true_hits = [result for result in answerable if _has_relevant(result, result.offered)]
    lost = [result for result in true_hits if not _has_relevant(result, result.ranked)]
    silenced = [result for result in lost if result.is_silent]
    kinds = {
        OWN_UNANSWERABLE: [result for result in outcome.own if not result.relevant],
        **outcome.foreign,
    }
    return {
        "true_hits": len(true_hits),
        "silenced": len(silenced),
        "silenced_share": _share(len(silenced), len(true_hits)),
        "lost": len(lost),
        "lost_share": _share(len(lost), len(true_hits)),
        "kinds": [
            {"kind": name, **status_shares(results)} for name, results in kinds.items() if results
        ],
    }


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def status_shares(results: Sequence[QuestionResult]) -> Json:
    """How many answers were given as found, as unsure, and not at all."""
    silent = sum(result.is_silent for result in results)
    found = sum(result.is_found for result in results)
    n = len(results)
    return {
        "n": n,
        "silent": silent,
        "found_share": _share(found, n),
        "unsure_share": _share(n - found - silent, n),
        "silent_share": _share(silent, n),
    }


def _has_relevant(result: QuestionResult, units: Sequence[str]) -> bool:
    return any(unit in result.relevant for unit in units[:TRUE_HIT_CUTOFF])


CALIBRATION_BINS = 10
_NO_WEIGHT = 1e-9


@dataclass(frozen=True, slots=True)
class JudgedAnswers:
    """What answers said of themselves, and whether something on the subject was stored."""

    confidence: tuple[float, ...] = ()
    right: tuple[bool, ...] = ()

    def __add__(self, other: JudgedAnswers) -> JudgedAnswers:
        return JudgedAnswers(self.confidence + other.confidence, self.right + other.right)


# Types of questions without an answer that say whether the subject is one of the memory.
_SUBJECTS = {"absent-near": True, "absent-far": False, "absent-alien": False, "irrelevant": False}


def judged_answers(outcome: ProfileResult) -> JudgedAnswers:
    """The answers of one profile to questions of which it is known if their subject is stored.

    It is for own questions with an answer, and not for foreign ones. Of those without an
    answer the type says it; where it does not, and where an answer was taken out, nobody knows.
    """
    known = [(one, True if one.relevant else _SUBJECTS.get(one.category)) for one in outcome.own]
    known += [(one, False) for one in outcome.foreign.get(FOREIGN, ())]
    rated = [
        (result.confidence, stored)
        for result, stored in known
        if stored is not None and result.confidence is not None
    ]
    return JudgedAnswers(tuple(one for one, _ in rated), tuple(stored for _, stored in rated))


def calibration(answers: JudgedAnswers) -> Json | None:
    """Reliability in ten bins of equal weight, ECE and AUC; None without any answer.

    ECE is the mean distance between the confidence and the share whose subject is stored, bin
    by bin. Questions whose subject is stored and others have half of the weight each: how many
    of either were asked says nothing about the answers. Equal confidences count as equally
    right, so that their order does not matter.
    """
    if not answers.confidence:
        return None
    known = np.asarray(answers.right)
    weights = _balanced_weights(known)
    levels, place = np.unique(np.asarray(answers.confidence), return_inverse=True)
    mass: Values = np.bincount(place, weights=weights).astype(np.float64)
    right = np.bincount(place, weights=weights * known) / mass
    bins = _reliability_bins(levels, right, mass)
    said = np.asarray(answers.confidence, dtype=np.float64)
    return {
        "n": len(said),
        "on_subject": int(known.sum()),
        "ece": sum(one["share"] * abs(one["confidence"] - one["right"]) for one in bins),
        "auc": auc(said[known].tolist(), said[~known].tolist()),
        "bins": bins,
    }


def _balanced_weights(known: NDArray[np.bool_]) -> Values:
    """Weights that sum up to 1, half of it for either kind where there are both."""
    counts = np.asarray([np.count_nonzero(~known), np.count_nonzero(known)])
    kinds = np.count_nonzero(counts)
    weights: Values = 1.0 / (kinds * counts[known.astype(np.intp)])
    return weights


def _reliability_bins(levels: Values, right: Values, mass: Values) -> list[dict[str, float]]:
    """Ten bins of equal weight over sorted confidences; one may be shared by two bins."""
    ends = np.cumsum(mass)
    starts = ends - mass
    bins = []
    for number in range(CALIBRATION_BINS):
        low, high = number / CALIBRATION_BINS, (number + 1) / CALIBRATION_BINS
        part = np.clip(np.minimum(ends, high) - np.maximum(starts, low), 0.0, None)
        inside = np.flatnonzero(part > _NO_WEIGHT)
        if len(inside):
            share = float(part.sum())
            bins.append(
                {
                    "share": share,
                    "low": float(levels[inside[0]]),
                    "high": float(levels[inside[-1]]),
                    "confidence": float(part @ levels) / share,
                    "right": float(part @ right) / share,
                }
            )
    return bins
