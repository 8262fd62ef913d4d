"""A space beside which no log can be made: a full disk, a file system that is read-only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bethink.errors import StoreError
from bethink.memory import Memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")

# No file may grow: what a full disk does to SQLite's log and its index.
_FULL = """
import resource, sys
from bethink.errors import StoreError
from bethink.memory import Memory

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with Memory.open(path=sys.argv[1]) as memory:
    answer = memory.recall("where does the ferry land?", track=True)
    print([hit.item.text for hit in answer.hits], [one.part for one in answer.degraded])
    print(len(list(memory.export())) > 1)
    try:
        memory.remember("One more thing")
    except StoreError as error:
        print(error.message)
"""

# The disk is full for a while, and another process writes before this one does again.
_FULL_FOR_A_WHILE = """
import resource, subprocess, sys, threading
from bethink.memory import Memory

ANY = resource.RLIM_INFINITY
OTHER = "import sys; from bethink.memory import Memory; Memory.open(path=sys.argv[1])"
OTHER += ".remember('The ferry leaves at noon')"
resource.setrlimit(resource.RLIMIT_FSIZE, (0, ANY))
with Memory.open(path=sys.argv[1]) as memory:
    aside, seen = threading.Event(), []
    def elsewhere():
        seen.append(len(memory.browse()))
        aside.wait(60)
        seen.append(len(memory.browse()))
    thread = threading.Thread(target=elsewhere)
    thread.start()
    told = [len(memory.browse())]
    resource.setrlimit(resource.RLIMIT_FSIZE, (ANY, ANY))
    subprocess.run([sys.executable, "-c", OTHER, sys.argv[1]], check=True)
    told.append(len(memory.browse()))
    memory.remember("One more thing")
    aside.set()
    thread.join()
    print(told, seen)
"""

# Nothing can be written here all the while, and another process writes and is done.
_FULL_HERE_ALONE = """
import resource, subprocess, sys
from bethink.errors import StoreBusy
from bethink.memory import Memory

OTHER = "import resource, sys; from bethink.memory import Memory; "
OTHER += "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2); "
OTHER += "memory = Memory.open(path=sys.argv[1]); "
OTHER += "memory.forget(*[one.id for one in memory.browse()], erase=True); "
OTHER += "texts = [f'Ship {n} leaves at {n} {n * n}' + ' and so on' * n for n in range(40)]; "
OTHER += "memory.remember_many(texts); "
OTHER += "memory.close()"
def other():
    subprocess.run([sys.executable, "-c", OTHER, sys.argv[1]], check=True)
def told(work):
    try:
        return len(work())
    except StoreBusy as error:
        return error.message.partition(" was ")[2]
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
def held():
    with memory.store.snapshot():
        memory.browse()
        other()
        return memory.browse(limit=100)
with Memory.open(path=sys.argv[1]) as memory:
    print(told(memory.browse), told(lambda: memory.recall("where does the ferry land?").hits))
    other()
    print(told(lambda: memory.browse(limit=100)), told(lambda: memory.recall("Ship 7", k=5, min_relevance=0).hits))
    print(told(held))
    records = memory.store.admin.dump()
    next(records)
    other()
    print(told(lambda: list(records)))
    print(told(lambda: memory.browse(limit=100)))
"""

# A log turns up that cannot be read here, and is gone again.
_LOG_FOR_A_WHILE = """
import resource, subprocess, sys
from bethink.errors import StoreError
from bethink.memory import Memory

resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
log = sys.argv[1] + "-wal"
with Memory.open(path=sys.argv[1]) as memory:
    memory.browse()
    subprocess.run(["sh", "-c", 'ulimit -S -f unlimited; echo something > "$0"', log], check=True)
    try:
        memory.browse()
    except StoreError:
        print("refused")
    subprocess.run(["rm", log], check=True)
    print(len(memory.browse()))
"""


def _run(path: Path, program: str = _FULL, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, str(path)], env={**os.environ, **variables},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_what_is_stored_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Recall and export go on, a write says that nothing was saved, and later all is well."""
    path = tmp_path / "m.db"
    with Memory.open(path=path) as memory:
        memory.remember("The ferry lands at pier 7")

    done = _run(path)

    assert done.stderr == ""
    found, exported, refused = done.stdout.splitlines()
    assert found == "['The ferry lands at pier 7'] ['track']"
    assert exported == "True"
    assert "cannot be written" in refused
    assert "nothing was saved" in refused
    with Memory.open(path=path) as memory:
        memory.remember("One more thing")
        assert len(memory.browse()) == 2


def test_it_is_written_again_when_it_can_be(tmp_path: Path) -> None:
    """A process that was started on a full disk sees what others write once there is room,
    in every thread, and writes itself."""
    path = tmp_path / "m.db"
    with Memory.open(path=path) as memory:
        memory.remember("The ferry lands at pier 7")

    done = _run(path, _FULL_FOR_A_WHILE)

    assert done.stderr == ""
    assert done.stdout == "[1, 2] [1, 3]\n"
    with Memory.open(path=path) as memory:
        assert len(memory.browse()) == 3
        assert all(finding.ok for finding in memory.doctor())


def test_what_others_write_is_neither_missed_nor_read_by_halves(tmp_path: Path) -> None:
    """A folder that is read-only for us may be another's to write: a look at the file alone
    shows what it holds by then, and one that was disturbed says so."""
    path = tmp_path / "m.db"
    with Memory.open(path=path, embedder="none") as memory:
        memory.remember("The ferry lands at pier 7")

    done = _run(path, _FULL_HERE_ALONE, BETHINK_EMBEDDER="none")  # who writes embeds nothing

    assert done.stderr == ""
    written = "written while it was read"
    assert done.stdout.splitlines() == ["1 1", "40 5", written, written, "40"]


def test_a_log_that_holds_something_is_not_passed_over(tmp_path: Path) -> None:
    """Where the file alone is not all there is, it is not taken for it."""
    path = tmp_path / "m.db"
    with Memory.open(path=path) as memory:
        memory.remember("The ferry lands at pier 7")
        whole = path.with_name("copy.db")
        whole.write_bytes(path.read_bytes())
        log = path.with_name("m.db-wal").read_bytes()
    whole.with_name("copy.db-wal").write_bytes(log)

    done = _run(whole)

    assert log
    assert done.returncode != 0 or "pier 7" in done.stdout


def test_a_log_of_later_is_not_passed_over_either(tmp_path: Path) -> None:
    """And when it is gone, all is as before."""
    path = tmp_path / "m.db"
    with Memory.open(path=path) as memory:
        memory.remember("The ferry lands at pier 7")

    done = _run(path, _LOG_FOR_A_WHILE)

    assert (done.stderr, done.stdout) == ("", "refused\n1\n")


def test_a_path_the_system_will_not_have_is_named(tmp_path: Path) -> None:
    """Whatever the system says to a path comes as an error of ours."""
    with pytest.raises(StoreError, match="cannot be opened"):
        Memory.open(path=tmp_path / ("x" * 300))
