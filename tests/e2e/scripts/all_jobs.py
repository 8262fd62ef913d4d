"""Runs one job again and again until there is nothing left to do: JOB PATH NOTES.

Says "ready" before it begins and "done" at the end; in between it may be killed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bethink import Memory
from bethink.config.settings import Settings
from bethink.maintain import JOBS
from bethink.maintain.cleanup import Forget
from bethink.maintain.consolidate import Concepts, Consolidate
from bethink.maintain.insights import Insights
from bethink.maintain.job import Job
from bethink.testing import FixedClock

LATER = datetime(2026, 11, 1, tzinfo=UTC)
SMALL: dict[str, Callable[[], Job]] = {
    **JOBS,
    "consolidate": lambda: Consolidate(most_group=3),
    "concepts": lambda: Concepts(most_facts=8),
    "insights": lambda: Insights(min_loose=2, min_leaf=2, most_leaf=4),
    "forget": lambda: Forget(drop_from=1.0),
}


def main(job: str, path: str, notes: str) -> None:
    chosen = Settings(embedder="hash", notes_dir=Path(notes))
    memory = Memory.open(path=path, settings=chosen, clock=FixedClock(LATER))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while memory.maintain(SMALL[job](), share=0.2, clock_is_right=True).run:
        pass
    sys.stdout.write("done\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
