"""Registry of stores, and the text analysis, ranking and signatures they share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bethink.core.registry import Registry
from bethink.errors import NotFound

if TYPE_CHECKING:
    from bethink.ports import Store

DEFAULT_STORE = "sqlite"


class StoreClass(Protocol):
    """The class of a store, which opens one."""

    def open(self, path: Path | None, *, space: str) -> Store:
        """Open the store of a space at a path, creating it; without a path, in memory."""
        ...


STORES: Registry[StoreClass] = Registry(
    "store", {DEFAULT_STORE: "bethink.store.sqlite:SqliteStore"}, group="bethink.stores"
)


def find_store(name: str) -> StoreClass:
    """Return the store class of a name."""
    if name not in STORES:
        raise NotFound(f"there is no store {name!r}", remedy=f"one of {', '.join(STORES)}")
    return STORES[name]
