"""Measure the installed encoder: hits of plain cosine on the evaluation sets, and speed.

    python training/evaluate.py FOLDER [--embedder NAME]

FOLDER has ``notes/`` and ``more/``. Speed is in CPU time of one thread.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import thread_time

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np

from bethink.models import open_embedder
from bethink.ports import Embedder
from measure import load_paragraphs, load_sets, summarise, unrelated

QUESTION = "which of the two servers in the basement was replaced after the storm?"
TEXT = (
    "We moved the nightly backup from Tuesday to Friday because the billing job needs the disk "
    "then, and Marta asked that nobody restarts the old machine before the audit is over."
)
TARGETS = {
    "notes paraphrase": {1: 0.42, 10: 0.83},
    "cosqa-dev": {10: 0.76},
    "xquad-en": {1: 0.83},
    "xquad-de-asks-en": {1: 0.23, 10: 0.56},
}


def measure_speed(embedder: Embedder) -> tuple[float, float, int, int]:
    """Milliseconds a question, texts a second, and the tokens of each."""
    embedder.embed_query("ready?")
    questions = []
    for number in range(200):
        start = thread_time()
        embedder.embed_query(f"{QUESTION[:-1]} {number % 10}?")
        questions.append(thread_time() - start)
    batches = []
    for number in range(5):
        texts = [f"{TEXT} {place % 10}{number}" for place in range(48)]
        start = thread_time()
        embedder.embed(texts)
        batches.append(thread_time() - start)
    tokens = [embedder.count_tokens(text) for text in (QUESTION, TEXT)]
    return 1000 * float(np.median(questions)), 48 / min(batches), tokens[0], tokens[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embedder", default="encoder")
    given = parser.parse_args()
    embedder = open_embedder(given.embedder)
    assert embedder is not None

    def embed(texts: list[str]) -> np.ndarray:
        return np.stack([embedding.vector for embedding in embedder.embed(texts)])

    print(f"{embedder.model}\n\n| set | hit@1 | hit@3 | hit@10 | targets |\n|---|---|---|---|---|")
    paragraphs = load_paragraphs(Path(__file__).parent / "work" / "paragraphs.jsonl")
    sets = [*load_sets(given.folder), *paragraphs]
    for name, hits in summarise(sets, embed).items():
        goals = ", ".join(f"@{cut} {goal:.2f}" for cut, goal in TARGETS.get(name, {}).items())
        print(f"| {name} | {' | '.join(f'{hit:.3f}' for hit in hits)} | {goals} |")
    for name, (mean, often) in unrelated(sets, embed).items():
        print(f"{name}: cosine {mean:.3f}, of one of twenty pairs over {often:.3f}")
    milliseconds, rate, short, long = measure_speed(embedder)
    print(f"\n{milliseconds:.2f} ms a question of {short} tokens (target 3.5)")
    print(f"{rate:.0f} texts/s of {long} tokens on one thread (target 180)")


if __name__ == "__main__":
    main()
