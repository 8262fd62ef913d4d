"""Turns what was asked into numbers: a row a question, a column a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.eval.asking import Asked
from recollect.eval.metrics import QUALITY, metric
from recollect.eval.resampling import Difference, Estimate, Values, difference, estimates

Rows = NDArray[np.intp]

ALL = "all"


@dataclass(frozen=True)
class Scores:
    """The answerable questions of one profile, scored. ``keys`` pair two profiles."""

    keys: tuple[str, ...]
    categories: tuple[str, ...]
    values: Values
    metrics: tuple[str, ...] = QUALITY

    def column(self, name: str) -> Values:
        """One metric's value for every question."""
        column: Values = self.values[:, self.metrics.index(name)]
        return column

    def estimates(self, rows: Rows | None, seed: int) -> dict[str, Estimate]:
        """Every metric with its interval, over all rows or those chosen."""
        chosen = self.values if rows is None else self.values[rows]
        return dict(zip(self.metrics, estimates(chosen, seed), strict=True)) if len(chosen) else {}

    @cached_property
    def sets(self) -> dict[str, Rows]:
        """The rows of every category that occurs, in order of name."""
        names = np.asarray(self.categories)
        return {
            name: np.flatnonzero(names == name) for name in sorted(set(self.categories)) if name
        }

    def rows_of(self, categories: Sequence[str]) -> Rows:
        """The rows of several categories together."""
        rows: Rows = np.flatnonzero(np.isin(np.asarray(self.categories), list(categories)))
        return rows


def score(asked: Sequence[Asked]) -> Scores:
    """Scores the questions that have an answer."""
    judged = [one for one in asked if one.relevant]
    functions = [metric(name) for name in QUALITY]
    rows = [[function(one.ranked, one.relevant) for function in functions] for one in judged]
    return Scores(
        keys=tuple(one.key for one in judged),
        categories=tuple(one.category for one in judged),
        values=np.asarray(rows, dtype=np.float64).reshape(len(judged), len(QUALITY)),
    )


def views(scores: Scores, groups: Mapping[str, Sequence[str]]) -> dict[str, Rows | None]:
    """What a table has a line for: everything, the data set's groups, each category."""
    lines: dict[str, Rows | None] = {ALL: None}
    lines.update({name: scores.rows_of(members) for name, members in groups.items()})
    if len(scores.sets) > 1:
        lines.update(scores.sets)
    return lines


def compare(before: Scores, after: Scores, name: str, seed: int) -> Difference | None:
    """A metric's difference on the questions that both were asked; None without any."""
    places = {key: place for place, key in enumerate(after.keys)}
    shared = [(old, places[key]) for old, key in enumerate(before.keys) if key in places]
    if not shared:
        return None
    old, new = (np.asarray(side) for side in zip(*shared, strict=True))
    return difference(before.column(name)[old], after.column(name)[new], seed)
