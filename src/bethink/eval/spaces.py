"""Spaces for evaluation, filled through the write pipeline; temporary or cached.

A cache folder keeps the filled spaces, which a change of the storing code makes worthless,
and the embeddings, which only another model does.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from glob import escape
from importlib import resources
from pathlib import Path
from time import perf_counter

import apsw
import numpy as np

from bethink.config.settings import Settings
from bethink.core.json_values import Json
from bethink.core.speakers import with_speaker
from bethink.eval.case import PART_MARK, Case, Question, split_long_texts
from bethink.integrations.documents import browse_all
from bethink.memory import Memory
from bethink.models import NONE, open_embedder
from bethink.ports import Embedder, Embedding


def resolve_references(
    questions: Sequence[Question], texts: Mapping[str, str]
) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """Resolve the references of questions to units; ``texts`` maps units to texts.

    A reference that is no unit matches every memory whose text contains it, ignoring case
    and spacing. A question with no resolved reference is dropped; one without references
    stays: it has no answer. Also returns those that match no memory, each with its question:
    they cannot be found, so they are not evaluated, and listed for the author of the questions.
    """
    folded: dict[str, str] = {}
    kept: list[Question] = []
    unknown: list[str] = []
    for question in questions:
        units: dict[str, float] = {}
        for reference, gain in question.relevant.items():
            matching = [reference]
            if reference not in texts:
                folded = folded or {unit: _normalize(text) for unit, text in texts.items()}
                needle = _normalize(reference)
                matching = [unit for unit, text in folded.items() if needle and needle in text]
            if not matching:
                unknown.append(f"{reference!r} of {question.key}: {question.text}")
            units.update(dict.fromkeys(matching, gain))
        if units or not question.relevant:
            kept.append(replace(question, relevant=units))
    return tuple(kept), tuple(unknown)


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


# Code that determines the content of a space; a change invalidates cached spaces.
_WRITE_PATH_SOURCES = ("ingest", "store", "models", "lang", "core", "model")
MARKER = "filled.json"


@dataclass(frozen=True, slots=True)
class FilledSpace:
    """An open memory, the unit of each item, and the time it took to fill.

    ``seconds`` is None where it existed already: then no rate can be given. ``texts`` are
    what was embedded, by item. ``unknown`` are references of questions that match no memory,
    ``split`` the memories that were stored in parts. Memories may be taken out of it for a
    while where it is ``expendable``.
    """

    memory: Memory
    questions: tuple[Question, ...]
    units: Mapping[str, str]
    texts: Mapping[str, str]
    memories: int
    seconds: float | None
    unknown: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    expendable: bool = True

    @contextmanager
    def without(self, units: Mapping[str, float]) -> Iterator[None]:
        """Take everything of these units out of recall, and put it back at the end."""
        ids = [item for item, unit in self.units.items() if unit in units]
        self.memory.forget(*ids)
        try:
            yield
        finally:
            self.memory.restore(*ids)


class SpaceProvider:
    """Provider of the spaces of one run; one embedder serves them all."""

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: str | None = None,
        in_memory: bool = False,
        cache_folder: Path | None = None,
    ) -> None:
        """Store the options; nothing is loaded or opened yet."""
        self._settings = settings
        self._embedder_name = embedder or settings.embedder
        self._in_memory = in_memory
        self._cache = cache_folder
        self._embedder: Embedder | str | None = None

    @property
    def model(self) -> str:
        """Full name of the embedder in use."""
        embedder = self._shared_embedder()
        return embedder if isinstance(embedder, str) else embedder.model

    @property
    def embedder(self) -> Embedder | None:
        """The embedder in use, None where there is none."""
        embedder = self._shared_embedder()
        return None if isinstance(embedder, str) else embedder

    @contextmanager
    def open(self, dataset: str, case: Case, *, expendable: bool = False) -> Iterator[FilledSpace]:
        """Open the case's filled space; close it (and, unless cached, remove it) at the end.

        ``expendable`` opens a copy of a cached one, which may be changed.
        """
        case, split = split_long_texts(case)
        with ExitStack() as stack:
            if case.space is not None:
                filled = self._open_existing(case, stack)
            elif self._cache is not None and not self._in_memory:
                home = self._cache / _slug(dataset)
                filled = self._open_cached(home, case, stack, expendable)
            else:
                path = None if self._in_memory else _temporary_folder(stack) / "space.db"
                memory = stack.enter_context(self._open_memory(case.now, path))
                filled = _map_units(memory, case, *_store_drafts(memory, case))
            yield replace(filled, split=split, expendable=expendable and case.space is None)

    def _open_existing(self, case: Case, stack: ExitStack) -> FilledSpace:
        memory = stack.enter_context(
            Memory.open(case.space, embedder=self._shared_embedder(), settings=self._settings)
        )
        items = list(browse_all(memory))
        texts = {item.id: item.text for item in items}
        units = {name: name for name in texts}
        questions, missing = resolve_references(case.questions, texts)
        embedded = {item.id: with_speaker(item) for item in items}
        return FilledSpace(memory, questions, units, embedded, len(texts), None, missing)

    def _open_cached(
        self, home: Path, case: Case, stack: ExitStack, expendable: bool
    ) -> FilledSpace:
        folder = home / f"{_slug(case.name)}.{_cache_key(case, self.model)}"
        seconds = None if (folder / MARKER).exists() else self._fill_cache(folder, case)
        if expendable:
            folder = Path(shutil.copytree(folder, _temporary_folder(stack) / "space"))
        memory = stack.enter_context(self._open_memory(case.now, folder / "space.db"))
        ids = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return _map_units(memory, case, ids, seconds)

    def _fill_cache(self, folder: Path, case: Case) -> float:
        """Fill a space and move it into the cache atomically."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".filling-") as name:
            making = Path(name) / "kept"
            making.mkdir()
            with self._open_memory(case.now, making / "space.db") as memory:
                ids, seconds = _store_drafts(memory, case)
            (making / MARKER).write_text(json.dumps(ids), encoding="utf-8")
            with suppress(OSError):  # another run has stored the same space
                making.rename(folder)
        stem = folder.name.rpartition(".")[0]
        for old in folder.parent.glob(f"{escape(stem)}.*"):
            if old != folder and old.name.rpartition(".")[0] == stem and (old / MARKER).exists():
                shutil.rmtree(old)
        return seconds

    def _open_memory(self, now: datetime, path: Path | None) -> Memory:
        where: Json = {"space": ":memory:"} if path is None else {"path": path}
        return Memory.open(
            **where, embedder=self._shared_embedder(), settings=self._settings, clock=lambda: now
        )

    def _shared_embedder(self) -> Embedder | str:
        """Return the shared embedder; its name where there is none."""
        if self._embedder is None:
            opened = open_embedder(self._embedder_name)
            if opened is not None and self._cache is not None:
                # On the instance: what else its class can do stays as it is.
                vars(opened)["embed"] = _open_embedding_cache(self._cache, opened)
            self._embedder = opened or NONE
        return self._embedder


