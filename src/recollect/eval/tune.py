"""Searches better numbers for a profile, and says honestly whether they are better.

Questions are split by the seed: the search sees the training ones only, and the
held-out ones are asked twice, before and after. A gain there that resampling
cannot tell from noise is called noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from time import monotonic

import numpy as np

from recollect.errors import Refused
from recollect.eval.asking import recall
from recollect.eval.case import Question
from recollect.eval.knobs import Knob
from recollect.eval.looking import units_of
from recollect.eval.metrics import metric
from recollect.eval.resampling import Difference, Values, difference
from recollect.eval.runner import Watch
from recollect.eval.spaces import Filled
from recollect.profile import Profile

Sample = tuple[Filled, Question]

# A candidate that trails by more than this many standard errors is given up early.
_TRAILING = 1.0
_CHECKPOINTS = (0.25, 0.5)
_FIRST_STEP = 0.5
_LAST_STEP = 0.1


@dataclass(frozen=True, slots=True)
class Search:
    """How long and how to search. ``metrics`` are averaged."""

    metrics: tuple[str, ...] = ("recall@10", "ndcg@10")
    trials: int = 60
    minutes: float = 10.0
    holdout: float = 0.4
    seed: int = 7
    k: int = 50


@dataclass(frozen=True, slots=True)
class Tuned:
    """What came of it; ``train`` and ``held_out`` compare the new with the old."""

    profile: Profile
    changes: tuple[tuple[str, float, float], ...]
    train: Difference
    held_out: Difference
    trials: int

    @property
    def is_noise(self) -> bool:
        """Whether the held-out questions do not show a gain."""
        return not (self.held_out.value > 0 and self.held_out.is_significant)


def split(samples: Sequence[Sample], search: Search) -> tuple[list[Sample], list[Sample]]:
    """Training and held-out questions, shuffled by the seed."""
    shuffled = [sample for sample in samples if sample[1].answerable]
    Random(search.seed).shuffle(shuffled)  # noqa: S311 - to be repeatable
    kept_back = round(len(shuffled) * search.holdout)
    train, held_out = shuffled[kept_back:], shuffled[:kept_back]
    if len(train) < 2 or len(held_out) < 2:
        raise Refused(
            f"{len(shuffled)} answerable questions are too few to split",
            remedy="give more questions, or another --holdout",
        )
    return train, held_out


def tune(
    profile: Profile,
    turned: Sequence[Knob],
    samples: Sequence[Sample],
    search: Search,
    watch: Watch = lambda *_: None,
) -> Tuned:
    """Looks for better numbers; gives the profile itself back where there are none."""
    train, held_out = split(samples, search)
    before = np.asarray(list(_values(profile, train, search)))
    best, best_values = profile, before
    tried = 0
    deadline = monotonic() + search.minutes * 60
    for candidate in _Candidates(turned, search):
        if monotonic() > deadline:
            break
        proposal = candidate.of(best)
        values = _race(proposal, best_values, train, search)
        if values is not None and values.mean() > best_values.mean():
            best, best_values = proposal, values
        tried += 1
        watch(tried, search.trials)
    old = np.asarray(list(_values(profile, held_out, search)))
    new = np.asarray(list(_values(best, held_out, search))) if best != profile else old
    return Tuned(
        profile=best,
        changes=tuple(_changes(profile, best, turned)),
        train=difference(before, best_values, search.seed),
        held_out=difference(old, new, search.seed),
        trials=tried,
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A move: which knobs, how far, with randomness of its own."""

    turned: tuple[Knob, ...]
    step: float
    seed: str

    def of(self, profile: Profile) -> Profile:
        random = Random(self.seed)  # noqa: S311 - to be repeatable
        for knob in self.turned:
            profile = knob.turn(profile, knob.move(knob.read(profile), self.step, random))
        return profile


class _Candidates:
    """First every knob by itself, in turn, then up to three together, in ever smaller steps."""

    def __init__(self, turned: Sequence[Knob], search: Search) -> None:
        self._knobs, self._search = turned, search

    def __iter__(self) -> Iterator[_Candidate]:
        random = Random(f"{self._search.seed}/moves")  # noqa: S311 - to be repeatable
        order = random.sample(list(self._knobs), len(self._knobs))
        for trial in range(self._search.trials):
            done = trial / max(1, self._search.trials - 1)
            step = _FIRST_STEP * (_LAST_STEP / _FIRST_STEP) ** done
            alone = trial < 2 * len(order)
            chosen = (
                [order[trial % len(order)]]
                if alone
                else random.sample(order, min(len(order), random.randint(1, 3)))
            )
            yield _Candidate(tuple(chosen), step, f"{self._search.seed}/{trial}")


def _values(profile: Profile, samples: Sequence[Sample], search: Search) -> Iterator[float]:
    functions = [metric(name) for name in search.metrics]
    for filled, question in samples:
        answer = recall(filled, question, profile, search.k)
        ranked = units_of(answer.hits, filled.units)
        scored = (function(ranked, question.relevant) for function in functions)
        yield sum(scored) / len(functions)


def _race(
    profile: Profile, best: Values, samples: Sequence[Sample], search: Search
) -> Values | None:
    """The profile's values; None when it clearly trails before all were asked."""
    stops = {round(len(samples) * share) for share in _CHECKPOINTS}
    values: list[float] = []
    for value in _values(profile, samples, search):
        values.append(value)
        if len(values) in stops and len(values) > 1:
            gains = np.asarray(values) - best[: len(values)]
            error = float(gains.std(ddof=1)) / math.sqrt(len(values))
            if gains.mean() < -_TRAILING * error:
                return None
    return np.asarray(values)


def _changes(
    before: Profile, after: Profile, turned: Sequence[Knob]
) -> Iterator[tuple[str, float, float]]:
    for knob in turned:
        old, new = knob.read(before), knob.read(after)
        if old != new:
            yield knob.name, old, new
