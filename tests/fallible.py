"""Parts that fail or come too late, to see what the others make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from bethink.errors import ModelError
from bethink.ports import Embedding, PutResult, Record, Store


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
        self._store_new = store
        self._other = other

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store_new, name)

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[PutResult]:
        self._other()
        return self._store_new.put(records, actor=actor, now=now)


class Killed(BaseException):
    """The end of a process, as far as one can be had inside of one."""


class Dying:
    """A store whose process is killed just before its so many-th write."""

    WRITES = frozenset(
        ("put", "end", "restore", "set_status", "erase", "add_links", "remove_links", "log",
         "set_momenta", "set_entity_embeddings", "put_thread")
    )  # fmt: skip

    def __init__(self, store: Store, writes: int) -> None:
        self._store_new = store
        self._left = writes

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store_new, name)
        return self._counted(found) if name in self.WRITES else found

    def _counted(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            if self._left <= 0:
                raise Killed
            self._left -= 1
            return write(*args, **named)

        return counted
