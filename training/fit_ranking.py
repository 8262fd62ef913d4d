"""Fit the weights of the default profile over several data sets.

    python training/fit_ranking.py FOLDER... --cache DIR [--jobs N] [--hardest N]

The folders have ``notes/``, ``more/``, ``locomo/`` and ``longmemeval/``, and stores of notes,
as in training/data/checks and training/data/unseen. The features are the
evidence of the pipeline itself, run with all weights at 1. Ranking: a linear model, fitted
by a softmax over the candidates of each question.
Every set counts the same; each is also left out once, and judged by the fit of the others.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bethink.config.settings import Settings
from bethink.eval.case import Case
from bethink.eval.datasets import DatasetOptions, find_datasets
from bethink.eval.runner import run_recall
from bethink.eval.spaces import SpaceProvider
from bethink.model import Pool
from bethink.retrieval.context import Context
from bethink.retrieval.profile import Profile, load_profile
from bethink.retrieval.query_analysis import asks_only_for_time
from bethink.retrieval.stages.adjust import (
    AnswerTypeBoost,
    LengthPenalty,
    PeriodBoost,
    SpeakerBoost,
)
from bethink.retrieval.stages.conversation import Conversation
from bethink.retrieval.stages.late_interaction import (
    MatchScoring,
    clearness,
)
from bethink.retrieval.stages.rerank import TopK

MATCH = ("words", "whole", "weighted", "tokens", "sentence")
NEIGHBOURS = {
    "answers": "reply",
    "said before": "after",
    "said near": "further",
    "completed by": "supplied",
    "best score in its conversation": "session",
    "first turn of its conversation": "opening",
}
SHARED = ("pieces", "answer_kind", "asking", "speaker", "period", "length")
CLEAR = ("words_if_clear", "whole_if_clear")
COLUMNS = (
    *(f"{of}.{name}" for of in ("memories", "turns") for name in (*MATCH, *CLEAR)),
    *NEIGHBOURS.values(),
    *SHARED,
)
FREE = {column for column in COLUMNS if column.endswith("_if_clear")}
NEGATIVE = {"asking", "length"}
# How much each set counts; the paragraphs are easy and have two sets, notes are what most keep.
IMPORTANCE = {
    "xquad-en": 0.3, "xquad-de-asks-en": 0.9, "cosqa-dev": 2.0,
    "notes": 2.0, "checks": 3.5, "unseen": 2.0,
}  # fmt: skip
SCALE = 10.0  # log-odds to scores


class Example(NamedTuple):
    """One question put to one store: its candidates' features, and which are relevant."""

    set: str
    matrix: np.ndarray
    relevant: np.ndarray


@dataclass(frozen=True)
class Capture:
    """A gate that keeps what the pipeline knows of the candidates."""

    into: list[tuple[Pool, np.ndarray]] = field(default_factory=list, compare=False)
    name: str = "capture"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if pool and not asks_only_for_time(ctx):
            self.into.append((pool, feature_matrix(pool, clearness(ctx))))
        return pool


def feature_matrix(pool: Pool, clear: float) -> np.ndarray:
    """The evidence of each candidate, by column, as the weights 1 gave it."""
    matrix = np.zeros((len(pool), len(COLUMNS)), np.float32)
    index = {name: place for place, name in enumerate(COLUMNS)}
    for row, cand in enumerate(pool):
        of = "memories" if cand.item.session is None else "turns"
        for one in cand.evidence:
            if one.by == "match.pieces":
                matrix[row, index["pieces"]] += one.value
            elif one.by.startswith("match."):
                matrix[row, index[f"{of}.{one.by[6:]}"]] += one.value
            elif one.by == "conversation" and one.why in NEIGHBOURS:
                matrix[row, index[NEIGHBOURS[one.why]]] += one.value
            elif one.by == "answer_kind":
                matrix[row, index["asking" if one.why == "is a question" else "answer_kind"]] += (
                    abs(one.value)
                )
            elif one.by in SHARED:
                matrix[row, index[one.by]] += abs(one.value)
        for name in ("words", "whole"):
            matrix[row, index[f"{of}.{name}_if_clear"]] = clear * matrix[row, index[f"{of}.{name}"]]
    return matrix


def unit_profile(capture: Capture) -> Profile:
    """The default profile with every weight at 1, nothing cut, and the capture as its gate."""
    profile = load_profile("default")

    def unit(stage):
        if isinstance(stage, MatchScoring):
            weights = dict.fromkeys(("pieces", *MATCH), 1.0) | dict.fromkeys(CLEAR, 0.0)
            return replace(stage, **weights)
        if isinstance(stage, Conversation):
            return replace(stage, before=0.0, **dict.fromkeys(NEIGHBOURS.values(), 1.0))
        if isinstance(stage, AnswerTypeBoost):
            return replace(stage, weight=1.0, asking=-1.0, top=500)
        if isinstance(stage, SpeakerBoost | PeriodBoost | LengthPenalty):
            return replace(stage, weight=1.0)
        return replace(stage, count=500) if isinstance(stage, TopK) else stage

    return replace(
        profile,
        expand=tuple(map(unit, profile.expand)),
        adjust=tuple(map(unit, profile.adjust)),
        diversify=(),
        gate=(capture,),
    )


_JOBS: list[tuple[str, Case, Path]] = []


def prepare(folders: list[Path], cache: Path) -> None:
    """Read the data once in every process."""
    _JOBS[:] = jobs_of(folders, cache)


