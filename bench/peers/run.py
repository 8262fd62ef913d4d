"""Bethink and others on the same conversations, questions and vectors.

    python bench/peers/run.py locomo-dev.json.gz

Needs an environment with bench/peers/requirements.txt; `--systems` chooses among those
installed. Nothing is fetched and nobody is asked: see offline.py. Times are CPU of the
whole process, embedding of the question included; ratios between rows mean more than
the numbers.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from offline import go_offline
from systems import SYSTEMS, Build, Turn, fresh

from bethink.eval.case import Case, Question
from bethink.eval.datasets import DatasetOptions, open_dataset
from bethink.eval.case import sample_foreign_questions
from bethink.eval.metrics import get_metric
from bethink.models import open_embedder
from bethink.ports import Embedder
from bethink.version import __version__

METRICS = ("hit@10", "recall@10", "mrr", "ndcg@10")
K = 10
STRANGERS = 200
SEED = 7


class Answer(NamedTuple):
    """The units that came, what the question wanted, what it took, what it costs to read."""

    question: Question
    ranked: list[str]
    cpu_ms: float
    tokens: int


class Measured(NamedTuple):
    """One system with one embedder."""

    own: list[Answer]
    foreign: list[Answer]
    stored: int
    storing_cpu: float


def turns_of(case: Case) -> list[Turn]:
    """A turn as people would write it into a system without fields for that."""
    return [
        Turn(unit, f"{draft.speaker} ({draft.occurred_at:%d %B %Y}): {draft.text}", draft)
        for unit, draft in zip(case.units, case.drafts, strict=True)
    ]


def measure(build: Build, cases: Sequence[Case], embedder: Embedder | None) -> Measured:
    """Every conversation into a space of its own, then its questions and foreign ones."""
    measured = Measured([], [], sum(len(case.drafts) for case in cases), 0.0)
    counter = open_embedder()
    assert counter is not None
    for case in cases:
        turns = turns_of(case)
        costs = {turn.key: counter.count_tokens(turn.draft.text) for turn in turns}
        strangers = sample_foreign_questions(cases, case, STRANGERS // len(cases), SEED)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            begun = time.process_time()
            with closing(build(fresh(Path(folder)), embedder)) as system:
                system.store(turns)
                measured = measured._replace(
                    storing_cpu=measured.storing_cpu + time.process_time() - begun
                )
                system.ask(case.questions[0].text, K)  # the first pays for opening indexes
                for questions, into in (
                    (case.questions, measured.own),
                    (strangers, measured.foreign),
                ):
                    for question in questions:
                        begun = time.process_time()
                        ranked = system.ask(question.text, K)[:K]
                        spent = (time.process_time() - begun) * 1000
                        tokens = sum(costs.get(key, 0) for key in ranked)
                        into.append(Answer(question, ranked, spent, tokens))
    return measured


def row(name: str, measured: Measured, categories: Sequence[str]) -> list[str]:
    own = [one for one in measured.own if not categories or one.question.category in categories]
    quality = [
        f"{statistics.fmean(score(one.ranked, one.question.relevant) for one in own):.3f}"
        for score in map(get_metric, METRICS)
    ]
    silent = [not one.ranked for one in measured.foreign]
    return [
        name,
        *quality,
        f"{statistics.median(one.cpu_ms for one in measured.own):.2f}",
        f"{measured.stored / measured.storing_cpu:,.0f}",
        f"{statistics.fmean(one.tokens for one in measured.own):.0f}",
        f"{statistics.fmean(silent):.1%}" if silent else "",
    ]


def say(cells: Sequence[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


MINILM = "sentence-transformers:all-MiniLM-L6-v2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("path", type=Path, help="LoCoMo's file")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="which, with commas")
    parser.add_argument("--embedder", default=MINILM, help="whose vectors all are given")
    parser.add_argument("--limit", type=int, default=0, help="only so many conversations")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    dataset = open_dataset("locomo", DatasetOptions(path=options.path, limit=options.limit))
    cases = list(dataset.cases())
    chosen = [name.strip() for name in options.systems.split(",")]
    told = [f"{package} {version(package)}" for name in chosen for package in SYSTEMS[name][0]]
    told = [f"Python {platform.python_version()}", f"bethink {__version__}", *told]
    print(f"{', '.join(told)}; {len(cases)} conversations\n")
    say(
        ["system", "vectors", *METRICS, "CPU ms a question", "stored a CPU second", "tokens",
         "foreign questions answered with nothing"]
    )  # fmt: skip
    say(["---"] * (len(METRICS) + 6))
    with tempfile.TemporaryDirectory() as home:
        go_offline(home)
        embedder = open_embedder(options.embedder)
        for name in chosen:
            _, has_vectors, build = SYSTEMS[name]
            measured = measure(build, cases, embedder)
            for group, categories in (("1-4", dataset.groups["categories 1-4"]), ("all", ())):
                cells = row(f"{name}, categories {group}", measured, categories)
                say([cells[0], options.embedder if has_vectors else "none", *cells[1:]])


if __name__ == "__main__":
    main()