def _temporary_folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bethink-")))


def _open_embedding_cache(folder: Path, embedder: Embedder) -> EmbeddingCache:
    """Open the cache of this embedder and remove those of its earlier versions."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = _slug(embedder.model)
    file = folder / f"{stem}.{_model_hash().hex()[:12]}.embeddings"
    for old in folder.glob(f"{escape(stem)}.*.embeddings"):
        if old != file:
            with suppress(OSError):  # another run has it open
                old.unlink()
    return EmbeddingCache(file, embedder.embed)


class EmbeddingCache:
    """Embeddings of texts by one model, kept in a file; a text is embedded once."""

    def __init__(self, file: Path, embed: Callable[[Sequence[str]], list[Embedding]]) -> None:
        """Open the file, or create it."""
        self._embed = embed
        self._db = apsw.Connection(str(file))
        self._db.set_busy_timeout(60_000)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS embedding"
            " (key BLOB PRIMARY KEY, vector BLOB, tokens BLOB, count INTEGER) WITHOUT ROWID"
        )

    def __call__(self, texts: Sequence[str]) -> list[Embedding]:
        keys = [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            for text in texts
        ]
        known = {key: self._read(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if known[key] is None}
        made = dict(zip(missing, self._embed(list(missing.values())), strict=True))
        self._write(made)
        return [known[key] or made[key] for key in keys]

    def _read(self, key: bytes) -> Embedding | None:
        sql = "SELECT vector, tokens, count FROM embedding WHERE key = ?"
        for vector, tokens, count in self._db.execute(sql, (key,)):
            return Embedding(np.frombuffer(vector, dtype=np.float32), tokens, count)
        return None

    def _write(self, made: Mapping[bytes, Embedding]) -> None:
        rows = [
            (key, np.asarray(one.vector, dtype=np.float32).tobytes(), one.tokens, one.token_count)
            for key, one in made.items()
        ]
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?, ?, ?)", rows)


def _store_drafts(memory: Memory, case: Case) -> tuple[list[str], float]:
    start = perf_counter()
    results = memory.remember_many(case.drafts)
    return [result.id for result in results], perf_counter() - start


def _map_units(memory: Memory, case: Case, ids: list[str], seconds: float | None) -> FilledSpace:
    """Map the stored ids to units and questions.

    A duplicate draft is represented by the memory it repeats: finding that one counts.
    """
    units: dict[str, str] = {}
    alias: dict[str, str] = {}
    for item_id, unit in zip(ids, case.units, strict=True):
        alias[unit] = units.setdefault(item_id, unit)
    whole = Counter(
        unit
        for ref, unit in zip(case.refs, case.units, strict=True)
        if PART_MARK not in ref or ref.endswith(f"{PART_MARK}1")
    )
    if max(whole.values(), default=0) > 1:
        alias = {unit: unit for unit in case.units}  # sessions contain more than their duplicates
    texts = {unit: draft.text for unit, draft in zip(case.units, case.drafts, strict=True)}
    resolved, missing = resolve_references(case.questions, texts)
    questions = tuple(
        replace(
            question,
            relevant={alias[unit]: gain for unit, gain in question.relevant.items()},
            outdated=frozenset(alias.get(unit, unit) for unit in question.outdated),
        )
        for question in resolved
    )
    embedded = {
        item_id: with_speaker(draft) for item_id, draft in zip(ids, case.drafts, strict=True)
    }
    return FilledSpace(memory, questions, units, embedded, len(set(ids)), seconds, missing)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80].lstrip(".") or "_"


def _cache_key(case: Case, model: str) -> str:
    """Cache key: changes with the content, the embedder and the storing code."""
    state = hashlib.blake2b(_write_path_hash() + model.encode(), digest_size=8)
    state.update(case.now.isoformat().encode())
    for ref, draft in zip(case.refs, case.drafts, strict=True):
        state.update(f"{ref}\x1f{draft!r}\x1e".encode())
    return state.hexdigest()


@cache
def _write_path_hash() -> bytes:
    return _hash_of_files(_WRITE_PATH_SOURCES, (".py", ".sql"))


@cache
def _model_hash() -> bytes:
    """Hash of the code and the weights of the embedders that come with Bethink."""
    return _hash_of_files(("models/embed", "models/data"), (".py", ".npz", ".txt"))


def _hash_of_files(places: Sequence[str], endings: tuple[str, ...]) -> bytes:
    root = Path(str(resources.files("bethink")))
    state = hashlib.blake2b(digest_size=16)
    for place in places:
        for file in sorted((root / place).rglob("*")):
            if file.suffix in endings:
                state.update(file.read_bytes())
    return state.digest()
