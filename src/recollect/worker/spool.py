"""What was handed over, kept until it is done: a file each, on the disk before anybody is told.

A hand-over is ``NAME.json``, and ``NAME.work`` once a worker has taken it: whoever hands the
same over meanwhile is not overlooked. Work that a killed worker leaves behind is taken up
by the next one, so what is handed over must do no harm when it is done again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from recollect.jsonable import Json
from recollect.whole_file import replace_whole, sync_folder
from recollect.worker.frames import MOST_ASKED, BadFrame, read_object
from recollect.worker.place import make_private

KINDS = ("capture", "edits", "maintain", "warm")  # work that does no harm when it is done again
MOST = 1000  # hand-overs that may wait
TRIES = 8
_FAILED_KEPT = 200
_LEFT_OVER_S = 86_400.0
_NEGLECTED_S = 20.0


class Handed(NamedTuple):
    """One hand-over: what to do, by which settings, in which environment of the models (a
    hash, see ``environment``), and how often it was begun."""

    kind: str
    settings: Json
    payload: Json
    environment: str = ""
    tries: int = 0


class SpoolFull(OSError):
    """So much waits already that something must be wrong."""


class Spool:
    """The hand-overs of one user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed_folder = folder / "failed"

    def put(self, handed: Handed) -> None:
        """Keeps a hand-over, on the disk when this returns; OSError where it cannot.

        The same one twice, before a worker has begun with it, is one.
        """
        if handed.kind not in KINDS:
            raise ValueError(f"{handed.kind!r} cannot be handed over; only {', '.join(KINDS)}")
        make_private(self.folder)
        path = self.folder / f"{_name(handed)}.json"
        if path.exists():
            return  # since when it waits must still be seen; who takes it does what is new, too
        if len(self.waiting()) >= MOST:
            raise SpoolFull(f"{MOST} hand-overs wait already")
        self._write(path, handed)

    def waiting(self) -> list[str]:
        """The names of what waits or was begun, the oldest first."""
        return [path.name for path in self._files()]

    def is_neglected(self) -> bool:
        """Whether something has waited for so long without being begun with that no worker
        can be there, whatever keeps it from starting."""
        oldest = next((path for path in self._files() if path.suffix == ".json"), None)
        try:
            return oldest is not None and time.time() - oldest.stat().st_mtime > _NEGLECTED_S
        except FileNotFoundError:
            return False  # taken just now

    def failed(self) -> list[str]:
        """The names of what was given up."""
        return [path.name for path in _listed(self.failed_folder)]

    def take(self, name: str) -> Handed | None:
        """Begins with a hand-over: it is counted as tried before anything is done. None
        where there is nothing to do: gone, unreadable, or begun too often."""
        path = self.folder / name
        begun = path.with_suffix(".work")
        try:
            if path.suffix == ".json":
                if begun.exists():
                    return None  # left behind by a worker that was killed; that one first
                path.rename(begun)
            handed = _read(begun)
        except FileNotFoundError:
            return None
        except BadFrame:
            self._give_up(begun)
            return None
        if handed.tries >= TRIES:
            self._give_up(begun)
            return None
        again = handed._replace(tries=handed.tries + 1)
        self._write(begun, again)
        return again

    def done(self, name: str) -> None:
        """Forgets a hand-over: what it asked for is done, and durable. If the same was given
        up before, that is made good."""
        begun = (self.folder / name).with_suffix(".work")
        (self.failed_folder / f"{begun.stem}.json").unlink(missing_ok=True)
        begun.unlink(missing_ok=True)

    def put_back(self, name: str, handed: Handed) -> None:
        """Takes back that a hand-over was tried: nothing of it is to blame."""
        begun = (self.folder / name).with_suffix(".work")
        self._write(begun, handed._replace(tries=handed.tries - 1))

    def give_up(self, name: str) -> None:
        """Puts a hand-over aside, where people can look at it."""
        self._give_up((self.folder / name).with_suffix(".work"))

    def sweep(self) -> None:
        """Removes what writers that were killed have left, a day later."""
        now = time.time()
        for path in self.folder.glob(".*.part"):
            if now - path.stat().st_mtime > _LEFT_OVER_S:
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[Path]:
        return (path for path in _listed(self.folder) if path.suffix in (".json", ".work"))

    def _give_up(self, path: Path) -> None:
        make_private(self.failed_folder)
        path.replace(self.failed_folder / f"{path.stem}.json")
        for old in _listed(self.failed_folder)[:-_FAILED_KEPT]:
            old.unlink(missing_ok=True)

    def _write(self, path: Path, handed: Handed) -> None:
        body = json.dumps(handed._asdict()).encode()
        if len(body) > MOST_ASKED:
            raise OSError(f"a hand-over of {len(body):,} bytes; the limit is {MOST_ASKED:,}")
        replace_whole(path, body, beside=(f".{path.name}.", ".part"))
        sync_folder(path.parent)


def _name(handed: Handed) -> str:
    """The same for the same hand-over, whenever it is made."""
    told = json.dumps(handed._replace(tries=0), sort_keys=True)
    return f"{handed.kind}-{hashlib.sha256(told.encode()).hexdigest()[:24]}"


def _read(path: Path) -> Handed:
    with path.open("rb") as file:
        told = read_object(file.read(MOST_ASKED + 1))
    kinds = (str, dict, dict, str, int)
    named = dict(zip(Handed._fields, kinds, strict=True))
    if set(told) != set(named) or not all(type(told[name]) is named[name] for name in named):
        raise BadFrame(f"{path.name} is no hand-over")
    return Handed(**told)


def _listed(folder: Path) -> list[Path]:
    """The files of a folder, the oldest first; none where there is no folder."""
    found: list[tuple[float, Path]] = []
    try:
        entries: Any = os.scandir(folder)
    except FileNotFoundError:
        return []
    with entries:
        for entry in entries:
            try:
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    found.append((entry.stat().st_mtime, Path(entry.path)))
            except FileNotFoundError:
                continue  # done meanwhile
    return [path for _, path in sorted(found)]
