"""How sure a number is: bootstrap intervals, paired differences, areas under curves.

All seeded: the same values and the same seed give the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, its 95 % interval, and of how many."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more ``after`` is than ``before`` on the same questions.

    ``p`` is two-sided: how often a resample's difference lies on the other side
    of nothing. Below 0.05 it is unlikely to be luck.
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


def means(values: Values, seed: int) -> Values:
    """Means of resamples drawn with replacement: a row a resample, a column a metric."""
    table = values.reshape(len(values), -1)
    n = len(table)
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES)
    result: Values = draws @ table / n
    return result


def estimates(values: Values, seed: int) -> list[Estimate]:
    """One estimate a column; none where there is no row."""
    if not len(values):
        return []
    drawn = means(values, seed)
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    centre = values.reshape(len(values), -1).mean(axis=0)
    return [
        Estimate(float(value), float(below), float(above), len(values))
        for value, below, above in zip(centre, low, high, strict=True)
    ]


def difference(before: Values, after: Values, seed: int) -> Difference:
    """The paired difference of two lists of values for the same questions."""
    if len(before) != len(after) or not len(before):
        raise ValueError("a paired comparison needs the same questions twice, at least one")
    gains = after - before
    drawn = means(gains, seed)[:, 0]
    low, high = np.percentile(drawn, (2.5, 97.5))
    # One is added on top and below, so that no finite number of resamples claims certainty.
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
    """How often a positive scores above a negative, ties counting half.

    None where there is nothing to compare.
    """
    if not positives or not negatives:
        return None
    ordered = np.sort(np.asarray(negatives, dtype=np.float64))
    wanted = np.asarray(positives, dtype=np.float64)
    under = np.searchsorted(ordered, wanted, side="left")
    upto = np.searchsorted(ordered, wanted, side="right")
    return float((under + upto).mean() / 2 / len(ordered))


def silence_at(positives: Sequence[float], negatives: Sequence[float], loss: float) -> float | None:
    """The share of negatives a threshold silences that costs at most ``loss`` of positives."""
    if not positives or not negatives:
        return None
    ordered = np.sort(np.asarray(positives, dtype=np.float64))
    threshold = ordered[int(loss * len(ordered))]
    return float((np.asarray(negatives, dtype=np.float64) < threshold).mean())


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the values lie."""
    return float(np.percentile(np.asarray(values, dtype=np.float64), share * 100))
