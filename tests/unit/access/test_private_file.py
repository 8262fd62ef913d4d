"""Records in a private file: what several threads read of it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from bethink.access.private_file import PrivateFile
from bethink.core.json_values import Json


def test_a_slow_reader_does_not_bring_back_what_the_file_was(tmp_path: Path) -> None:
    """Else a connection that was ended could go on."""
    loaded, stored, ended = threading.Event(), threading.Event(), threading.Event()

    class Paused(PrivateFile[Json]):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if threading.current_thread().name == "new":
                stored.set()
                ended.wait(10)

        def _load(self, stat: Any) -> tuple[Json, ...]:
            found = super()._load(stat)
            if threading.current_thread().name == "old":
                loaded.set()
                stored.wait(10)
            return found

    path = tmp_path / "rows.json"
    writer, reader = (made(path, "rows", dict, dict) for made in (PrivateFile[Json], Paused))
    with writer.transaction() as kept:
        kept.append({"n": 1})

    def read_old() -> None:
        reader.read()
        ended.set()

    old = threading.Thread(target=read_old, name="old")
    old.start()
    assert loaded.wait(10)
    with writer.transaction() as kept:
        kept[:] = [{"n": 22}]
    new = threading.Thread(target=reader.read, name="new")
    new.start()
    old.join()
    new.join()
    assert reader.read() == ({"n": 22},)
