"""Install trained weights as data of the package, with their vocabulary."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from bethink.models.embed.encoder import ENCODER_VOCABULARY, ENCODER_WEIGHTS

MAX_BYTES = 22_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="the folder with train.py's encoder-N.npz")
    parser.add_argument("vocabulary", type=Path, help="pack.py's vocabulary.txt")
    parser.add_argument("folder", type=Path, help="the package's folder of data")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    for path in sorted(given.weights.glob("encoder-?.npz")):
        with np.load(path) as file:
            arrays |= {name: file[name] for name in file.files}
    pieces = given.vocabulary.read_text(encoding="utf-8")
    assert len(arrays["table"]) == pieces.count("\n") + 1
    # Not compressed: a wheel is, and reading is faster.
    np.savez(given.folder / ENCODER_WEIGHTS, **dict(sorted(arrays.items())))
    (given.folder / ENCODER_VOCABULARY).write_text(pieces, encoding="utf-8")
    sizes = {path.name: path.stat().st_size for path in sorted(given.folder.glob("encoder-*"))}
    print(sizes)
    assert sum(sizes.values()) <= MAX_BYTES, sizes


if __name__ == "__main__":
    main()
