"""Works on a space until it is killed: MODE PATH, says "ready" before it begins.

maintain   one run after another, the memories being cold
erase      erases all memories that hold the word canary, one by one
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from bethink import Memory
from bethink.config.settings import Settings
from bethink.maintain.consolidate import Consolidate
from bethink.testing import FixedClock

LATER = datetime(2026, 11, 1, tzinfo=UTC)


def main(mode: str, path: str) -> None:
    memory = Memory.open(path=path, settings=Settings(embedder="none"), clock=FixedClock(LATER))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if mode == "erase":
        for item in memory.browse(limit=1000, include_superseded=True):
            if "canary" in item.text and memory.store.items.get([item.id]):
                memory.forget(item.id, erase=True)
    else:
        jobs = (Consolidate(most_group=3), "duplicates")
        while memory.maintain(*jobs, share=0.5, clock_is_right=True).run:
            pass
    sys.stdout.write("done\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
