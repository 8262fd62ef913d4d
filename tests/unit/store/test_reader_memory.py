"""Every thread has a connection of its own; together they do not keep the file in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import apsw

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
