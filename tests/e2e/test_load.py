"""A server under a steady load: no error, bounded memory, and more than it can do is turned away.

Short here, long with `make torture`; ``docs/reliability-tests.md`` has the figures. How fast it answers
is printed and not asserted: that depends on the machine.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx
import pytest
from test_serve import room, serving, token

from bethink import Memory
from corpus import NOTES

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]
LENGTH = int(os.environ.get("TORTURE", "1"))
MEMORIES = 10_000 if LENGTH > 1 else 500
RECALLS, WRITES = 50, 10  # a second
_TICKS = os.sysconf("SC_CLK_TCK") if sys.platform == "linux" else 0


class Usage(NamedTuple):
    """What a process has used so far."""

    resident_mb: float
    cpu_s: float


def usage(pid: int) -> Usage:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Usage(int(resident.split()[1]) / 1024, (int(fields[11]) + int(fields[12])) / _TICKS)


def fill(folder: Path, count: int) -> list[str]:
    """Store memories of made-up teams in the space that the server opens; return questions."""
    rng, words = Random(15), [word for note in NOTES for word in str(note["text"]).split()]
    texts = [f"Team {n}: " + " ".join(rng.sample(words, 12)) for n in range(count)]
    (folder / "data").mkdir(parents=True, exist_ok=True)
    with Memory.open(path=folder / "data" / "default.db", embedder="hash") as memory:
        for at in range(0, count, 500):
            memory.remember_many(texts[at : at + 500])
    return [f"what about {' '.join(text.split()[2:6])}?" for text in rng.sample(texts, 200)]


class Load:
    """Requests at a steady rate, whether or not the earlier ones have been answered."""

    def __init__(self, url: str, headers: dict[str, str], questions: list[str]) -> None:
        self.url, self.headers, self.questions = url, headers, questions
        self.answers: list[tuple[int, float, bool]] = []

    async def run(self, seconds: float, times: int = 1) -> list[tuple[int, float, bool]]:
        self.answers = []
        rate = (RECALLS + WRITES) * times
        async with httpx.AsyncClient(base_url=self.url, headers=self.headers, timeout=60) as client:
            start, waiting = time.monotonic(), []
            for number in range(int(rate * seconds)):
                await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
                waiting.append(asyncio.create_task(self._ask(client, number)))
            await asyncio.gather(*waiting)
        return self.answers

    async def _ask(self, client: httpx.AsyncClient, number: int) -> None:
        began = time.monotonic()
        if number % (RECALLS // WRITES + 1):
            told: dict[str, Any] = {"query": self.questions[number % len(self.questions)]}
            done = await client.post("/v1/recall", json=told)
        else:
            told = {"text": f"Note {number} written at {began} about pond {number * 7}"}
            done = await client.post("/v1/memories", json=told)
        took = time.monotonic() - began
        self.answers.append((done.status_code, took, "retry-after" in done.headers))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_goal_r15_a_steady_load_is_borne(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """50 recalls and 10 writes a second, then four times that: answered, or 503 and when to retry."""
    questions = fill(tmp_path, MEMORIES)
    told: Callable[[Path], dict[str, str]] = room
    monkeypatch.setattr("test_serve.room", lambda at: {**told(at), "BETHINK_EMBEDDER": "hash"})
    headers = token(tmp_path, "load", "admin")
    with serving(tmp_path, "--rate", "1000000/min") as server:
        load = Load(server.url, headers, questions)
        asyncio.run(load.run(1))
        before = usage(server.process.pid)
        steady = asyncio.run(load.run(2 * LENGTH))
        after = usage(server.process.pid)
        crowded = asyncio.run(load.run(min(10, LENGTH), times=4))
        peak = usage(server.process.pid)
        crowded += asyncio.run(load.run(min(10, LENGTH), times=4))
        last = usage(server.process.pid)
        asked = {"query": questions[0]}
        calm = httpx.post(f"{server.url}/v1/recall", json=asked, headers=headers, timeout=60)

    times = sorted(took for _, took, _ in steady)
    cpu_ms = 1000 * (after.cpu_s - before.cpu_s) / len(steady)
    turned_away = sum(status != 200 for status, _, _ in steady)
    with capsys.disabled():
        sys.stdout.write(
            f"\nR15: {len(steady)} requests over {MEMORIES:,} memories, {turned_away} turned away, "
            f"{cpu_ms:.1f} ms CPU each, p50 {1000 * times[len(times) // 2]:.0f} ms, "
            f"p99 {1000 * times[-1 - len(times) // 100]:.0f} ms; {before.resident_mb:.0f} MB "
            f"before, {after.resident_mb:.0f} after; at four times that "
            f"{sum(status != 200 for status, _, _ in crowded)} of {len(crowded)} turned away, "
            f"{peak.resident_mb:.0f} MB, then {last.resident_mb:.0f}\n"
        )
    # A busy machine may turn some away even at the usual rate.
    assert {status for status, _, _ in (*steady, *crowded)} <= {200, 429, 503}
    assert all(retry for status, _, retry in (*steady, *crowded) if status != 200)
    assert calm.status_code == 200
    # A fast machine answers the usual rate with few threads; each has a cache of its own.
    assert last.resident_mb <= 1.5 * peak.resident_mb
