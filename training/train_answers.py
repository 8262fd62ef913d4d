"""Train the model of answers: whether a note answers a question, or is only about its subject.

    python training/train_answers.py FOLDER --check check.npz --seconds 0
    python training/train_answers.py FOLDER --check check.npz --goals FOLDER/goals.npz

FOLDER has what ``run.py answers`` made. Teachers and student are those of the model of two
memories (``train_pairs.py``): two of all-mpnet-base-v2 read question and note together and learn
the labelled pairs, while ``alter_answers.py`` writes them again in other words; a small student
learns what both teachers say of all pairs. The first line makes the teachers' answers alone
(``goals.npz``), the second the student alone. ``--check`` has further pairs in word pieces; what
teachers and student say of them is kept beside OUT, and ``judge_answers.py`` prints how well
answers are told from near misses. PyTorch and a GPU are needed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from zlib import crc32

import numpy as np
import torch

from alter_answers import ALTERED
from answers import ANSWERS, ANSWERS_NOT
from bethink.models.embed.encoder import ENCODER_DATA, ENCODER_WEIGHTS
from judge_answers import area, judge
from train import read_teacher, stored
from train_pairs import (
    BUDGET,
    CLASSES,
    UNLABELLED,
    Student,
    Texts,
    answer,
    fit_student,
    fit_teacher,
)

HERE = Path(__file__).resolve().parent
# Of the teachers: how many, pairs in a batch, the highest rate; pairs that they answer at a time.
T_SEEDS, T_BATCH, T_RATE, T_BLOCK = (1, 2), 128, 5e-5, 50_000
# Of the student: pairs in a batch, the highest rate.
BATCH, RATE = 1024, 8e-4


def two_classes(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights with one score, the log-odds: the other two classes are not used."""
    made = {
        name: (weights[name][ANSWERS].astype(np.float32) - weights[name][1]).astype(np.float16)
        for name in ("head.weight", "head.bias")
    }
    return weights | {name: value[None] for name, value in made.items()}


def read_parts(folder: Path, name: str) -> dict[str, torch.Tensor]:
    """The weights of a model that lie in one file or several."""
    weights: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob(f"{name}*.npz")):
        weights |= read_teacher(path)
    return weights


def score(shares: np.ndarray) -> np.ndarray:
    """The log-odds that a note answers."""
    bounded = shares[:, : ANSWERS_NOT + 1].astype(np.float64).clip(1e-7)
    made: np.ndarray = np.log(bounded[:, ANSWERS] / bounded[:, ANSWERS_NOT])
    return made.astype(np.float32)


class Data:
    """The pairs with labels, the unlabelled ones, and once they are made the altered ones."""

    def __init__(self, folder: Path, left_out: str) -> None:
        self.data = dict(np.load(folder / "answers.npz"))
        labelled, sources = self.data["labelled"], self.data["sources"]
        labels = np.minimum(self.data["kinds"], ANSWERS_NOT).astype(np.int64)
        left = sources[labelled[:, 0]] == left_out
        self.taught, self.labels = labelled[~left], labels[~left]
        self.held, self.held_labels = labelled[left], labels[left]
        unlabelled = self.data["unlabelled"]
        unlabelled = unlabelled[sources[unlabelled[:, 0]] != left_out]
        self.pairs = np.concatenate([self.taught, unlabelled])
        self.mark = 0

    def add_altered(self, path: Path) -> None:
        """Add the altered pairs to the unlabelled ones, in any order: a part has all kinds."""
        before = len(self.data["lengths"])
        with np.load(path) as file:
            self.mark = crc32(file["own_pieces"])
            for own in ("", "own_"):
                lengths = file[own + "lengths"].astype(np.int16)
                old = self.data[own + "pieces"]
                rows = np.zeros((len(lengths), old.shape[1]), np.uint16)
                rows[np.arange(old.shape[1]) < lengths[:, None]] = file[own + "pieces"]
                self.data[own + "pieces"] = np.concatenate([old, rows])
                self.data[own + "lengths"] = np.concatenate([self.data[own + "lengths"], lengths])
        altered = np.arange(before, before + len(lengths), dtype=np.int32).reshape(-1, 2)
        rest = np.concatenate([self.pairs[len(self.taught) :], altered])
        rest = np.random.default_rng(3).permutation(rest)
        self.pairs = np.concatenate([self.taught, rest])

    def texts(self, own: str = "") -> Texts:
        return Texts(self.data[own + "pieces"], self.data[own + "lengths"])


def print_area(name: str, shares: np.ndarray, labels: np.ndarray) -> None:
    said, right = shares[:, ANSWERS], labels == ANSWERS
    print(f"{name}: AUC {area(said[right], said[~right]):.4f}", flush=True)


