"""Fit the weights of the default profile, and of its confidence, over several data sets.

    python training/fit_ranking.py FOLDER --cache DIR [--jobs N] [--hardest N]

FOLDER has ``notes/``, ``more/``, ``locomo/`` and ``longmemeval/``. The features are the
evidence of the pipeline itself, run with all weights at 1. Ranking: a linear model, fitted
by a softmax over the candidates of each question. Confidence: a logistic model over answers
to own questions, to those of other stores, and to own ones whose answers were taken out.
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
from bethink.eval.case import Case, Question
from bethink.eval.datasets import DatasetOptions, find_datasets
from bethink.eval.runner import run_recall
from bethink.eval.spaces import SpaceProvider
from bethink.model import Pool
from bethink.retrieval.context import Context
from bethink.retrieval.profile import Profile, load_profile
from bethink.retrieval.query_analysis import asks_only_for_time, coverage, max_bm25_score
from bethink.retrieval.stages.adjust import (
    AnswerTypeBoost,
    LengthPenalty,
    PeriodBoost,
    SpeakerBoost,
)
from bethink.retrieval.stages.conversation import Conversation
from bethink.retrieval.stages.gate import Features, _unknown_share
from bethink.retrieval.stages.late_interaction import (
    MatchScoring,
    clearness,
    similarity_features,
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
# How much each set counts; the paragraphs are easy and have two sets.
IMPORTANCE = {"xquad-en": 0.3, "xquad-de-asks-en": 0.6, "cosqa-dev": 2.0, "notes": 1.2}
UNKNOWN_WEIGHT = -0.4  # given, not fitted: unknown names lower the confidence by degrees
RELATED = (0.386, 0.56)  # see bethink.retrieval.stages.gate
SCALE = 10.0  # log-odds to scores


class Example(NamedTuple):
    """One question put to one store: its candidates' features, and which are relevant."""

    set: str
    kind: str
    matrix: np.ndarray
    relevant: np.ndarray
    answerable: bool
    confidence: dict[str, np.ndarray]
    unknown: float


@dataclass(frozen=True)
class Capture:
    """A gate that keeps what the pipeline knows of the candidates."""

    into: list[tuple[Pool, np.ndarray, dict[str, np.ndarray], float, bool]] = field(
        default_factory=list, compare=False
    )
    name: str = "capture"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        close = similarity_features(pool, ctx)
        rows = [close[cand.item.id] for cand in pool]
        ceiling = max_bm25_score(ctx) / 10.0
        lexical = [cand.reason("channel.lexical") for cand in pool]
        known = {
            "tokens": np.array([max(0.0, row.interaction) for row in rows]),
            "cosine": np.array([max(0.0, row.plain) for row in rows]),
            "sentence": np.array([max(0.0, row.sentence) for row in rows]),
            "words": np.array([(one.value if one else 0.0) * ceiling for one in lexical]),
            "coverage": np.array([coverage(cand, ctx) for cand in pool]),
        }
        unknown = _unknown_share(pool[:10], ctx)
        matrix = feature_matrix(pool, clearness(ctx))
        self.into.append((pool, matrix, known, unknown, asks_only_for_time(ctx)))
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


def strangers(case: Case, others: list[Case], count: int) -> list[Question]:
    """Questions of other stores, put to this one."""
    drawn = [question for other in others for question in other.questions if question.answerable]
    chosen = random.Random(case.name).sample(drawn, min(count, len(drawn)))
    return [replace(question, relevant={}, now=case.now, filters={}) for question in chosen]


_JOBS: list[tuple[str, Case, list[Case], list[Case], Path]] = []


def prepare(folder: Path, cache: Path) -> None:
    """Read the data once in every process."""
    _JOBS[:] = jobs_of(folder, cache)


