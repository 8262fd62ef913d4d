"""A store is seven protocols, each small enough to implement in one class."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink.ports.store import (
    ActivityStore,
    GraphStore,
    ItemSearch,
    ItemStore,
    Store,
    StoreAdmin,
    SyncStore,
    VectorStore,
)
from bethink.store.sqlite import SqliteStore
from postgres_server import open_space
from rows import each_row

PARTS = {
    "search": ItemSearch,
    "items": ItemStore,
    "graph": GraphStore,
    "vectors": VectorStore,
    "activity": ActivityStore,
    "admin": StoreAdmin,
    "sync": SyncStore,
}


def public(owner: type) -> set[str]:
    return {name for name in vars(owner) if not name.startswith("_")}


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="test")
    yield opened
    opened.close()


def test_a_store_is_its_seven_parts() -> None:
    """Besides them a name, two views, a snapshot, hints for it, a look for conflicts, an end."""
    whole = {"space", "below", "trusted", "snapshot", "read_ahead", "has_conflicts", "close"}
    assert public(Store) == {*PARTS, *whole}


@each_row("part", PARTS)
def test_a_part_has_at_most_fifteen_methods(part: str) -> None:
    """More than that is two parts."""
    assert 1 <= len(public(PARTS[part])) <= 15


@each_row("part", PARTS)
def test_sqlite_has_exactly_the_methods_of_the_protocol(store: SqliteStore, part: str) -> None:
    """With the same signatures: a second store needs nothing else."""
    made = type(getattr(store, part))
    named = {name for owner in made.__mro__ for name in public(owner)}

    assert named == public(PARTS[part])
    for name in named:
        wanted = inspect.signature(getattr(PARTS[part], name))
        assert inspect.signature(getattr(made, name)) == wanted, name


@each_row("part", PARTS)
def test_postgres_has_the_methods_of_the_protocol(part: str, tmp_path: Path) -> None:
    """With the same signatures."""
    store = open_space(tmp_path)
    made = type(getattr(store, part))
    for name in public(PARTS[part]):
        wanted = inspect.signature(getattr(PARTS[part], name))
        assert inspect.signature(getattr(made, name)) == wanted, name
    store.close()
