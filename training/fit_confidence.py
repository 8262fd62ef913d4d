"""Fit the confidence of the default profile: whether something stored is on the subject.

    python training/fit_confidence.py FOLDER... --cache DIR [--jobs N]

The folders have ``notes/``, ``more/``, ``locomo/`` and ``longmemeval/``, and stores of notes,
as in training/data/checks and training/data/unseen. Questions with an answer,
and those that a note nearly answers, are on a stored subject; questions of other stores, and
those about something else, are not. Each kind is asked of whole stores, and of parts of 1, 3,
10 and 30 memories. Every set counts the same, half of it on stored subjects; each is also left
out once, with its parts, and judged by the fit of the others.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
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
from bethink.retrieval.profile import load_profile
from bethink.retrieval.query_analysis import asks_only_for_time
from bethink.retrieval.stages.gate import Features, features_of

# With the lead, whose scale is that of the default profile; and for any profile.
FITTED = {
    "default": ("cosine", "lead", "memories", "turn"),
    "any": ("cosine", "words", "memories", "turn"),
}
SIZES = (1, 3, 10, 30)
# Parts of a size.
PARTS = {"notes": 60, "checks": 60, "unseen": 30, "locomo": 20, "realtalk": 20, "xquad-en": 20}
PART_WEIGHT = 0.6  # of the parts of a set, beside 1 of the whole stores
STORED = {"absent-near": True, "absent-far": False, "absent-alien": False}
MOST_STORES = 26  # of LongMemEval, which has one store for every question


class Answer(NamedTuple):
    """What is known of an answer: its features, and whether its subject is stored."""

    set: str
    size: int
    kind: str
    features: Features
    stored: bool
    is_hit: bool


@dataclass(frozen=True)
class Capture:
    """A gate that keeps the features of an answer."""

    into: list[tuple[Pool, Features]] = field(default_factory=list, compare=False)
    name: str = "capture"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if pool and not asks_only_for_time(ctx):
            self.into.append((pool, features_of(pool, ctx)))
        return pool


class Job(NamedTuple):
    """A store, or a part of one, and what is asked of it."""

    set: str
    case: Case
    size: int
    asked: list[tuple[str, Question]]


def family(name: str) -> str:
    """Sets that share memories, and parts of a set, are left out together."""
    return name.removeprefix("part of ").split("-")[0]


def jobs_of(folders: list[Path]) -> list[Job]:
    """Whole stores with their own questions and those of others, then parts of them."""
    stores = defaultdict(list)
    for dataset in find_datasets(folders, DatasetOptions()):
        if dataset.level == "turn":
            name = "realtalk" if dataset.name.startswith("realtalk") else dataset.name
            stores[name] += [case for case in dataset.cases() if case.questions]
    for name, cases in stores.items():
        if len(cases) > MOST_STORES:
            stores[name] = random.Random(3).sample(cases, MOST_STORES)
    jobs = [whole(name, case, stores) for name, cases in stores.items() for case in cases]
    for name, count in PARTS.items():
        chooser = random.Random(name)
        jobs += [part(name, size, stores, chooser) for size in SIZES for _ in range(count)]
    return jobs


def strangers(questions: list[Question], case: Case, count: int, chooser: random.Random):
    """So many of the questions, as asked of a store that knows nothing of them."""
    drawn = chooser.sample(questions, min(count, len(questions)))
    return [replace(one, relevant={}, now=case.now, filters={}) for one in drawn]


def others(name: str, case: Case, stores: dict[str, list[Case]]) -> dict[str, list[Question]]:
    """Answerable questions of other stores: of the same set, and of sets of other kinds."""
    found = defaultdict(list)
    for other, cases in stores.items():
        if other == name or family(other) != family(name):
            for one in cases:
                if one is not case:
                    kind = "kin" if other == name else other
                    found[kind] += [question for question in one.questions if question.answerable]
    return found


def whole(name: str, case: Case, stores: dict[str, list[Case]]) -> Job:
    """A store with all its questions."""
    chooser = random.Random(name + case.name)
    few = len(case.questions) < 3
    asked = [("own", question) for question in case.questions]
    for kind, questions in others(name, case, stores).items():
        count = (6 if few else 60) if kind == "kin" else (1 if few else 12)
        label = "kin" if kind == "kin" else "alien"
        asked += [(label, one) for one in strangers(questions, case, count, chooser)]
    return Job(name, case, 0, asked)


def part(name: str, size: int, stores: dict[str, list[Case]], chooser: random.Random) -> Job:
    """A few memories of a store: in chats a run of turns, else some, with one that is asked for."""
    case = chooser.choice(stores[name])
    place = {unit: at for at, unit in enumerate(case.units)}
    wanted = chooser.choice([one for one in case.questions if set(one.relevant) & set(place)])
    first = min(place[unit] for unit in wanted.relevant if unit in place)
    if name in ("locomo", "realtalk"):
        start = chooser.randint(max(0, first - size + 1), first)
        kept = range(start, min(len(case.drafts), start + size))
    else:
        rest = [at for at in range(len(case.drafts)) if at != first]
        kept = sorted([first, *chooser.sample(rest, size - 1)])
    units = {case.units[at] for at in kept}
    own = [one for one in case.questions if units & set(one.relevant)]
    outside = [one for one in case.questions if one.answerable and one not in own]
    asked = [("own", one) for one in chooser.sample(own, min(6, len(own)))]
    count, drawn = max(2, len(asked)), others(name, case, stores)
    kin = drawn.pop("kin", [])
    asked += [("kin", one) for one in strangers(kin, case, count, chooser)]
    alien = [one for questions in drawn.values() for one in questions]
    asked += [("alien", one) for one in strangers(alien, case, count, chooser)]
    if name not in ("locomo", "realtalk") and size <= 10:
        asked += [("outside", one) for one in strangers(outside, case, count, chooser)]
    small = replace(
        case,
        drafts=tuple(case.drafts[at] for at in kept),
        refs=tuple(case.refs[at] for at in kept),
        units=tuple(case.units[at] for at in kept),
        questions=(),
    )
    return Job(f"part of {name}", small, size, asked)


_JOBS: list[Job] = []
_SPACES: list[SpaceProvider] = []


def prepare(folders: list[Path], cache: Path) -> None:
    """Read the data once in every process."""
    _JOBS[:] = jobs_of(folders)
    kept = SpaceProvider(Settings(), cache_folder=cache)
    _SPACES[:] = [kept, SpaceProvider(Settings(), in_memory=True, cache_folder=cache)]


def answers_of(number: int) -> list[Answer]:
    """Ask one store what it is to be asked."""
    name, case, size, asked = _JOBS[number]
    capture = Capture()
    profile = replace(load_profile("default"), gate=(capture,))
    found = []
    with _SPACES[bool(size)].open(name, case) as filled:
        for kind, question in asked:
            stored = kind == "own" and (question.answerable or STORED.get(question.category))
            capture.into.clear()
            run_recall(filled, replace(question, now=question.now or case.now), profile)
            if stored is None or not capture.into:
                continue
            pool, features = capture.into[-1]
            units = [filled.units.get(cand.item.id) for cand in pool[:10]]
            is_hit = any(unit in question.relevant for unit in units)
            found.append(Answer(name, size, kind, features, bool(stored), is_hit))
    return found


def balance(answers: list[Answer]) -> np.ndarray:
    """Every set counts the same, its sizes too: half on stored subjects, half by kinds on others."""
    groups, kinds, sizes = defaultdict(list), defaultdict(set), defaultdict(set)
    for place, one in enumerate(answers):
        kind = "" if one.stored else one.kind
        groups[one.set, one.size, one.stored, kind].append(place)
        kinds[one.set, one.size, one.stored].add(kind)
        sizes[one.set].add(one.size)
    weight = np.zeros(len(answers))
    for (name, size, stored, _), places in groups.items():
        share = 0.5 / len(kinds[name, size, stored]) / len(sizes[name])
        weight[places] = share * (PART_WEIGHT if size else 1.0) / len(places)
    return weight / weight.sum()


def matrix_of(answers: list[Answer], names: tuple[str, ...]) -> np.ndarray:
    rows = [[getattr(one.features, name) for name in names] for one in answers]
    return np.column_stack([np.array(rows), np.ones(len(rows))])


def fit(answers: list[Answer], names: tuple[str, ...], ridge: float = 1e-3) -> np.ndarray:
    """Weights and intercept of the logistic model, by Newton's method."""
    matrix, weight = matrix_of(answers, names), balance(answers)
    stored = np.array([one.stored for one in answers], float)
    mean, spread = np.average(matrix, axis=0, weights=weight), np.ones(matrix.shape[1])
    spread[:-1] = np.sqrt(np.average((matrix - mean) ** 2, axis=0, weights=weight))[:-1] + 1e-9
    mean[-1] = 0.0
    scaled = (matrix - mean) / spread
    penalty = ridge * np.diag([*[1.0] * len(names), 0.0])
    fitted = np.zeros(scaled.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-scaled @ fitted))
        slope = scaled.T @ (weight * (chance - stored)) + penalty @ fitted
        curve = (scaled * (weight * chance * (1 - chance))[:, None]).T @ scaled + penalty
        fitted -= np.linalg.solve(curve, slope)
    slopes = fitted / spread
    slopes[-1] = fitted[-1] - slopes[:-1] @ mean[:-1]
    return slopes


