"""The memories a worker has open: a few, the least recently asked for closed first."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from recollect.jsonable import Json
from recollect.models import open_embedder
from recollect.spaces import resolve_space
from recollect.worker.settled import read_settings

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.ports import Embedder
    from recollect.settable import Settings

MOST = 4
_MODELS = 2


@dataclass(slots=True)
class _Kept:
    """An open memory, which file it is, and how many are using it."""

    memory: Memory
    path: Path
    file: tuple[int, int] | None
    users: int = 0
    stale: bool = False


class Shelf:
    """Lends memories by the settings of who asks. Safe to ask from many threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._models: OrderedDict[str, Embedder | None] = OrderedDict()
        self._turn = Lock()
        # Apart, for a store may take its time to open, and those that are open need not wait.
        self._opening = Lock()

    @contextmanager
    def lent(self, told: Json) -> Iterator[Memory]:
        """The memory of a caller's settings; it is not closed while it is lent."""
        kept = self._borrow(told)
        try:
            yield kept.memory
        finally:
            self._give_back(kept)

    def spaces(self) -> list[str]:
        """The files of the spaces that are open, each once."""
        with self._turn:
            return sorted({str(kept.path) for kept in self._kept.values()})

    def settings(self) -> list[tuple[Json, Settings]]:
        """By whose settings memories are open, the least recently asked for first."""
        with self._turn:
            return [(json.loads(key), kept.memory.settings) for key, kept in self._kept.items()]

    def look_through(self) -> None:
        """Lets go of memories whose file was removed or replaced: nobody can mean them."""
        with self._turn:
            for kept in self._kept.values():
                kept.stale = _file(kept.path) != kept.file
            self._let_go()

    def close(self) -> None:
        """Closes what nobody is using; the rest goes with the process."""
        with self._turn:
            for kept in self._kept.values():
                kept.stale = True
            self._let_go()

    def _borrow(self, told: Json) -> _Kept:
        key = json.dumps(told, sort_keys=True)
        kept = self._taken(key)
        if kept is None:
            with self._opening:
                kept = self._taken(key) or self._put(key, self._open(told))
        return kept

    def _taken(self, key: str) -> _Kept | None:
        """The memory that is open for a key, if it still is its file's."""
        with self._turn:
            kept = self._kept.get(key)
            if kept is None:
                return None
            if _file(kept.path) != kept.file:
                kept.stale = True
                self._let_go()
                return None
            kept.users += 1
            self._kept.move_to_end(key)
            return kept

    def _put(self, key: str, kept: _Kept) -> _Kept:
        with self._turn:
            kept.users += 1
            self._kept[key] = kept
            for old in list(self._kept.values())[: -self._most]:
                old.stale = True
            self._let_go()
            return kept

    def _give_back(self, kept: _Kept) -> None:
        with self._turn:
            kept.users -= 1
            if kept.stale and not kept.users:
                kept.memory.close()
                self._let_go()

    def _let_go(self) -> None:
        """Takes what is stale off the shelf; what is in use is closed when it comes back."""
        for key in [key for key, kept in self._kept.items() if kept.stale]:
            kept = self._kept.pop(key)
            if not kept.users:
                kept.memory.close()

    def _open(self, told: Json) -> _Kept:
        from recollect.memory import Memory  # heavy: not before somebody asks

        settings = read_settings(told)
        path = resolve_space(None, settings).path
        memory = Memory.open(settings=settings, embedder=self._model(settings.embedder))
        return _Kept(memory, path, _file(path))

    def _model(self, name: str) -> Embedder | None:
        """One embedder for all spaces that use it: a model is loaded once."""
        if name not in self._models:
            self._models[name] = open_embedder(name)
            while len(self._models) > _MODELS:
                self._models.popitem(last=False)
        self._models.move_to_end(name)
        return self._models[name]


def _file(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - on every question
    except OSError:
        return None
    return found.st_dev, found.st_ino
