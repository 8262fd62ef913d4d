"""The evaluation sets and what is counted on them: plain cosine, nothing else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

NOTES = ("backend-team", "personal", "support-desk")
MORE = (
    "cosqa-dev",
    "xquad-en",
    "xquad-de-asks-en",
    "knowme-3",
    "realtalk-1",
    "realtalk-2",
    "realtalk-3",
)
KINDS = ("paraphrase", "direct", "terse", "indirect")
CUTS = (1, 3, 10)


class EvaluationSet(NamedTuple):
    """Memories and the questions about them."""

    name: str
    ids: list[str]
    texts: list[str]
    questions: list[dict[str, Any]]


def load_sets(folder: Path) -> list[EvaluationSet]:
    """All sets that are there."""
    found = []
    for name in NOTES:
        path = folder / "notes" / f"{name}.jsonl"
        if path.is_file():
            found.append(_make_set(name, path, path.with_suffix(".questions.jsonl")))
    for name in MORE:
        path = folder / "more" / name
        if path.is_dir():
            found.append(_make_set(name, path / "memories.jsonl.gz", path / "questions.jsonl.gz"))
    return found


def _make_set(name: str, memories: Path, questions: Path) -> EvaluationSet:
    rows = _read_rows(memories)
    asked = [row for row in _read_rows(questions) if row["relevant"]]
    return EvaluationSet(name, [row["id"] for row in rows], [row["text"] for row in rows], asked)


def _read_rows(path: Path) -> list[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def summarise(
    sets: Sequence[EvaluationSet], embed: Callable[[list[str]], np.ndarray]
) -> dict[str, list[float]]:
    """hit@1, @3 and @10 by set; of the notes by type of question, over all three stores."""
    hits: dict[str, list[list[bool]]] = {}
    for one in sets:
        memories = embed(one.texts)
        questions = embed([row["question"] for row in one.questions])
        order = np.argsort(-(questions @ memories.T), axis=1, kind="stable")[:, : max(CUTS)]
        for row, best in zip(one.questions, order, strict=True):
            relevant = set(row["relevant"])
            flags = [one.ids[place] in relevant for place in best]
            kind = row.get("type") if one.name in NOTES else ""
            if one.name in NOTES and kind not in KINDS:
                continue
            name = f"notes {kind}" if kind else one.name
            hits.setdefault(name, []).append([any(flags[:cut]) for cut in CUTS])
    return {
        name: [round(float(x), 3) for x in np.mean(rows, axis=0)] for name, rows in hits.items()
    }
