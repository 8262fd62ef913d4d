"""What is kept of a session beside the memory: what it was given, how far it was captured.

Ids and a place in a file, never a text: what is erased from the memory must not live on
here. A file each, so that two hooks at once do not overwrite each other's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recollect.places import make_private_folder
from recollect.spaces import data_dir

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.settings import Settings

MOST_SESSIONS = 200  # files; the longest untouched go first
MOST_GIVEN = 500
_Part = Literal["given", "captured"]


class Mark(NamedTuple):
    """How far a transcript was captured: the byte where its last prompt stands, from which
    there may be something new, and the ids of the turns from there on that are captured."""

    start: int = 0
    turns: tuple[str, ...] = ()


class Session:
    """One session's small state. A session without a name has none."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:32]
        self._named = bool(name)

    @property
    def given(self) -> tuple[str, ...]:
        """The ids of memories that this session was given already."""
        told = self._read("given")
        return tuple(one for one in told if isinstance(one, str)) if isinstance(told, list) else ()

    def give(self, ids: Iterable[str]) -> None:
        """Notes memories as given."""
        self._write("given", [*dict.fromkeys((*self.given, *ids))][-MOST_GIVEN:])

    def start_over(self) -> None:
        """Forgets what was given: the agent has lost sight of it."""
        if self.given:
            self._write("given", [])

    @property
    def captured(self) -> Mark:
        """How far the transcript was captured."""
        match self._read("captured"):
            case [int(start), [*turns]] if start >= 0 and all(isinstance(t, str) for t in turns):
                return Mark(start, tuple(turns))
            case _:
                return Mark()

    def capture_up_to(self, mark: Mark) -> None:
        """Notes how far the transcript was captured."""
        if mark != self.captured:
            self._write("captured", mark)

    def _path(self, part: _Part) -> Path:
        return self._folder / f"{self._key}.{part}.json"

    def _read(self, part: _Part) -> Any:
        try:
            return json.loads(self._path(part).read_bytes()) if self._named else None
        except (OSError, ValueError, RecursionError):
            return None  # not there yet, or damaged: then everything is new again

    def _write(self, part: _Part, value: Any) -> None:
        if not self._named:
            return
        make_private_folder(self._folder)
        path = self._path(part)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(value, file)
        draft.replace(path)
        self._sweep()

    def _sweep(self) -> None:
        files = [one for one in os.scandir(self._folder) if one.is_file(follow_symlinks=False)]
        if len(files) <= 2 * MOST_SESSIONS:
            return
        files.sort(key=lambda one: one.stat().st_mtime)
        for old in files[: len(files) - MOST_SESSIONS]:
            Path(old.path).unlink(missing_ok=True)


def session_of(memory: Memory, name: str) -> Session:
    """The state of one of a memory's sessions."""
    return Session(sessions_folder(memory.settings, memory.store.space), name)


def sessions_folder(settings: Settings, space: str) -> Path:
    """Where the state of a space's sessions is."""
    return data_dir(settings) / space / "sessions"
