"""An import that is stopped leaves a memory that is whole, and the next goes on from there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import warm
from bethink.store.sqlite import SqliteStore

SCRIPT = str(Path(sys.executable).with_name("bethink"))
LINES = [
    json.dumps(f"Note number {n} about subject {n * 7} " + "and so on " * 20) for n in range(1_200)
]


def count(path: Path) -> int:
    """How many memories the space holds, as far as it is there."""
    if not path.is_file():
        return 0
    store = SqliteStore.open(path, space="mine")
    try:
        return store.admin.count()
    finally:
        store.close()


def wait_until_idle(pid: int) -> None:
    """Until a process sleeps whenever one looks: with work it runs, or waits for its turn."""
    if not Path("/proc/self/stat").exists():
        time.sleep(5)
        return
    end, before, seen = time.monotonic() + 120, "", 0
    while seen < 20:
        assert time.monotonic() < end, "it is never idle"
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        used = " ".join(rest[10:12])  # ticks of its own and of the system for it
        seen = seen + 1 if (state, used) == ("S", before) else 0
        before = used
        time.sleep(0.02)


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_keeps_what_was_stored(tmp_path: Path) -> None:
    """It says how much that is; the same again stores the rest."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BETHINK_")}
    room = kept | {
        "HOME": str(tmp_path),
        "BETHINK_DATA_DIR": str(tmp_path / "data"),
        "BETHINK_EMBEDDER": "none",
    }
    command = [SCRIPT, "--space", "mine", "import", "-"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=room, cwd=tmp_path,
        # A shell that starts the tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write("\n".join(LINES).encode())
    process.stdin.flush()
    space = tmp_path / "data" / "spaces" / "mine.db"
    with process, ExitStack() as stack:
        stack.callback(process.kill)  # if it has not ended
        end = time.monotonic() + 120
        while count(space) < 500:
            assert time.monotonic() < end, "it stores nothing"
            time.sleep(0.2)
        wait_until_idle(process.pid)  # for the rest of the third batch: nothing is under way

        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    stopped = count(space)
    again = warm.run(
        [*command, "--json"], input="\n".join(LINES).encode(), env=room, cwd=tmp_path,
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip

    assert process.returncode == 130
    assert b"Traceback" not in said
    assert b"500 memories stored so far" in said
    assert stopped == 500
    told = json.loads(again.stdout)
    assert (told["stored"], told["duplicates"] + told["repeated"]) == (700, 500)