def make_goals(
    data: Data, given: argparse.Namespace, check: dict[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What the teachers say of the pairs, of the first that there is time for; and of the checks."""
    started = time.time()
    altered = given.folder / "altered.npz"
    writer = subprocess.Popen(
        [sys.executable, str(HERE / "alter_answers.py"), str(given.folder / "answers.npz"),
         str(altered), "--altered", str(given.altered)]
    )  # fmt: skip
    weights = read_parts(given.folder, "mpnet")
    texts, known = data.texts(), Texts(check["pieces"], check["lengths"]) if check else None
    total, count = np.zeros(0, np.float32), np.zeros(0, np.float32)
    said: dict[str, np.ndarray] = {}
    for place, seed in enumerate(T_SEEDS):
        teacher = fit_teacher(weights, texts, data.taught, data.labels, seed, T_BATCH, T_RATE)
        print(f"teacher {seed}: learnt at {time.time() - started:.0f} s", flush=True)
        if len(data.held):
            print_area(f"teacher {seed}", answer(teacher, texts, data.held), data.held_labels)
        if known:
            said[f"teacher{seed}"] = score(answer(teacher, known, check["pairs"]))
        if not place:
            if writer.wait():
                sys.exit("no altered pairs were made")
            data.add_altered(altered)
            texts = data.texts()
            total, count = np.zeros((2, len(data.pairs)), np.float32)
        until, done = started + given.until * (place + 1) / len(T_SEEDS), 0
        while done < len(data.pairs) and (time.time() < until or not done):
            rows = slice(done, done + T_BLOCK)
            total[rows] += answer(teacher, texts, data.pairs[rows])[:, ANSWERS]
            count[rows] += 1
            done += T_BLOCK
        print(f"teacher {seed}: {int((count > place).sum())} of {len(data.pairs)} pairs answered at "
              f"{time.time() - started:.0f} s", flush=True)  # fmt: skip
        del teacher
    return (total / count.clip(1))[count > 0], said


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("answers-1.npz"))
    parser.add_argument("--leave-out", default="", help="a source of questions, measured only")
    parser.add_argument("--check", type=Path)
    parser.add_argument("--altered", type=int, default=ALTERED, help="pairs that are altered")
    parser.add_argument("--until", type=float, default=3000, help="seconds that teachers have")
    parser.add_argument("--goals", type=Path, help="what the teachers said in an earlier run")
    parser.add_argument("--seconds", type=float, default=400, help="how long the student learns")
    parser.add_argument("--budget", type=int, default=BUDGET, help="weights of the student")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--rate", type=float, default=RATE)
    given = parser.parse_args()
    data = Data(given.folder, given.leave_out)
    check = dict(np.load(given.check)) if given.check else {}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    kept = given.out.with_name(f"{given.out.stem}-check.npz")
    if given.goals:
        with np.load(given.goals) as file:
            shares, mark = file["shares"].astype(np.float32), int(file["mark"])
            said = {name: file[name] for name in file.files if name.startswith("teacher")}
        data.add_altered(given.folder / "altered.npz")
        if mark != data.mark:
            sys.exit("the teachers answered other altered pairs")
    else:
        shares, said = make_goals(data, given, check)
        stored_goals = {"shares": shares.astype(np.float16), "mark": np.array(data.mark)}
        np.savez(given.folder / "goals.npz", **stored_goals, **said)
    print(f"{len(shares)} pairs, of which teachers say of {(shares > 0.5).mean():.2f} that they are answers",
          flush=True)  # fmt: skip
    if given.seconds:
        learn(data, given, shares, check, said)
    if check:
        np.savez_compressed(kept, **said)
        print("\n".join(judge(check, said)), flush=True)


def learn(
    data: Data,
    given: argparse.Namespace,
    shares: np.ndarray,
    check: dict[str, np.ndarray],
    said: dict[str, np.ndarray],
) -> None:
    """Train the student, store it, and add what it says of the checks."""
    pairs, own = data.pairs[: len(shares)], data.texts("own_")
    goals = np.zeros((len(pairs), CLASSES), np.float32)
    goals[:, ANSWERS], goals[:, ANSWERS_NOT] = shares, 1 - shares
    labels = np.full(len(pairs), UNLABELLED, np.int64)
    labels[: len(data.labels)] = data.labels
    student = Student(read_parts(given.folder, "teacher"), ENCODER_DATA / ENCODER_WEIGHTS)
    student = fit_student(
        student, own, pairs, labels, goals, given.seconds, given.rate,
        size=given.batch, budget=given.budget,
    )  # fmt: skip
    np.savez(given.out, **two_classes(stored(student)))
    if len(data.held):
        print_area("student", answer(student, own, data.held), data.held_labels)
    print_area("student, on pairs it learnt", answer(student, own, data.taught), data.labels)
    if check:
        known = Texts(check["own_pieces"], check["own_lengths"])
        said["student"] = score(answer(student, known, check["pairs"]))


if __name__ == "__main__":
    main()
