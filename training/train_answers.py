"""Train the model of answers: whether a note answers a question, or is only about its subject.

    python training/train_answers.py FOLDER --out answers-1.npz

FOLDER has what ``run.py answers`` made. Teachers and student are those of the model of two
memories (``train_pairs.py``): all-mpnet-base-v2 reads question and note together, a small
student learns its answers. ``--check FILE`` has further pairs in word pieces; what teachers and
student say of them is kept in ``check.npz``. PyTorch and a GPU are needed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from train import read_teacher, stored
from train_pairs import UNLABELLED, Student, Texts, answer, fit_student, fit_teacher

ANSWERS = 0
# Of the teachers: how many, pairs in a batch, the highest rate.
T_SEEDS, T_BATCH, T_RATE = (1,), 128, 5e-5


def two_classes(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights with one score, the log-odds: the other two classes are not used."""
    made = {
        name: (weights[name][ANSWERS].astype(np.float32) - weights[name][1]).astype(np.float16)
        for name in ("head.weight", "head.bias")
    }
    return weights | {name: value[None] for name, value in made.items()}


def area(said: np.ndarray, labels: np.ndarray) -> float:
    ranks = said.argsort().argsort()[labels == ANSWERS]
    return float((ranks.mean() - (len(ranks) - 1) / 2) / (labels != ANSWERS).sum())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("answers-1.npz"))
    parser.add_argument("--leave-out", default="", help="a source of questions, measured only")
    parser.add_argument("--check", type=Path)
    parser.add_argument("--goals", type=Path, help="what the teachers said in an earlier run")
    parser.add_argument("--seconds", type=float, default=400, help="how long the student learns")
    given = parser.parse_args()
    data = np.load(given.folder / "answers.npz")
    check = np.load(given.check) if given.check else None
    texts = Texts(data["pieces"], data["lengths"])
    own = Texts(data["own_pieces"], data["own_lengths"])
    left = data["sources"][data["labelled"][:, 0]] == given.leave_out
    taught, labels = data["labelled"][~left], data["labels"][~left].astype(np.int64)
    held, held_labels = data["labelled"][left], data["labels"][left]
    unlabelled = data["unlabelled"]
    unlabelled = unlabelled[data["sources"][unlabelled[:, 0]] != given.leave_out]
    pairs = np.concatenate([taught, unlabelled])
    goals = np.zeros((len(pairs), 4), np.float32)
    said: dict[str, np.ndarray] = {}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if given.goals:
        goals = np.load(given.goals)["goals"].astype(np.float32)
    else:
        weights: dict[str, torch.Tensor] = {}
        for path in sorted(given.folder.glob("mpnet*.npz")):
            weights |= read_teacher(path)
        for seed in T_SEEDS:
            teacher = fit_teacher(weights, texts, taught, labels, seed, T_BATCH, T_RATE)
            goals += answer(teacher, texts, pairs) / len(T_SEEDS)
            if len(held):
                print(
                    f"teacher {seed}: AUC {area(answer(teacher, texts, held)[:, ANSWERS], held_labels):.3f}",
                    flush=True,
                )
            if check:
                known = Texts(check["pieces"], check["lengths"])
                said[f"teacher{seed}"] = answer(teacher, known, check["pairs"])[:, ANSWERS]
            del teacher
        np.savez_compressed(given.out.with_name("goals.npz"), goals=goals.astype(np.float16))
    labels = np.concatenate([labels, np.full(len(unlabelled), UNLABELLED)])
    student = Student(read_teacher(given.folder / "teacher.npz"), given.folder / "encoder.npz")
    student = fit_student(student, own, pairs, labels, goals, given.seconds)
    if len(held):
        print(
            f"student: AUC {area(answer(student, own, held)[:, ANSWERS], held_labels):.3f}",
            flush=True,
        )
    if check:
        known = Texts(check["own_pieces"], check["own_lengths"])
        said["student"] = answer(student, known, check["pairs"])[:, ANSWERS]
        np.savez_compressed(given.out.with_name("check.npz"), **said)
    np.savez(given.out, **two_classes(stored(student)))


if __name__ == "__main__":
    main()
