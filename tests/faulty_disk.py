"""A disk that fails, or loses power, when a test says so: a layer below SQLite.

Every read, write, sync and truncation of the database and its log passes through it. It
can raise an error at the k-th of them, and it knows what was written but not synced, so
that a test can ask what a power cut at any moment would have left on the disk.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import apsw

_SECTOR = 512


@dataclass
class Fault:
    """The error at the ``at``-th call of an operation, once or from then on."""

    operation: str
    at: int
    error: type[apsw.Error] = apsw.IOError
    code: int = apsw.SQLITE_IOERR_READ
    lasting: bool = False
    calls: int = 0
    fired: bool = False

    def check(self, operation: str) -> None:
        if operation != self.operation:
            return
        self.calls += 1
        if self.calls == self.at or (self.lasting and self.calls > self.at):
            self.fired = True
            error = self.error("the disk failed")
            error.extendedresult = self.code
            raise error


class Change(NamedTuple):
    """One thing done to a file: bytes written, a new length, or a sync."""

    file: str
    kind: str
    offset: int = 0
    data: bytes = b""


@dataclass
class Disk:
    """What tests know and say of the disk."""

    fault: Fault | None = None
    changes: list[Change] | None = None
    opened: dict[str, bytes] = field(default_factory=dict)

    def check(self, operation: str) -> None:
        if self.fault is not None:
            self.fault.check(operation)

    def note(self, change: Change) -> None:
        if self.changes is not None and change.file.startswith(tuple(self.opened)):
            self.changes.append(change)

    def record(self, path: Path) -> None:
        """Begin to record what is done to a space, closed until now."""
        self.opened = {str(path): path.read_bytes()}
        self.changes = []


_disk = Disk()


class _File(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        _disk.check("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        _disk.check("write")
        super().xWrite(data, offset)
        _disk.note(Change(self._name, "write", offset, bytes(data)))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        _disk.check("sync")
        super().xSync(flags)
        _disk.note(Change(self._name, "sync"))

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        _disk.check("truncate")
        super().xTruncate(size)
        _disk.note(Change(self._name, "truncate", size))


class _Vfs(apsw.VFS):
    def __init__(self) -> None:
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _File(name, flags)


@contextmanager
def faulty_disk() -> Iterator[Disk]:
    """Put every file that SQLite opens meanwhile on the faulty disk."""
    _disk.fault, _disk.changes, _disk.opened = None, None, {}
    layer = _Vfs()
    try:
        yield _disk
    finally:
        _disk.fault, _disk.changes = None, None
        layer.unregister()


def after_power_cut(
    before: dict[str, bytes], changes: list[Change], dice: random.Random
) -> dict[str, bytes]:
    """Return the files that a power cut after these changes may leave.

    What was synced is there. Of what was not, any part may be missing: whole writes, or
    sectors of them.
    """
    files = {name: bytearray(content) for name, content in before.items()}
    pending: dict[str, list[Change]] = {}
    for change in changes:
        if change.kind != "sync":
            pending.setdefault(change.file, []).append(change)
            continue
        for written in pending.pop(change.file, []):
            _apply(files.setdefault(change.file, bytearray()), written)
    by_sector = dice.random() < 0.5
    share = dice.choice((0.0, 0.3, 0.7, 1.0))
    for name, unsynced in pending.items():
        for written in unsynced:
            if not by_sector or written.kind != "write":
                if dice.random() < share:
                    _apply(files.setdefault(name, bytearray()), written)
                continue
            for start in range(0, len(written.data), _SECTOR):
                if dice.random() < share:
                    part = written.data[start : start + _SECTOR]
                    piece = written._replace(offset=written.offset + start, data=part)
                    _apply(files.setdefault(name, bytearray()), piece)
    return {name: bytes(content) for name, content in files.items()}


def _apply(content: bytearray, change: Change) -> None:
    if change.kind == "truncate":
        del content[change.offset :]
        content.extend(bytes(change.offset - len(content)))
        return
    end = change.offset + len(change.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    content[change.offset : end] = change.data
