"""The memory behind a server: opened beside the first questions, its model loaded meanwhile."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING

from recollect.background import Begun
from recollect.errors import BadSetting, ModelError, RecollectError, StoreError
from recollect.models.lazy import Once
from recollect.settings import Settings, load_settings

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.ports import Embedding

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
PATIENCE_S = 3.0  # of a question; a memory to be stored waits for its vector longer
WRITING_PATIENCE_S = 20.0
CLOSING_PATIENCE_S = 2.0
ACTOR = "mcp"


def settings_for(space: str | None, env: Mapping[str, str] = os.environ) -> Settings:
    """What holds for a server: the project its host names, else the working directory's."""
    named = env.get(PROJECT_VARIABLE)
    if named and not Path(named).is_dir():
        # Another project's memory would be worse than none.
        raise BadSetting(f"{PROJECT_VARIABLE} is {named!r}, which is no folder")
    settings = load_settings(Path(named) if named else None, env, {"space": space})
    return settings if settings.given("actor") else replace(settings, actor=ACTOR)


class Loading:
    """Stands in for an embedder that is not loaded yet: the answer comes without meaning,
    and says so; what is written meanwhile gets its vector later."""

    model = "loading"
    dim = 0

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        raise self._not_yet()

    def embed_query(self, text: str) -> Embedding:
        raise self._not_yet()

    def count_tokens(self, text: str) -> int:
        return -(-len(text.encode("utf-8", "replace")) // 4)

    def _not_yet(self) -> ModelError:
        return ModelError("the model is still loading", remedy="ask again in a few seconds")


class Opening:
    """One space's memory, for as long as a server runs. Safe to ask from many threads."""

    def __init__(self, settings: Settings, *, patience_s: float = PATIENCE_S) -> None:
        self.settings = settings
        self._patience_s = patience_s
        self._opened = Once(self._open)
        self._loaded = Event()
        self._owing = Event()

    def begin(self) -> None:
        """Opens the store and loads the model in the background."""
        Begun(self._load)

    def memory(self, *, writing: bool = False) -> Memory:
        """The memory; where its model takes too long to load, the memory by words alone."""
        memory = self._opened()
        if self._loaded.wait(WRITING_PATIENCE_S if writing else self._patience_s):
            if self._owing.is_set():
                self._owing.clear()
                Begun(memory.reindex)
            return memory
        self._owing.set()
        return self._without_model(memory)

    @property
    def is_loaded(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self._loaded.is_set()

    @property
    def is_open(self) -> bool:
        """Whether the store could be opened."""
        return bool(self._opened)

    def close(self) -> None:
        """Lets go of the store, if it was opened."""
        give_up = monotonic() + CLOSING_PATIENCE_S
        while self._opened:
            try:
                return self._opened().close()
            except StoreError:
                # A question that nobody waits for any more may be in the middle of it.
                if monotonic() > give_up:
                    raise
                sleep(0.02)
        return None

    def _open(self) -> Memory:
        from recollect.memory import Memory  # heavy: not before the server answers

        return Memory.open(settings=self.settings)

    def _load(self) -> None:
        try:
            memory = self._opened()
            if memory.embedder is not None:
                memory.embedder.embed_query("ready")
        except RecollectError:
            # Whoever asks for the memory meets the same error, and can tell somebody.
            pass
        finally:
            self._loaded.set()

    def _without_model(self, memory: Memory) -> Memory:
        other = copy(memory)
        other.embedder = Loading()
        return other
