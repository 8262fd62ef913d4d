"""Spaces for measuring: filled through the write walk, thrown away or kept in a cache."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from glob import escape
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any

from recollect.eval.case import Case, Question
from recollect.eval.resolve import resolve, unknown
from recollect.memory import Memory
from recollect.model import Item
from recollect.models import NONE, open_embedder
from recollect.ports import Embedder, Progress
from recollect.settings import Settings

# What decides about the content of a space; a change there makes every kept space stale.
_WRITING = ("ingest", "store", "models", "dates", "text.py", "ids.py", "model")
_PAGE = 500
MARKER = "filled.json"


@dataclass(frozen=True, slots=True)
class Filled:
    """An open memory, the unit each item counts for, and what filling it took.

    ``seconds`` is None where it was there already: then no rate can be given.
    ``unknown`` is what questions name and no memory is.
    """

    memory: Memory
    questions: tuple[Question, ...]
    units: Mapping[str, str]
    memories: int
    seconds: float | None
    unknown: tuple[str, ...] = ()


class Shelf:
    """Where the spaces of one run live; one embedder serves them all."""

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: str | None = None,
        in_memory: bool = False,
        cache_folder: Path | None = None,
    ) -> None:
        """Nothing is loaded or opened yet."""
        self._settings = settings
        self._wanted = embedder or settings.embedder
        self._in_memory = in_memory
        self._cache = cache_folder
        self._embedder: Embedder | str | None = None

    @property
    def model(self) -> str:
        """The embedder in use, by its full name."""
        embedder = self._model()
        return embedder if isinstance(embedder, str) else embedder.model

    @contextmanager
    def open(self, dataset: str, case: Case, progress: Progress | None = None) -> Iterator[Filled]:
        """The case's space, filled; closed (and, unless cached, removed) at the end."""
        with ExitStack() as stack:
            if case.space is not None:
                yield self._existing(case, stack)
            elif self._in_memory:
                memory = stack.enter_context(self._memory(case.now, None))
                yield _fill(memory, case, progress)
            elif self._cache is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-"))
                memory = stack.enter_context(self._memory(case.now, Path(folder) / "space.db"))
                yield _fill(memory, case, progress)
            else:
                yield self._cached(dataset, case, progress, stack)

    def _existing(self, case: Case, stack: ExitStack) -> Filled:
        memory = stack.enter_context(
            Memory.open(case.space, embedder=self._model(), settings=self._settings)
        )
        texts = {item.id: item.text for item in _everything(memory)}
        units = {name: name for name in texts}
        questions = resolve(case.questions, texts)
        missing = unknown(case.questions, texts)
        return Filled(memory, questions, units, len(texts), None, missing)

    def _cached(
        self, dataset: str, case: Case, progress: Progress | None, stack: ExitStack
    ) -> Filled:
        assert self._cache is not None
        home = self._cache / _slug(dataset)
        folder = home / f"{_slug(case.name)}.{_digest(case, self.model)}"
        seconds = None if (folder / MARKER).exists() else self._keep(folder, case, progress)
        memory = stack.enter_context(self._memory(case.now, folder / "space.db"))
        ids = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return _filled(memory, case, ids, seconds)

    def _keep(self, folder: Path, case: Case, progress: Progress | None) -> float:
        """Fills a space and puts it into its place, whole or not at all."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".filling-") as name:
            making = Path(name) / "kept"
            making.mkdir()
            with self._memory(case.now, making / "space.db") as memory:
                ids, seconds = _store(memory, case, progress)
            (making / MARKER).write_text(json.dumps(ids), encoding="utf-8")
            with suppress(OSError):  # another run was faster: its space is the same
                making.rename(folder)
        stem = folder.name.rpartition(".")[0]
        for old in folder.parent.glob(f"{escape(stem)}.*"):
            if old != folder and old.name.rpartition(".")[0] == stem and (old / MARKER).exists():
                shutil.rmtree(old)
        return seconds

    def _memory(self, now: datetime, path: Path | None) -> Memory:
        where: dict[str, Any] = {"space": ":memory:"} if path is None else {"path": path}
        return Memory.open(
            **where, embedder=self._model(), settings=self._settings, clock=lambda: now
        )

    def _model(self) -> Embedder | str:
        """Made once and shared; where there is none, its name stands for that."""
        if self._embedder is None:
            self._embedder = open_embedder(self._wanted) or NONE
        return self._embedder


def _fill(memory: Memory, case: Case, progress: Progress | None) -> Filled:
    ids, seconds = _store(memory, case, progress)
    return _filled(memory, case, ids, seconds)


def _store(memory: Memory, case: Case, progress: Progress | None) -> tuple[list[str], float]:
    start = perf_counter()
    results = memory.remember_many(case.drafts, progress=progress)
    return [result.id for result in results], perf_counter() - start


def _filled(memory: Memory, case: Case, ids: list[str], seconds: float | None) -> Filled:
    """What the ids of the stored memories say about units and questions.

    A draft that was a duplicate is held by the memory it repeats: finding that one
    is finding it.
    """
    units: dict[str, str] = {}
    alias: dict[str, str] = {}
    for item_id, unit in zip(ids, case.units, strict=True):
        alias[unit] = units.setdefault(item_id, unit)
    if len(set(case.units)) < len(case.units):
        alias = {unit: unit for unit in case.units}  # sessions hold more than their duplicates
    texts = {unit: draft.text for unit, draft in zip(case.units, case.drafts, strict=True)}
    questions = tuple(
        replace(question, relevant={alias[unit]: gain for unit, gain in question.relevant.items()})
        for question in resolve(case.questions, texts)
    )
    missing = unknown(case.questions, texts)
    return Filled(memory, questions, units, len(set(ids)), seconds, missing)


def _everything(memory: Memory) -> Iterator[Item]:
    after: str | None = None
    while page := memory.browse(limit=_PAGE, after=after):
        yield from page
        after = page[-1].id


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80].lstrip(".") or "_"


def _digest(case: Case, model: str) -> str:
    """Changes with the content, the embedder and the code that stores."""
    state = hashlib.blake2b(_writing_code() + model.encode(), digest_size=8)
    state.update(case.now.isoformat().encode())
    for ref, draft in zip(case.refs, case.drafts, strict=True):
        state.update(f"{ref}\x1f{draft!r}\x1e".encode())
    return state.hexdigest()


@cache
def _writing_code() -> bytes:
    root = Path(str(resources.files("recollect")))
    state = hashlib.blake2b(digest_size=16)
    for name in _WRITING:
        found = root / name
        files = sorted(found.rglob("*")) if found.is_dir() else [found]
        for file in files:
            if file.suffix in (".py", ".sql"):
                state.update(file.read_bytes())
    return state.digest()
