"""Questions of evaluation sets with the first memories that recall gives, in word pieces.

    python training/check_answers.py OUT FOLDER[:QUESTIONS]... --cache DIR

writes OUT for ``train_answers.py --check``: for each question up to three pairs, the set and the
type it is of, whether it has an answer, whether each memory is one, and the confidence that recall
gave. FOLDER has stores as ``bethink eval`` reads them, of which the first questions are asked or
all; they are measured on, never learnt from.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from answers import NOTE_PIECES, QUESTION_PIECES, in_rows
from bethink.config.settings import Settings
from bethink.core.speakers import with_speaker
from bethink.eval.case import Question
from bethink.eval.datasets import DatasetOptions, find_datasets
from bethink.eval.runner import run_recall
from bethink.eval.spaces import FilledSpace, SpaceProvider
from bethink.model import Candidate, Recall
from bethink.retrieval.profile import load_profile
from pairs import student_ids, teacher_ids

READ = 3


def read_text(hit: Candidate) -> str:
    item, part = hit.item, hit.passage
    text = item.text if part is None else item.text[part.start : part.end]
    return f"{item.speaker}: {text}" if item.speaker and with_speaker(item) != item.text else text


def ask_all(
    folder: Path, first: int | None, spaces: SpaceProvider
) -> Iterator[tuple[str, FilledSpace, Question, Recall]]:
    """Each question of a folder, or the first ones, with its store and what recall gives."""
    profile = load_profile("default")
    for dataset in find_datasets([folder], DatasetOptions()):
        left = first
        for case in dataset.cases():
            with spaces.open(dataset.name, case) as filled:
                for question in islice(case.questions, left):
                    asked = replace(question, now=question.now or case.now)
                    yield case.name, filled, question, run_recall(filled, asked, profile)
            left = left if left is None else max(0, left - len(case.questions))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="+", metavar="FOLDER[:QUESTIONS]")
    parser.add_argument("--cache", type=Path, required=True, help="keeps the filled stores")
    given = parser.parse_args()
    spaces = SpaceProvider(Settings(), cache_folder=given.cache)
    texts: list[str] = []
    sizes: list[int] = []
    sets: list[str] = []
    pairs: list[tuple[int, int]] = []
    known: list[tuple[str, str, bool, bool, float]] = []
    for named in given.folders:
        path, _, first = named.partition(":")
        folder = Path(path)
        for name, filled, question, answer in ask_all(
            folder, int(first) if first else None, spaces
        ):
            place = len(texts)
            texts.append(question.text)
            sizes.append(QUESTION_PIECES)
            for hit in answer.hits[:READ]:
                sets.append(folder.name)
                pairs.append((place, len(texts)))
                texts.append(read_text(hit))
                sizes.append(NOTE_PIECES)
                is_hit = filled.units.get(hit.item.id) in question.relevant
                kind = (name, question.category, question.answerable)
                known.append((*kind, is_hit, answer.confidence))
        print(f"{folder.name}: {sets.count(folder.name)} pairs", flush=True)
    pieces, lengths = in_rows(list(teacher_ids(texts)), np.array(sizes))
    own_pieces, own_lengths = in_rows(list(student_ids(texts)), np.array(sizes))
    np.savez_compressed(
        given.out, pieces=pieces, lengths=lengths, own_pieces=own_pieces,
        own_lengths=own_lengths, pairs=np.array(pairs, np.int32), sets=np.array(sets),
        known=np.array(known, "U40,U20,?,?,f4"),
    )  # fmt: skip
    print(f"{len({place for place, _ in pairs})} questions, {len(pairs)} pairs")


if __name__ == "__main__":
    main()