def estimate(answers: list[Answer], names: tuple[str, ...], weights: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-matrix_of(answers, names) @ weights))


def calibration_error(said: np.ndarray, stored: np.ndarray, weight: np.ndarray) -> float:
    """Expected calibration error over ten bins of equal weight."""
    order = np.argsort(said, kind="stable")
    said, stored, weight = said[order], stored[order], weight[order] / weight.sum()
    bins = np.minimum(((np.cumsum(weight) - weight / 2) * 10).astype(int), 9)
    return float(sum(abs((weight * (said - stored))[bins == one].sum()) for one in range(10)))


def area_under_curve(said: np.ndarray, stored: np.ndarray) -> float:
    """How often a question on a stored subject has the higher confidence."""
    ranks = np.empty(len(said))
    ranks[np.argsort(said)] = np.arange(1, len(said) + 1)
    positive = stored.sum()
    return float(
        (ranks[stored].sum() - positive * (positive + 1) / 2)
        / max(1, positive * (len(stored) - positive))
    )


def report(answers: list[Answer], names: tuple[str, ...], silent: float) -> None:
    """Print the weights, and for each set what a fit without it reaches and what silence loses."""
    weights = fit(answers, names)
    for name, value in zip(("intercept", *names), (weights[-1], *weights[:-1])):
        print(f"{name} = {value:.3f}")
    stored, balanced = np.array([one.stored for one in answers]), balance(answers)
    told, said = estimate(answers, names, weights), np.zeros(len(answers))
    sets = np.array([one.set for one in answers])
    families = np.array([family(one.set) for one in answers])
    for name in sorted(set(families)):
        rest = [one for one in answers if family(one.set) != name]
        here = np.flatnonzero(families == name)
        said[here] = estimate([answers[place] for place in here], names, fit(rest, names))
    hits = np.array([one.is_hit for one in answers])
    print("# set                  left out: ECE   AUC   lost to silence")
    for name in sorted(set(sets)):
        here = sets == name
        error = calibration_error(said[here], stored[here], balanced[here])
        lost = (told[here & hits] < silent).mean() if (here & hits).any() else 0.0
        print(
            f"# {name:<24}{error:10.3f}{area_under_curve(said[here], stored[here]):7.3f}{lost:8.3f}"
        )
    print(
        f"# pooled, left out: ECE {calibration_error(said, stored, balanced):.3f}, "
        f"AUC {area_under_curve(said, stored):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--cache", type=Path, required=True, help="keeps the filled stores")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--silent", type=float, default=0.045, help="below it nothing is returned")
    options = parser.parse_args()
    given = (options.folders, options.cache)
    count = len(jobs_of(options.folders))
    with ProcessPoolExecutor(options.jobs, initializer=prepare, initargs=given) as pool:
        answers = [one for found in pool.map(answers_of, range(count)) for one in found]
    for profile, names in FITTED.items():
        print(f"# {profile}")
        report(answers, names, options.silent)


if __name__ == "__main__":
    main()
