"""A disk that cannot be written: `doctor --repair` tells all it finds, and why it changes nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import warm
from rows import each_row
from server_process import SCRIPT, clean_environment

MOUNT = shutil.which("mount") or ""


def _mount(*words: str) -> bool:
    done = MOUNT and subprocess.run([MOUNT, *words], capture_output=True, check=False)
    return bool(done) and done.returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of our own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not _mount("-t", "tmpfs", "none", str(folder)):
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(folder, BETHINK_DATA_DIR=str(folder / "disk"))
    return warm.run(
        [SCRIPT, "--space", "here", *words], capture_output=True, text=True, env=environment,
        cwd=folder, check=False,
    )  # fmt: skip


@each_row(
    ("damage", "check"),
    [
        ("", ""),
        ("DELETE FROM posting_new", "words"),
        ("DELETE FROM vector", "embeddings"),
        ("DROP INDEX item_live", "schema"),
    ],
)
def test_a_repair_that_cannot_write_reports_all_the_same(
    damage: str, check: str, disk: Path
) -> None:
    folder = disk.parent
    _mount("-o", "remount,rw", str(disk))
    shutil.rmtree(disk / "spaces", ignore_errors=True)
    assert run(folder, "remember", "Alice runs billing in Berlin").returncode == 0
    if damage:
        apsw.Connection(str(disk / "spaces" / "here.db")).execute(damage)
    assert _mount("-o", "remount,ro", str(disk))

    done = run(folder, "doctor", "--repair", "--json")

    assert done.returncode == (3 if damage else 0), done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert found["journal"]["ok"]  # its secret is there
    assert not found["journal"]["warning"]
    wrong = [name for name, one in found.items() if not one["ok"]]
    assert check in (wrong or [""])
    assert all("not repaired" in found[name]["detail"] for name in wrong if name != "file")
