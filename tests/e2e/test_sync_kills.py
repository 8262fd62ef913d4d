"""Processes that are killed in the middle of a sync lose nothing.

``BETHINK_SYNC_KILLS=200`` kills that many.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import warm
from bethink import Memory
from bethink.store.sqlite import SqliteStore
from server_process import clean_environment

KILLS = int(os.environ.get("BETHINK_SYNC_KILLS", "20"))
LOOP = """
from pathlib import Path
import sys
from bethink import Memory
from bethink.store.sqlite import SqliteStore

path, drive, name = sys.argv[1:]
memory = Memory(SqliteStore.open(Path(path), space="notes"))
for number in range(1000):
    print(memory.remember(f"Written by {name}, number {number}").id, flush=True)
    if number % 5 == 4:
        memory.update(memory.browse(limit=1)[0].id, text=f"Changed by {name}, number {number}")
    memory.sync_with(drive)
"""


def open_space(path: Path) -> Memory:
    return Memory(SqliteStore.open(path, space="notes"))


def test_processes_that_are_killed_in_a_sync_lose_nothing(tmp_path: Path) -> None:
    drive, paths = tmp_path / "drive", [tmp_path / "laptop.db", tmp_path / "desktop.db"]
    drive.mkdir()
    for _ in range(2):
        for path in paths:
            with open_space(path) as memory:
                found = memory.sync_with(drive, name=path.stem).unknown
                memory.sync_with(drive, accept=[one.id for one in found])
    chance = random.Random(26)
    stored: set[str] = set()
    for number in range(KILLS):
        path = paths[number % 2]
        process = warm.popen(
            [sys.executable, "-c", LOOP, str(path), str(drive), f"{path.stem} {number}"],
            env=clean_environment(tmp_path), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process:
            assert process.stdout is not None
            stored.add(process.stdout.readline().strip())
            time.sleep(chance.random() * 0.4)
            process.kill()
            stored |= {line.strip() for line in process.stdout if line.endswith("\n")}
    memories = [open_space(path) for path in paths]
    for _ in range(2):
        for memory in memories:
            assert memory.sync_with(drive).problems == []
    assert len({memory.sync_status()["hash"] for memory in memories}) == 1
    for memory in memories:
        assert stored == memory.store.items.get(sorted(stored)).keys()
        assert [one for one in memory.store.admin.check() if not one.ok] == []
        memory.close()
