"""Entry point of the worker process: ``python -m bethink.worker FOLDER STATE KEY IDLE``."""

from __future__ import annotations

import sys
from pathlib import Path

from bethink.worker.files import WorkerPaths
from bethink.worker.process import run_detached

if __name__ == "__main__":
    folder, state, key, idle_s = sys.argv[1:]
    sys.exit(run_detached(WorkerPaths(Path(folder), Path(state), key), int(idle_s)))
