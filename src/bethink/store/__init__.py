"""Registry of stores, and the text analysis and ranking they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bethink.core.json_values import Json
from bethink.core.registry import Registry
from bethink.errors import MissingExtra, NotFound
from bethink.store.url import is_server

if TYPE_CHECKING:
    from bethink.ports import Progress, Store
    from bethink.store.postgres.move import Moved

DEFAULT_STORE = "sqlite"


class StoreClass(Protocol):
    """The class of a store, which opens one."""

    def open(self, path: Path | None, *, space: str) -> Store:
        """Open the store of a space at a path, creating it; without a path, in memory."""


STORES: Registry[StoreClass] = Registry(
    "store", {DEFAULT_STORE: "bethink.store.sqlite:SqliteStore"}, group="bethink.stores"
)


def open_on_server(url: str, space: str, *, create: bool = True) -> Store:
    """Open a space on a server; one that does not exist is created, or else empty."""
    with _driver():
        from bethink.store.postgres import PostgresStore
    try:
        return PostgresStore.open(url, space=space, create=create)
    except NotFound:
        if create:
            raise
        return find_store(DEFAULT_STORE).open(None, space=space)


_SHELF = "~"  # no name of a space has it


def shelf_name(space: str, key: str) -> str:
    """Return the name on a server of what only some people see of a space."""
    return f"{space}{_SHELF}{key}"


def spaces_on_server(url: str) -> list[str]:
    """Return the names of all spaces on a server."""
    return [name for name in _names_on_server(url) if _SHELF not in name]


def shelf_folder(path: Path) -> Path:
    """Return the folder of the stores that only some people of a space see."""
    return path.with_name(f"{path.stem}.people")


def list_shelves(store: str, space: str, path: Path) -> list[tuple[str, Path]]:
    """Return what only some people see of a space: names on a server, and files."""
    folder, start = shelf_folder(path), shelf_name(space, "")
    if is_server(store):
        names = [name for name in _names_on_server(store) if name.startswith(start)]
        return [(name, folder / f"{name.removeprefix(start)}.db") for name in names]
    return [(start + file.stem, file) for file in sorted(folder.glob("*.db"))]


def _names_on_server(url: str) -> list[str]:
    with _driver():
        from bethink.store.postgres.opening import list_spaces
    return list_spaces(url)


def space_exists(store: str, name: str, path: Path) -> bool:
    """Whether a space exists: on the server or, for stores in files, at the path."""
    if not is_server(store):
        return path.exists()
    with _driver():
        from bethink.store.postgres.opening import has_space
    return has_space(store, name)


def remove_from_server(url: str, space: str) -> None:
    """Remove a space with everything in it from a server."""
    with _driver():
        from bethink.store.postgres.opening import remove_space
    remove_space(url, space)


def move_space(
    space: str, path: Path, *, source: str, target: str, progress: Progress | None = None
) -> Moved:
    """Move a space between its file and a server, or between servers."""
    with _driver():
        from bethink.store.postgres import move

    def place(store: str) -> move.Place:
        return move.OnServer(store, space) if is_server(store) else move.InFile(path)

    return move.move_space(place(source), place(target), progress)


def prepare_server(url: str, step: str) -> Json:
    """Prepare a database for memories ("init", "migrate", "distribute"); return its status."""
    with _driver():
        from bethink.store.postgres import opening
    steps = {
        "distribute": opening.distribute_store,
        "init": opening.init_store,
        "migrate": opening.migrate_store,
        "status": opening.store_status,
    }
    return steps[step](url)._asdict()


@contextmanager
def _driver() -> Iterator[None]:
    """Say how to install the driver of a server, where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in {"psycopg", "psycopg_pool"}:
            raise
        raise MissingExtra("the driver for PostgreSQL", extra="postgres") from error


def find_store(name: str) -> StoreClass:
    """Return the store class of a name."""
    if name not in STORES:
        remedy = f"one of {', '.join(STORES)}, or postgresql://..."
        raise NotFound(f"there is no store {name!r}", remedy=remedy)
    return STORES[name]