def examples_of(number: int) -> list[Example]:
    """Run the questions of one store that have an answer."""
    name, case, cache = _JOBS[number]
    spaces = SpaceProvider(Settings(), cache_folder=cache)
    capture = Capture()
    profile = unit_profile(capture)
    found = []
    with spaces.open(name, case) as filled:
        for question in filled.questions:
            capture.into.clear()
            if question.answerable:
                run_recall(filled, replace(question, now=question.now or case.now), profile)
            if capture.into:
                pool, matrix = capture.into[0]
                units = [filled.units.get(cand.item.id) for cand in pool]
                relevant = np.array([unit in question.relevant for unit in units])
                found.append(Example(name, matrix, relevant))
    return found


def jobs_of(folders: list[Path], cache: Path) -> Iterator[tuple[str, Case, Path]]:
    """One job for every store of every set."""
    for dataset in find_datasets(folders, DatasetOptions()):
        for case in dataset.cases():
            yield group_of(dataset.name), case, cache


def group_of(name: str) -> str:
    """Stores of one kind count as one set."""
    return "realtalk" if name.startswith("realtalk") else name


def hardest(one: Example, count: int) -> Example:
    """Keep the relevant candidates and the ``count`` that match best otherwise."""
    matched = one.matrix[:, [not name.endswith("_if_clear") for name in COLUMNS]].sum(axis=1)
    kept = one.relevant.copy()
    kept[np.argsort(-matched)[:count]] = True
    return one._replace(matrix=one.matrix[kept], relevant=one.relevant[kept])


def fit_ranking(examples: list[Example], steps: int = 300, count: int = 0) -> np.ndarray:
    """Fit the linear model: cross-entropy of a softmax over each question's candidates."""
    usable = [one for one in examples if one.relevant.any()]
    usable = [hardest(one, count) for one in usable] if count else usable
    chooser = random.Random(1)
    by_set = defaultdict(list)
    for one in usable:
        by_set[one.set].append(one)
    chosen = [one for ones in by_set.values() for one in chooser.sample(ones, min(300, len(ones)))]
    counts = {name: min(300, len(ones)) for name, ones in by_set.items()}
    matrix = np.concatenate([one.matrix for one in chosen])
    target = np.concatenate([one.relevant / one.relevant.sum() for one in chosen])
    lengths = np.array([len(one.matrix) for one in chosen])
    starts = np.concatenate([[0], lengths.cumsum()[:-1]])
    owner = np.repeat(np.arange(len(lengths)), lengths)
    shares = np.array([IMPORTANCE.get(one.set, 1.0) / counts[one.set] for one in chosen])
    weight = np.repeat(shares / shares.sum(), lengths)
    low = np.array([-np.inf if name in FREE | NEGATIVE else 0.0 for name in COLUMNS])
    high = np.array([0.0 if name in NEGATIVE else np.inf for name in COLUMNS])
    weights = np.clip(np.full(len(COLUMNS), 0.5), low, high)

    def gradient(weights: np.ndarray) -> np.ndarray:
        scores = matrix @ weights
        powers = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        chances = powers / np.add.reduceat(powers, starts)[owner]
        return matrix.T @ ((chances - target) * weight) + 1e-3 * weights / len(weights)

    return descend(weights, gradient, steps, 0.12, low, high) / SCALE


def descend(weights, gradient, steps, rate, low, high):
    """Adam, kept within bounds."""
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, steps + 1):
        slope = gradient(weights)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        move = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
        weights = np.clip(weights - rate * move, low, high)
    return weights


def quality(examples: list[Example], weights: np.ndarray) -> tuple[float, float]:
    """Hit and nDCG in the first ten; relevant memories outside the pool are not counted."""
    hits, gains = [], []
    for one in examples:
        order = np.argsort(-(one.matrix @ weights), kind="stable")[:10]
        found = one.relevant[order]
        ideal = sum(
            1 / math.log2(place + 2) for place in range(min(10, max(1, one.relevant.sum())))
        )
        hits.append(found.any())
        gains.append(
            sum(1 / math.log2(place + 2) for place, is_it in enumerate(found) if is_it) / ideal
        )
    return float(np.mean(hits)), float(np.mean(gains))


def related(name: str, other: str) -> bool:
    """Whether two sets share their memories: such are left out together."""
    return name == other or (name.startswith("xquad") and other.startswith("xquad"))


def report(examples: list[Example], count: int) -> None:
    """Fit on all sets, and on all but one in turn; print weights and what they reach."""
    weights = fit_ranking(examples, count=count)
    print("# weights of the profile")
    for name, value in zip(COLUMNS, weights):
        print(f"{name} = {value:.3f}")
    print("# set                 hit@10 nDCG@10 | left out: hit@10 nDCG@10")
    for name in sorted({one.set for one in examples}):
        own = [one for one in examples if one.set == name]
        rest = [one for one in examples if not related(one.set, name)]
        apart = fit_ranking(rest, count=count)
        print(
            f"# {name:<20}{quality(own, weights)[0]:7.3f}{quality(own, weights)[1]:8.3f} |"
            f"{quality(own, apart)[0]:17.3f}{quality(own, apart)[1]:8.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--cache", type=Path, required=True, help="keeps the filled stores")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--hardest", type=int, default=0, help="candidates of a question; 0: all")
    options = parser.parse_args()
    given = (options.folders, options.cache)
    count = sum(1 for _ in jobs_of(*given))
    with ProcessPoolExecutor(options.jobs, initializer=prepare, initargs=given) as pool:
        examples = [one for found in pool.map(examples_of, range(count)) for one in found]
    report(examples, options.hardest)


if __name__ == "__main__":
    main()
