"""Many processes on one space: nothing is lost, nobody sees a lock, kills do no harm."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink.store.sqlite import SqliteStore

SCRIPT = Path(__file__).parent / "scripts" / "writers.py"


class Crew:
    """Worker processes, started cheaply and watched by what they log."""

    def __init__(self) -> None:
        self._foreman = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def start(self, *command: str | Path) -> int:
        """A new worker's process id."""
        assert self._foreman.stdin is not None
        assert self._foreman.stdout is not None
        self._foreman.stdin.write("\t".join(map(str, command)) + "\n")
        self._foreman.stdin.flush()
        return int(self._foreman.stdout.readline())

    def close(self) -> None:
        assert self._foreman.stdin is not None
        assert self._foreman.stdout is not None
        self._foreman.stdin.close()
        self._foreman.wait(60)
        self._foreman.stdout.close()


@pytest.fixture
def crew() -> Iterator[Crew]:
    crew = Crew()
    yield crew
    crew.close()


def lines(log: Path) -> list[str]:
    """Whole lines of a log that somebody may still be writing."""
    if not log.exists():
        return []
    return [line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


def wait_for(condition: object, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.005)


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: is_gone(process))


def verify(path: Path, acknowledged: list[str]) -> None:
    """Healthy, complete, and rows = words = vectors."""
    store = SqliteStore.open(path, space="writers")
    try:
        assert [finding for finding in store.admin.check() if not finding.ok] == []
        assert set(acknowledged) <= set(store.items.get(acknowledged))
        told = store.admin.stats()
        assert told["vectors"] == told["revisions"] == told["memories"]
        assert store.search.statistics(()).documents == told["revisions"]
        mentioned = sum(entity.mentions for entity in store.graph.entities())
        assert mentioned == told["memories"]
    finally:
        store.close()


@pytest.mark.slow
def test_sixteen_processes_may_make_the_same_space(crew: Crew, tmp_path: Path) -> None:
    """One makes it, all succeed, and all are in it; five times."""
    for race in range(5):
        folder = tmp_path / f"race{race}"
        path = folder / "new" / "space.db"
        folder.mkdir()
        logs = [folder / f"log{n}" for n in range(16)]
        for log in logs:
            crew.start("open", path, log, folder / "go")
        (folder / "go").touch()
        wait_for(lambda logs=logs: all(lines(log) for log in logs))

        assert [lines(log) for log in logs] == [["done\n"]] * 16
        store = SqliteStore.open(path, space="race", create=False)
        assert store.admin.count() == 16
        store.close()


def test_eight_processes_lose_none_of_their_writes(crew: Crew, tmp_path: Path) -> None:
    """A hundred memories each; nobody is told that the space is locked."""
    path = tmp_path / "space.db"
    logs = [tmp_path / f"log{n}" for n in range(8)]
    for number, log in enumerate(logs):
        crew.start("write", path, log, f"w{number}", "100")
    wait_for(lambda: all(line[-1:] == ["done\n"] or _failed(line) for line in map(lines, logs)))

    acknowledged = [line.strip() for log in logs for line in lines(log) if line != "done\n"]
    assert [line for line in acknowledged if line.startswith("error")] == []
    assert len(acknowledged) == len(set(acknowledged)) == 800
    verify(path, acknowledged)


def _failed(log: list[str]) -> bool:
    return any(line.startswith("error") for line in log)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sixty_kills_lose_nothing_that_was_acknowledged(crew: Crew, tmp_path: Path) -> None:
    """Four writers at a time, killed wherever they are; the space opens after each round."""
    path = tmp_path / "space.db"
    rng = random.Random(60)
    logs: list[Path] = []
    for start in range(15):
        working = []
        for number in range(4):
            log = tmp_path / f"log-{start}-{number}"
            logs.append(log)
            working.append(crew.start("write", path, log, f"k{start}.{number}", "0"))
        wait_for(lambda: all(lines(log) for log in logs[-4:]))
        for process in working:
            time.sleep(rng.uniform(0, 0.06))
            kill(process)
        store = SqliteStore.open(path, space="writers")
        assert store.admin.count() > 0
        store.close()

    acknowledged = [line.strip() for log in logs for line in lines(log)]
    assert [line for line in acknowledged if line.startswith("error")] == []
    assert len(logs) == 60
    verify(path, acknowledged)
