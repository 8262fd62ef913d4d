"""Carry over the spaces and settings of the time when the project had another name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import apsw

from bethink.config.settings import Settings, load_settings
from bethink.config.spaces import SpaceInfo, data_dir
from bethink.core.atomic_write import atomic_replace
from bethink.core.json_values import Json
from bethink.errors import BadSetting, StoreError
from bethink.memory import Memory
from bethink.ports import Progress, Store
from bethink.render.wire import dumps
from bethink.store.sql.export import DAMAGED
from bethink.store.sqlite import SqliteStore
from bethink.store.sqlite.errors import translate_errors
from bethink.store.sqlite.files import has_content, key_path, make_private_folder, wal_path

_COMPARED = ("item", "link", "status_change")
_SETTINGS_FILES = ("config.toml", "tokens.json", "profiles/*.toml")


def carry_over(space: SpaceInfo, settings: Settings, progress: Progress) -> Json:
    """Import an earlier version's space into the one of its name; compare and count.

    The old file is not changed. Raises StoreError where something did not arrive.
    """
    home = data_dir(settings)
    make_private_folder(home)
    with (
        TemporaryDirectory(prefix=".upgrade-", dir=home) as folder,
        closing(_open_copy(space, Path(folder) / space.path.name)) as old,
        Memory.open(space.name, settings=settings) as memory,
    ):
        known = _ids(memory.store, "item", "tombstone")
        count = memory.import_(old.admin.dump(), restore=True, progress=progress)
        # What was erased here stays away, also under another id.
        skipped = known | _ids(memory.store, "tombstone")
        missing = _marks(old, skipped) - _marks(memory.store, skipped)
        if missing:
            raise StoreError(
                f"{len(missing):,} records of {space.path} did not arrive here",
                remedy=f"bethink doctor; the old file is unchanged, and {space.name} incomplete",
            )
        known &= _ids(old, "item")
        damaged = sum(record["type"] == DAMAGED for record in old.admin.dump())
    return {"space": space.name, "memories": count, "known": len(known), "damaged": damaged}


def _open_copy(space: SpaceInfo, path: Path) -> SqliteStore:
    """Open a copy with the schema of this version; another program may have the old file open."""
    # Without a log to read, SQLite would leave an empty one in the old folder.
    mode = "mode=ro" if has_content(wal_path(space.path)) else "immutable=1"
    uri = f"{space.path.absolute().as_uri()}?{mode}"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with translate_errors(str(space.path)), closing(apsw.Connection(uri, flags=flags)) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    if key_path(space.path).is_file():
        copyfile(key_path(space.path), key_path(path))
    return SqliteStore.open(path, space=space.name)


def _ids(store: Store, *kinds: str) -> set[str]:
    return {record["id"] for record in store.admin.dump() if record["type"] in kinds}


def _marks(store: Store, but: Collection[str]) -> set[int]:
    """Return a digest of each memory's revisions, links and statuses, ``but`` of known ones."""
    return {
        hash(dumps(record))
        for record in store.admin.dump()
        if record["type"] in _COMPARED
        and not any(record.get(end) in but for end in ("id", "src", "dst"))
    }


def carry_settings(old: Path, new: Path) -> Iterator[tuple[str, str]]:
    """Copy settings, tokens and profiles that are missing here; yield names and problems."""
    for path in sorted(found for name in _SETTINGS_FILES for found in old.glob(name)):
        target = new / path.relative_to(old)
        if path.is_file() and not target.exists():
            make_private_folder(target.parent)
            atomic_replace(target, path.read_bytes())
            try:
                load_settings()
            except BadSetting as error:
                target.unlink()
                yield target.name, error.message
            else:
                yield target.name, ""
