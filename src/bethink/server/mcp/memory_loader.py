"""Opens the server's memory and loads its embedding model in the background."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING

from bethink.config.settings import Settings, load_settings
from bethink.core.characters import estimate_tokens
from bethink.core.lazy import BackgroundCall, Lazy
from bethink.errors import BadSetting, BethinkError, ModelError, StoreError

if TYPE_CHECKING:
    from bethink.memory import Memory
    from bethink.ports import Embedding


PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
READ_WAIT_S = 3.0  # for reads; a write waits longer for the model
WRITE_WAIT_S = 20.0
CLOSE_WAIT_S = 2.0
ACTOR = "mcp"


def settings_for(
    space: str | None,
    env: Mapping[str, str] = os.environ,
    *,
    store: str | None = None,
    profile: str | None = None,
) -> Settings:
    """Load a server's settings: for the project its host names, else the working directory."""
    named = env.get(PROJECT_VARIABLE)
    if named and not Path(named).is_dir():
        # Fail rather than serve the memory of another project.
        raise BadSetting(f"{PROJECT_VARIABLE} is {named!r}, which is not a directory")
    given = {"space": space, "store": store, "profile": profile}
    settings = load_settings(Path(named) if named else None, env, given)
    return settings if settings.explicit("actor") else replace(settings, actor=ACTOR)


class LoadingEmbedder:
    """Placeholder for an embedder that is still loading.

    Answers come without dense retrieval and are marked as degraded; memories stored meanwhile
    get their vectors later.
    """

    model = "loading"
    dim = 0

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        raise self._loading_error()

    def embed_query(self, text: str) -> Embedding:
        raise self._loading_error()

    def count_tokens(self, text: str) -> int:
        return estimate_tokens(text)

    def _loading_error(self) -> ModelError:
        return ModelError("the model is still loading", remedy="try again in a few seconds")


class MemoryLoader:
    """One space's memory, open for as long as a server runs. Thread-safe."""

    def __init__(self, settings: Settings, *, read_wait_s: float = READ_WAIT_S) -> None:
        self.settings = settings
        self._read_wait_s = read_wait_s
        self._memory = Lazy(self._open)
        self._loading = Lazy(lambda: BackgroundCall(self._load_model))
        self._loaded = Event()
        self._reindex_due = Event()

    def start(self) -> None:
        """Open the store and load the model in the background."""
        self._loading()

    def memory(self, *, writing: bool = False) -> Memory:
        """Return the memory, without its model if that takes too long to load."""
        memory = self._memory()
        self.start()
        if self._loaded.wait(WRITE_WAIT_S if writing else self._read_wait_s):
            if self._reindex_due.is_set():
                self._reindex_due.clear()
                BackgroundCall(memory.reindex)
            return memory
        self._reindex_due.set()
        return memory.using(embedder=LoadingEmbedder())

    @property
    def is_loaded(self) -> bool:
        """Whether loading has finished."""
        return self._loaded.is_set()

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return bool(self._memory)

    def close(self) -> None:
        """Close the store if it was opened."""
        give_up = monotonic() + CLOSE_WAIT_S
        while self._memory:
            try:
                return self._memory().close()
            except StoreError:
                # An abandoned read may still be using it.
                if monotonic() > give_up:
                    raise
                sleep(0.02)
        return None

    def _open(self) -> Memory:
        from bethink.memory import Memory  # heavy import: after the handshake

        return Memory.open(settings=self.settings)

    def _load_model(self) -> None:
        try:
            memory = self._memory()
            if memory.embedder is not None:
                memory.embedder.embed_query("ready")
        except BethinkError:
            # The next caller of memory() gets the same error and can report it.
            pass
        finally:
            self._loaded.set()


class OpenMemory(MemoryLoader):
    """A memory that a worker has open, in place of one that a server loads."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.settings)
        self._opened = memory

    def memory(self, *, writing: bool = False) -> Memory:
        """Return the memory, which is open for reads and writes."""
        return self._opened
