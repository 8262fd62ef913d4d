"""Questions of evaluation sets with the first memories that recall gives, in word pieces.

    python training/check_answers.py OUT FOLDER... --cache DIR

writes OUT for ``train_answers.py --check``: for each question up to three pairs, its type,
whether it has an answer, whether each memory is one, and the confidence that recall gave.
FOLDER has stores as ``bethink eval`` reads them; they are measured on, never learnt from.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from answers import NOTE_PIECES, QUESTION_PIECES, in_rows
from bethink.config.settings import Settings
from bethink.core.speakers import with_speaker
from bethink.eval.datasets import DatasetOptions, find_datasets
from bethink.eval.runner import run_recall
from bethink.eval.spaces import SpaceProvider
from bethink.model import Candidate
from bethink.retrieval.profile import load_profile
from pairs import student_ids, teacher_ids

READ = 3


def read_text(hit: Candidate) -> str:
    item, part = hit.item, hit.passage
    text = item.text if part is None else item.text[part.start : part.end]
    return f"{item.speaker}: {text}" if item.speaker and with_speaker(item) != item.text else text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--cache", type=Path, required=True, help="keeps the filled stores")
    given = parser.parse_args()
    spaces = SpaceProvider(Settings(), cache_folder=given.cache)
    profile = load_profile("default")
    texts: list[str] = []
    sizes: list[int] = []
    pairs: list[tuple[int, int]] = []
    known: list[tuple[str, str, bool, bool, float]] = []
    for dataset in find_datasets(given.folders, DatasetOptions()):
        for case in dataset.cases():
            with spaces.open(dataset.name, case) as filled:
                for question in case.questions:
                    asked = replace(question, now=question.now or case.now)
                    answer = run_recall(filled, asked, profile)
                    texts.append(question.text)
                    sizes.append(QUESTION_PIECES)
                    place = len(texts) - 1
                    for hit in answer.hits[:READ]:
                        pairs.append((place, len(texts)))
                        texts.append(read_text(hit))
                        sizes.append(NOTE_PIECES)
                        is_hit = filled.units.get(hit.item.id) in question.relevant
                        kind = (case.name, question.category, question.answerable)
                        known.append((*kind, is_hit, answer.confidence))
    pieces, lengths = in_rows(list(teacher_ids(texts)), np.array(sizes))
    own_pieces, own_lengths = in_rows(list(student_ids(texts)), np.array(sizes))
    np.savez_compressed(
        given.out, pieces=pieces, lengths=lengths, own_pieces=own_pieces,
        own_lengths=own_lengths, pairs=np.array(pairs, np.int32),
        known=np.array(known, "U40,U20,?,?,f4"),
    )  # fmt: skip
    print(f"{len({place for place, _ in pairs})} questions, {len(pairs)} pairs")


if __name__ == "__main__":
    main()
