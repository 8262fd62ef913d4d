"""Starts a worker: ``python -m recollect.worker``, which `recollect.worker.starting` calls."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from recollect.worker.place import Place
from recollect.worker.running import run_detached


def main() -> int:
    """Reads where the worker is to be, and starts it."""
    words = ArgumentParser(prog="python -m recollect.worker")
    words.add_argument("--folder", type=Path, required=True)
    words.add_argument("--state", type=Path, required=True)
    words.add_argument("--key", required=True)
    words.add_argument("--idle", type=int, required=True)
    given = words.parse_args()
    return run_detached(Place(given.folder, given.state, given.key), given.idle)


if __name__ == "__main__":
    sys.exit(main())
