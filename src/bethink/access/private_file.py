"""Records in one private JSON file: tokens, webhooks, the grants of OAuth."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from bethink.config.paths import make_private_folder
from bethink.core.atomic_write import atomic_replace
from bethink.core.json_values import Json
from bethink.errors import BadSetting
from bethink.store.sqlite.lock import FileLock, hold_lock

T = TypeVar("T")
_VERSION = 1


class PrivateFile(Generic[T]):
    """The records of a file; changes that other processes make are picked up at once.

    ``kind`` is their name in the file and in messages, for example ``tokens``.
    """

    def __init__(
        self, path: Path, kind: str, parse: Callable[[Json], T], dump: Callable[[T], Json]
    ) -> None:
        self.path, self._kind, self._parse, self._dump = path, kind, parse, dump
        # One value: threads that read at the same time never mix the state of two files.
        self._cached: tuple[tuple[int, int, int], tuple[T, ...]] | None = None

    def read(self) -> tuple[T, ...]:
        """Return every record, in order of creation."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return ()
        mark, cached = (found.st_ino, found.st_mtime_ns, found.st_size), self._cached
        if cached is None or cached[0] != mark:
            self._cached = cached = mark, self._load(found)
        return cached[1]

    @contextmanager
    def transaction(self) -> Iterator[list[T]]:
        """Yield the records to change under a file lock; save them on success."""
        try:
            make_private_folder(self.path.parent)
        except OSError as error:
            raise self._write_error(error) from error
        lock = FileLock(self.path.with_name(f"{self.path.name}.lock"))
        with hold_lock(lock, str(self.path)):
            kept = list(self.read())
            before = kept[:]
            yield kept
            if kept != before:
                self._save(kept)

    def drop(self, is_meant: Callable[[T], bool]) -> int:
        """Remove records; return how many there were."""
        with self.transaction() as kept:
            before = len(kept)
            kept[:] = [record for record in kept if not is_meant(record)]
            return before - len(kept)

    def _load(self, stat: os.stat_result) -> tuple[T, ...]:
        path = self.path
        if os.name == "posix" and stat.st_mode & 0o022:
            # A user who can write this file can give rights.
            raise BadSetting(f"other users can write to {path}", remedy=f"chmod 600 {path}")
        try:
            data = json.loads(path.read_bytes())
            if data["version"] != _VERSION:
                raise BadSetting(f"{path} was written by another version of Bethink")
            return tuple(self._parse(record) for record in data[self._kind])
        except OSError as error:
            raise BadSetting(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadSetting(f"{path} is not a file of {self._kind}", remedy="remove it") from error

    def _save(self, kept: list[T]) -> None:
        records = [self._dump(record) for record in kept]
        text = json.dumps({"version": _VERSION, self._kind: records}, indent=1) + "\n"
        # Follow a symbolic link: the target is replaced, the link stays.
        real = Path(os.path.realpath(self.path))
        try:
            atomic_replace(real, text.encode())
        except OSError as error:
            raise self._write_error(error) from error

    def _write_error(self, error: OSError) -> BadSetting:
        return BadSetting(f"{self.path} cannot be written: {error.strerror}")
