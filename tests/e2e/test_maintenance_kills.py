"""Maintenance and erasing survive kill -9 at any moment: they are taken up and finished."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import warm
from bethink import Memory
from bethink.config.settings import Settings
from bethink.testing import FixedClock

SCRIPT = Path(__file__).parent / "scripts" / "maintaining.py"
EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 11, 1, tzinfo=UTC)
KILLS = 6


def opened(path: Path, now: datetime = LATER) -> Memory:
    return Memory.open(path=path, settings=Settings(embedder="none"), clock=FixedClock(now))


def killed(mode: str, path: Path, after_s: float | None) -> bool:
    """Runs the script and kills it so long after it began; whether it was done before."""
    worker = warm.popen(
        [sys.executable, str(SCRIPT), mode, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    if after_s is not None:
        time.sleep(after_s)
        worker.kill()
    # Not communicate: with a time-out it reads past what readline has taken in already.
    told = worker.stdout.read()
    worker.wait(60)
    worker.stdout.close()
    return "done" in told


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_run_is_finished_by_the_next(tmp_path: Path) -> None:
    """All originals are there, each live or in the lineage of a live learning."""
    path, rng = tmp_path / "space.db", random.Random(5)
    with opened(path, EARLY) as memory:
        told = memory.remember_many(
            [
                {"text": f"Atlas saw {n} boats pass the lock {n * 3}", "layer": "context",
                 "entities": ["project:Atlas"], "importance": 0.2}
                for n in range(60)
            ]
        )  # fmt: skip
        ids = [one.id for one in told]

    for _ in range(KILLS):
        killed("maintain", path, rng.uniform(0.0, 0.25))
        with opened(path) as memory:
            check(memory, ids)
    assert killed("maintain", path, None)

    with opened(path) as memory:
        check(memory, ids)
        # Fewer than three are left over, where killed runs took other threes.
        assert sum(memory.get(one).live_to is None for one in ids) < 3
        assert all(finding.ok for finding in memory.doctor())


def check(memory: Memory, ids: list[str]) -> None:
    items = memory.store.items.get(ids)
    assert len(items) == len(ids)
    gone = [item.id for item in items.values() if item.live_to is not None]
    links = memory.store.graph.links_of(gone, ("derives_from",))
    made = memory.store.items.get(sorted({link.src.id for link in links}))
    live = {key for key, item in made.items() if item.live_to is None}
    held = {link.dst.id for link in links if link.src.id in live}
    assert held.issuperset(gone), "hidden without a successor"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_erase_is_finished_by_the_next(tmp_path: Path) -> None:
    """In the end no byte of a canary, or of what was made from one, is in any file."""
    path, rng = tmp_path / "space.db", random.Random(6)
    with opened(path, EARLY) as memory:
        for n in range(12):
            one = memory.remember(f"zqx canary number {n} sings at dawn {n}").id
            memory.remember(f"zqx canary {n} was heard, says somebody", derives_from=[one])
        memory.remember_many([f"Gauge {n} stands at bridge {n}" for n in range(20)])

    for _ in range(KILLS):
        killed("erase", path, rng.uniform(0.0, 0.3))
    assert killed("erase", path, None)

    with opened(path) as memory:
        assert all(finding.ok for finding in memory.doctor())
        assert memory.store.admin.count() == 20
    left = [file.name for file in tmp_path.iterdir() if b"zqx" in file.read_bytes()]
    assert left == []
