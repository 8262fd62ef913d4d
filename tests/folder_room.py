"""A space and a folder of its files, for tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bethink import Memory
from bethink.config.settings import Settings
from bethink.folders.reading import Report
from bethink.folders.sync import Options, sync_folder


class Room:
    """An open space and its folder."""

    def __init__(self, memory: Memory, folder: Path) -> None:
        self.memory, self.folder = memory, folder

    def sync(self, *, yes: bool = False, **options: object) -> Report:
        """One pass, without waiting for editors."""
        given = Options(quiet_s=0, confirm=lambda _asked: yes)._replace(**options)
        return sync_folder(self.memory, self.folder, given)

    def files(self) -> dict[str, bytes]:
        """Every file by its path."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in found}

    def path(self, name: str) -> Path:
        """The path of a file, whose folder exists."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text in a file, as an editor would."""
        path = self.folder / name
        before = path.read_bytes()
        assert old.encode() in before
        path.write_bytes(before.replace(old.encode(), new.encode(), 1))

    def texts(self) -> set[str]:
        """The texts in force."""
        return {item.text for item in self.memory.browse(limit=1000)}


@contextmanager
def open_room() -> Iterator[Room]:
    """An empty space and an empty folder, both gone afterwards."""
    with tempfile.TemporaryDirectory() as place:
        settings = Settings(data_dir=Path(place) / "data", embedder="none")
        folder = Path(place, "folder")
        folder.mkdir()
        with Memory.open("room", settings=settings) as memory:
            yield Room(memory, folder)
