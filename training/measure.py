"""The evaluation sets and what is counted on them: plain cosine, nothing else.

Beside the sets of a folder there are paragraphs of the translated help, which ``collect.py``
holds back: asked for by their translation, by one sentence of it, and in their own language by
a sentence of them or by one that was taken out of them ("rest").
"""

from __future__ import annotations

import gzip
import json
import re
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
TRANSLATED = ("de", "ru", "zh", "ja")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])(?=.)")


class EvaluationSet(NamedTuple):
    """Memories and the questions about them: texts, or their token ids."""

    name: str
    ids: list[str]
    texts: list[Any]
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


def load_paragraphs(path: Path) -> list[EvaluationSet]:
    """Sets of the translated paragraphs that were held back, if they are there."""
    if not path.is_file():
        return []
    rows = _read_rows(path)
    ids = [row["id"] for row in rows]

    def make(name: str, texts: list[str], questions: list[str]) -> EvaluationSet:
        asked = [
            {"question": one, "relevant": [row]} for row, one in zip(ids, questions, strict=True)
        ]
        return EvaluationSet(name, ids, texts, asked)

    found = []
    for language in ("en", *TRANSLATED):
        texts = [row[language] for row in rows]
        parts = [_SENTENCE.split(text) for text in texts]
        # The longest sentence says most; where there is one only, its second half asks.
        longest = [max(some, key=len) for some in parts]
        halves = [text[len(text) // 2 :] for text in texts]
        asked = [
            one if len(some) > 1 else half
            for one, some, half in zip(longest, parts, halves, strict=True)
        ]
        rest = [text.replace(one, " ") for text, one in zip(texts, asked, strict=True)]
        if language != "en":
            english = [row["en"] for row in rows]
            found.append(make(f"{language} asks en", english, texts))
            found.append(make(f"{language} sentence asks en", english, asked))
        found.append(make(f"{language} sentence", texts, asked))
        found.append(make(f"{language} rest", rest, asked))
    return found


def write_encoded(
    path: Path, sets: Sequence[EvaluationSet], encode: Callable[[str], list[int]]
) -> None:
    """Write sets with token ids instead of texts."""
    made = [
        one._replace(
            texts=[encode(text) for text in one.texts],
            questions=[row | {"question": encode(row["question"])} for row in one.questions],
        )
        for one in sets
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(made, file)


def read_encoded(path: Path) -> list[EvaluationSet]:
    """Read what ``write_encoded`` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [EvaluationSet(*row) for row in json.load(file)]


def unrelated(
    sets: Sequence[EvaluationSet], embed: Callable[[list[Any]], np.ndarray]
) -> dict[str, list[float]]:
    """Mean cosine of two different paragraphs, by language, and what one of twenty exceeds."""
    made = {}
    for one in sets:
        language, _, what = one.name.partition(" ")
        if what == "sentence":
            vectors = embed(one.texts)
            cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
            figures = (cosines.mean(), np.quantile(cosines, 0.95))
            made[f"{language} unrelated"] = [round(float(one), 3) for one in figures]
    return made


def summarise(
    sets: Sequence[EvaluationSet], embed: Callable[[list[Any]], np.ndarray]
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