def examples_of(number: int) -> list[Example]:
    """Run the questions of one store, and strangers of its kind and of other kinds."""
    name, case, kin, alien, cache = _JOBS[number]
    few = case.name if len(case.questions) < 3 else ""
    spaces = SpaceProvider(Settings(), cache_folder=cache)
    capture = Capture()
    profile = unit_profile(capture)
    found = []
    with spaces.open(name, case) as filled:
        asked = [("own", question) for question in filled.questions]
        asked += [("far", one) for one in strangers(case, kin, 6 if few else 80)]
        asked += [("alien", one) for one in strangers(case, alien, 8 if few else 60)]
        for kind, question in asked:
            capture.into.clear()
            run_recall(filled, replace(question, now=question.now or case.now), profile)
            if not capture.into or not capture.into[0][0] or capture.into[0][-1]:
                continue
            pool, matrix, known, unknown, _ = capture.into[0]
            units = [filled.units.get(cand.item.id) for cand in pool]
            relevant = np.array([unit in question.relevant for unit in units])
            label = kind if question.answerable or kind != "own" else "absent"
            one = Example(name, label, matrix, relevant, bool(question.relevant), known, unknown)
            found.append(one)
            if label == "own" and not relevant.all():
                rest = ~relevant
                kept = {key: values[rest] for key, values in known.items()}
                found.append(
                    Example(name, "near", matrix[rest], relevant[rest], False, kept, unknown)
                )
    return found


def jobs_of(folder: Path, cache: Path) -> Iterator[tuple[str, Case, list[Case], list[Case], Path]]:
    """One job for every store of every set."""
    stores = defaultdict(list)
    for dataset in find_datasets([folder], DatasetOptions()):
        for case in dataset.cases():
            stores[group_of(dataset.name)].append(case)
    for name, cases in stores.items():
        alien = [
            other
            for set_, others in stores.items()
            if set_.split("-")[0] != name.split("-")[0]
            for other in others[:3]
        ]
        for case in cases:
            kin = [other for other in cases if other.name != case.name]
            yield name, case, kin, alien, cache


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
    usable = [one for one in examples if one.kind == "own" and one.relevant.any()]
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


class Answer(NamedTuple):
    """An answer as the confidence sees it."""

    set: str
    kind: str
    features: Features
    right: bool


FITTED = tuple(name for name in Features._fields if name not in ("sentence", "unknown"))


def answer_of(one: Example, weights: np.ndarray) -> Answer:
    """Rank the candidates with fitted weights, and take the features of the first ten."""
    scores = one.matrix @ weights
    order = np.argsort(-scores, kind="stable")
    first = order[:10]
    behind = scores[order[0]] - scores[order[1:11]]
    best = {name: float(values[first].max()) for name, values in one.confidence.items()}
    similarity = RELATED[1] * best["sentence"] + (1 - RELATED[1]) * best["tokens"]
    features = Features(
        **best,
        lead=float(behind.sum() + 0.3 * (10 - len(behind))) / 10,
        unknown=one.unknown,
        weak=10 * max(0.0, RELATED[0] - similarity),
    )
    return Answer(one.set, one.kind, features, bool(one.relevant[first].any()))


def fit_confidence(answers: list[Answer]) -> tuple[float, np.ndarray]:
    """Fit the logistic model: half of each set's weight is on its own questions."""
    matrix = np.array([[getattr(one.features, name) for name in FITTED] for one in answers])
    right = np.array([one.right for one in answers], float)
    offset = UNKNOWN_WEIGHT * np.array([one.features.unknown for one in answers])
    weight = balance(answers)
    mean = np.average(matrix, axis=0, weights=weight)
    spread = np.sqrt(np.average((matrix - mean) ** 2, axis=0, weights=weight)) + 1e-9
    scaled = np.column_stack([(matrix - mean) / spread, np.ones(len(matrix))])
    signs = np.array([-1.0 if name == "weak" else 1.0 for name in FITTED])
    low = np.append(np.where(signs > 0, 0.0, -np.inf), -np.inf)
    high = np.append(np.where(signs > 0, np.inf, 0.0), np.inf)

    def gradient(weights: np.ndarray) -> np.ndarray:
        chance = 1 / (1 + np.exp(-(scaled @ weights + offset)))
        return scaled.T @ ((chance - right) * weight) / weight.sum()

    fitted = descend(np.zeros(len(FITTED) + 1), gradient, 700, 0.05, low, high)
    slopes = fitted[:-1] / spread
    return float(fitted[-1] - slopes @ mean), slopes


