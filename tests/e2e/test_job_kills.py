"""Every job of maintenance, killed at random moments, is taken up again and finishes."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import warm
from bethink import Memory
from bethink.config.settings import Settings
from bethink.maintain import JOBS
from bethink.testing import FixedClock
from thorough import examples

SCRIPT = Path(__file__).parent / "scripts" / "all_jobs.py"
EARLY = datetime(2026, 1, 1, 9, tzinfo=UTC)
LATER = datetime(2026, 11, 1, tzinfo=UTC)
KILLS = examples(2, 5)


def opened(path: Path, now: datetime) -> Memory:
    return Memory.open(path=path, settings=Settings(embedder="hash"), clock=FixedClock(now))


def told() -> list[dict[str, object]]:
    """Something for every job: cold ones, facts, near-duplicates, tickets, topics."""
    drafts: list[dict[str, object]] = []
    for n in range(16):
        at = EARLY - timedelta(days=n)
        drafts += [
            {"text": f"Atlas saw {n} boats pass the lock {n * 3}", "layer": "context",
             "entities": ["project:Atlas"], "importance": 0.2, "occurred_at": at},
            {"text": f"Birch crew {n} has {n + 2} oars", "kind": "fact", "topic": f"crew {n % 3}",
             "entities": ["project:Birch", f"person:Rower{n}"], "occurred_at": at},
            {"text": f"The bridge {n} opens for ships with tall masts"},
            {"text": f"The bridge {n} opens for ships with tall masts, also on Sundays"},
            {"text": f"FW-{n % 5} is blocked by crane {n}", "occurred_at": at},
        ]  # fmt: skip
    return drafts


def killed(job: str, folder: Path, after_s: float | None) -> bool:
    """Runs the job and kills it so long after it began; whether it was done before."""
    words = [sys.executable, str(SCRIPT), job, str(folder / "space.db"), str(folder / "notes")]
    worker = warm.popen(words, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    if after_s is not None:
        time.sleep(after_s)
        worker.kill()
    # Not communicate: with a time-out it reads past what readline has taken in already.
    said = worker.stdout.read()
    worker.wait(120)
    worker.stdout.close()
    return "done" in said


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_killed_anywhere_is_finished(job: str, tmp_path: Path) -> None:
    """Nothing told is lost or changed, whatever left recall has a live successor, and in
    the end there is nothing left to do."""
    path, rng = tmp_path / "space.db", random.Random(job)
    with opened(path, EARLY) as memory:
        texts = {
            kept.id: str(draft["text"])
            for kept, draft in zip(memory.remember_many(told()), told(), strict=True)
        }

    for _ in range(KILLS):
        killed(job, tmp_path, rng.uniform(0.0, 0.4))
        with opened(path, LATER) as memory:
            check(memory, texts, job)
    assert killed(job, tmp_path, None)

    with opened(path, LATER) as memory:
        check(memory, texts, job)
        assert all(finding.ok for finding in memory.doctor())
        gone = [key for key, item in memory.store.items.get(list(texts)).items() if item.live_to]
        assert sorted(memory.restore(*gone)) == sorted(gone) if gone else True
        assert all(item.live_to is None for item in memory.store.items.get(list(texts)).values())
    assert not list(tmp_path.rglob("*.tmp"))


def check(memory: Memory, texts: dict[str, str], job: str) -> None:
    items = memory.store.items.get(list(texts))
    assert {key: item.text for key, item in items.items()} == texts
    gone = [key for key, item in items.items() if item.live_to or item.status != "active"]
    if job == "forget":
        return  # what is forgotten has no successor; it can be restored
    links = memory.store.graph.links_of(gone, ("derives_from", "supersedes")) if gone else []
    live = {
        key
        for key, item in memory.store.items.get([link.src.id for link in links]).items()
        if item.live_to is None
    }
    held = {link.dst.id for link in links if link.src.id in live}
    assert held.issuperset(gone), "hidden without a successor"
