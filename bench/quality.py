"""What quality costs: recall and CPU time of profiles and their parts, in one run.

    python bench/quality.py locomo-dev.json.gz

Spaces are filled and asked as `bethink eval` does it. A time is the median CPU of a
whole recall, embedding of the question included; the ratio is to words alone (BM25) with
the same embedder in the same run, so that a slow machine does not matter.
"""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from bethink.eval.tune import ablations
from bethink.eval.datasets import DatasetOptions, open_dataset
from bethink.eval.runner import ProfileResult, RunPlan, run_evaluation
from bethink.eval.metrics import question_groups, score_results
from bethink.eval.spaces import SpaceProvider
from bethink.retrieval.profile import Profile, load_profile, parse_profile
from bethink.config.settings import Settings

# The parts of the default profile that a recall spends its time on.
EXPENSIVE = (
    "lexical", "dense", "temporal", "substring", "beside", "reading", "conversation",
    "expand", "adjust", "diversify", "gate",
)  # fmt: skip
BASE = "words alone (BM25)"
GROUP = "categories 1-4"


def profiles() -> dict[str, Profile]:
    folder = Path(__file__).parent / "profiles"
    files = {BASE: folder / "words.toml", "meaning alone (cosine)": folder / "meaning.toml"}
    read = {
        name: parse_profile(file.read_text(encoding="utf-8"), file.stem, file.name)
        for name, file in files.items()
    }
    default = load_profile("default")
    return {
        **read,
        "siftcoder": load_profile("siftcoder"),
        "default": default,
        **ablations(default, "default", EXPENSIVE),
    }


def row(outcome: ProfileResult, base: float, wanted: tuple[str, ...]) -> list[str]:
    scores = score_results(outcome.own)
    rows = question_groups(scores, {"wanted": wanted})["wanted"]
    spent = _cost(outcome)
    return [
        outcome.label,
        *(f"{scores.column(name)[rows].mean():.3f}" for name in ("recall@10", "ndcg@10")),
        f"{spent:.2f}",
        f"{spent / base:.1f}",
    ]


def _cost(outcome: ProfileResult) -> float:
    return statistics.median(one.cpu_seconds for one in outcome.own) * 1000


def say(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("path", type=Path, help="LoCoMo's file")
    parser.add_argument("--embedders", default="encoder")
    parser.add_argument("--cache", type=Path, help="keep the filled spaces there")
    options = parser.parse_args()
    dataset = open_dataset("locomo", DatasetOptions(path=options.path))
    for embedder in options.embedders.split(","):
        shelf = SpaceProvider(Settings(), embedder=embedder, cache_folder=options.cache)
        measured = run_evaluation(dataset, profiles(), RunPlan(foreign="off"), shelf)
        base = next(_cost(one) for one in measured.outcomes if one.label == BASE)
        print(f"\n{dataset.title}, {GROUP}, {measured.model}\n")
        say("profile", "recall@10", "nDCG@10", "CPU ms a recall", "times words alone")
        say(*["---"] * 5)
        for outcome in measured.outcomes:
            say(*row(outcome, base, dataset.groups[GROUP]))


if __name__ == "__main__":
    main()