def balance(answers: list[Answer]) -> np.ndarray:
    """Every set counts the same: half its own questions, half the others, kind by kind."""
    groups = defaultdict(list)
    for place, one in enumerate(answers):
        groups[one.set, one.kind].append(place)
    kinds = defaultdict(int)
    for set_, kind in groups:
        kinds[set_] += kind != "own"
    weight = np.zeros(len(answers))
    for (set_, kind), places in groups.items():
        share = 0.5 if kind == "own" else 0.5 / kinds[set_]
        weight[places] = share / len(places)
    return weight / weight.mean()


def estimate(answers: list[Answer], intercept: float, slopes: np.ndarray) -> np.ndarray:
    """The confidence of each answer."""
    matrix = np.array([[getattr(one.features, name) for name in FITTED] for one in answers])
    unknown = np.array([one.features.unknown for one in answers])
    return 1 / (1 + np.exp(-(matrix @ slopes + intercept + UNKNOWN_WEIGHT * unknown)))


def calibration_error(said: np.ndarray, right: np.ndarray, weight: np.ndarray) -> float:
    """Expected calibration error over ten bins of equally many answers."""
    bins = np.array_split(np.argsort(said), 10)
    gaps = [
        weight[rows].sum()
        * abs(
            np.average(said[rows], weights=weight[rows])
            - np.average(right[rows], weights=weight[rows])
        )
        for rows in bins
    ]
    return sum(gaps) / weight.sum()


def area_under_curve(said: np.ndarray, right: np.ndarray) -> float:
    """How often an answer that is right is surer than one that is not."""
    ranks = np.empty(len(said))
    ranks[np.argsort(said)] = np.arange(1, len(said) + 1)
    positive = right.sum()
    return float(
        (ranks[right].sum() - positive * (positive + 1) / 2)
        / max(1, positive * (len(right) - positive))
    )


def quality(examples: list[Example], weights: np.ndarray) -> tuple[float, float]:
    """Hit and nDCG in the first ten; relevant memories outside the pool are not counted."""
    hits, gains = [], []
    for one in examples:
        if one.kind != "own" or not one.answerable:
            continue
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
    answers = [answer_of(one, weights) for one in examples]
    intercept, slopes = fit_confidence(answers)
    print("# confidence")
    for name, value in (
        ("intercept", intercept),
        *zip(FITTED, slopes),
        ("unknown", UNKNOWN_WEIGHT),
    ):
        print(f"{name} = {value:.3f}")
    said, right = estimate(answers, intercept, slopes), np.array([one.right for one in answers])
    weight = balance(answers)
    print(
        f"# pooled: ECE {calibration_error(said, right, weight):.3f}, "
        f"AUC {area_under_curve(said, right):.3f}"
    )
    print("# set                 hit@10 nDCG@10 | left out: hit@10 nDCG@10   ECE   AUC")
    for name in sorted({one.set for one in examples}):
        own = [one for one in examples if one.set == name]
        rest = [one for one in examples if not related(one.set, name)]
        apart = fit_ranking(rest, count=count)
        without = fit_confidence([answer_of(one, apart) for one in rest])
        tested = [answer_of(one, apart) for one in own]
        told, was = estimate(tested, *without), np.array([one.right for one in tested])
        error = calibration_error(told, was, balance(tested))
        print(
            f"# {name:<20}{quality(own, weights)[0]:7.3f}{quality(own, weights)[1]:8.3f} |"
            f"{quality(own, apart)[0]:17.3f}{quality(own, apart)[1]:8.3f}"
            f"{error:6.3f}{area_under_curve(told, was):6.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="keeps the filled stores")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--hardest", type=int, default=0, help="candidates of a question; 0: all")
    options = parser.parse_args()
    given = (options.folder, options.cache)
    count = sum(1 for _ in jobs_of(*given))
    with ProcessPoolExecutor(options.jobs, initializer=prepare, initargs=given) as pool:
        examples = [one for found in pool.map(examples_of, range(count)) for one in found]
    report(examples, options.hardest)


if __name__ == "__main__":
    main()
