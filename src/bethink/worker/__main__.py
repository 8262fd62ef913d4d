"""Entry point of the worker process: ``python -m bethink.worker``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from bethink.worker.files import WorkerPaths
from bethink.worker.process import run_detached


def main() -> int:
    """Parse the worker's paths from the arguments and start it."""
    parser = ArgumentParser(prog="python -m bethink.worker")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--idle", type=int, required=True)
    options = parser.parse_args()
    return run_detached(WorkerPaths(options.folder, options.state, options.key), options.idle)


if __name__ == "__main__":
    sys.exit(main())
