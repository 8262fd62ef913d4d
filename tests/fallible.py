"""Parts that fail or come too late, to see what the others make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from recollect.errors import ModelError
from recollect.ports import Embedding, Kept, Record, Store


class Down:
    """An embedder that is down."""

    model = "down"
    dim = 4

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        raise ModelError("the model does not answer")

    def embed_query(self, text: str) -> Embedding:
        raise ModelError("the model does not answer")

    def count_tokens(self, text: str) -> int:
        raise ModelError("the model does not answer")


class Overtaken:
    """A store that another writer gets to first, between looking and writing."""

    def __init__(self, store: Store, other: Callable[[], object]) -> None:
        self._store = store
        self._other = other

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[Kept]:
        self._other()
        return self._store.put(records, actor=actor, now=now)
