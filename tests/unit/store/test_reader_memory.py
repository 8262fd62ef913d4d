"""Every thread has a connection of its own; together they do not keep the file in memory."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import apsw
import pytest

from bethink.core.blas import give_back_freed_memory
from bethink.store.sqlite import SqliteStore

THREADS = 16
PAGES_MIB = 12  # of the file


def test_the_pages_of_all_threads_are_few(tmp_path: Path) -> None:
    path = tmp_path / "space.db"
    together = Barrier(THREADS)
    with closing(SqliteStore.open(path, space="here")) as store:
        # What is in a table does not matter to the cache; this one is quick to make.
        with store._connections.write_transaction() as db:
            db.execute("CREATE TABLE filler (x)")
            db.executemany("INSERT INTO filler VALUES (zeroblob(1000))", [()] * (PAGES_MIB * 1000))
        before = apsw.memory_used()

        def read(_: int) -> int:
            with store._connections.read_transaction() as db:
                db.execute("SELECT sum(length(x)) FROM filler").fetchall()
                together.wait(60)
                used = apsw.memory_used()
                together.wait(60)
                return used

        with ThreadPoolExecutor(THREADS) as pool:
            used = max(pool.map(read, range(THREADS)))

    assert used - before < THREADS * 3 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and asks glibc")
def test_freed_memory_between_blocks_that_stay_is_given_back() -> None:
    """By itself the C library gives back only the end of a heap."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096

    blocks = [bytes(60_000) for _ in range(1_000)]  # too small to be mapped each for itself
    kept = blocks[::20]
    del blocks
    before = resident()
    give_back_freed_memory()

    assert before - resident() > 30_000_000
    assert len(kept) == 50
