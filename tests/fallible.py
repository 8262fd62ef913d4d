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


class Replaced:
    """An object in which some attributes are others."""

    def __init__(self, whole: object, **attributes: Any) -> None:
        self._whole = whole
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


def with_methods(store: Store, part: str, **methods: Callable[..., Any]) -> Any:
    """The store with these methods in one of its parts."""
    replaced = Replaced(store, **{part: Replaced(getattr(store, part), **methods)})

    def trusted() -> Any:
        view = store.trusted()
        return replaced if view is store else view

    replaced.trusted = trusted
    return replaced


def overtaken(store: Store, other: Callable[[], object]) -> Any:
    """A store that another writer gets to first, between looking and writing."""

    def put(records: Sequence[Record], *, actor: str, now: datetime) -> list[PutResult]:
        other()
        return store.items.put(records, actor=actor, now=now)

    return with_methods(store, "items", put=put)


class Killed(BaseException):
    """The end of a process, as far as one can be had inside of one."""


class Dying:
    """A store whose process is killed just before its so many-th write."""

    WRITES = (
        ("items", ("put", "end", "restore", "set_status", "erase")),
        ("graph", ("add_links", "remove_links")),
        ("vectors", ("set_entity_embeddings",)),
        ("activity", ("put_thread",)),
        ("admin", ("log",)),
    )

    def __init__(self, store: Store, writes: int) -> None:
        self._whole = store
        self._left = writes
        for part, names in self.WRITES:
            whole = getattr(store, part)
            counted = {name: self._counted(getattr(whole, name)) for name in names}
            setattr(self, part, Replaced(whole, **counted))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def _counted(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            if self._left <= 0:
                raise Killed
            self._left -= 1
            return write(*args, **named)

        return counted
