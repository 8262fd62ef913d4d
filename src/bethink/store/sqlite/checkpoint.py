"""Transfer the log to the file, and clear the free part of its pages.

``secure_delete`` zeroes what is deleted. But when SQLite balances a tree it may rebuild a
page, and leaves what stood there before between the page's cell pointers and its cells.
Those bytes belong to nothing. Zeroing them in the file changes no state of the store, and
half of it done does no harm, so it needs no transaction.

So an erase, whose transaction is in the log, transfers the log to the file, truncates it, and
looks at every page of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw

from bethink.errors import StoreBusy
from bethink.store.sqlite.files import wal_path
from bethink.store.sqlite.lock import TIMEOUT_S

MAX_LOG_BYTES = 64 * 2**20
# Whether an erase has yet to clear the file, after a crash or because of a reader.
SELECT_PENDING = "SELECT value FROM meta WHERE name = 'unscrubbed'"
_LOG_WAIT_MS = 5000
_READ_PAGES = 64
_TREE_PAGE = struct.Struct(">BHHHB")  # type, first free block, cells, begin of content, fragments
_INNER_TYPES, _LEAF_TYPES = (2, 5), (10, 13)
# From here on the first byte of an overflow page may look like the type of a tree page.
_MAX_PAGES = 2 << 24
_FILE_FLAGS = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]


def bound_log(db: apsw.Connection, path: Path) -> None:
    """Keep the log within its limit: transfer it to the file, or refuse to write more.

    A reader that stays at an old state of the store keeps the log from being reused.
    """
    try:
        if wal_path(path).stat().st_size <= MAX_LOG_BYTES:
            return
    except OSError:
        return  # there is none yet; SQLite reports any other error
    if not empty_log(db, wait_ms=_LOG_WAIT_MS):
        raise StoreBusy(
            f"the log of {path} is full, another program has been reading it for long;"
            " nothing was saved",
            remedy="end the program that reads it, then try again",
        )


def empty_log(db: apsw.Connection, *, wait_ms: int) -> bool:
    """Transfer the log and truncate it; False where a reader keeps it in use."""
    db.set_busy_timeout(wait_ms)
    try:
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        db.set_busy_timeout(int(TIMEOUT_S * 1000))
    return True


def can_sweep(db: apsw.Connection) -> bool:
    """Whether the pages of the file can be distinguished."""
    has_map = db.execute("PRAGMA auto_vacuum").get != 0
    return not has_map and db.execute("PRAGMA page_count").get < _MAX_PAGES


def clear_pages(path: Path) -> None:
    """Zero the free part of all pages, in the file itself.

    The log must have been transferred, and the write lock held. Reads through SQLite's own
    file layer: a handle of ours, once closed, would drop the locks of other connections.
    """
    with closing(_File(path)) as file:
        for number, page in file.read_pages():
            begin, end = _unclear_part(page, 100 if number == 1 else 0)
            if begin < end:
                file.zero(number, begin, end)
        file.sync()


def _unclear_part(page: bytes, header: int) -> tuple[int, int]:
    """Return where the unused part of a page begins and ends; an empty one if all of it is clear.

    What the page's cells take is never part of it, also where rot has changed its header.
    """
    kind, _, cells, content, _ = _TREE_PAGE.unpack_from(page, header)
    if kind not in _LEAF_TYPES and kind not in _INNER_TYPES:
        return 0, 0
    pointers = header + (8 if kind in _LEAF_TYPES else 12)
    begin = pointers + 2 * cells
    if not begin < content <= len(page) or not page[begin:content].strip(b"\0"):
        return 0, 0
    first_cell = min(struct.unpack_from(f">{cells}H", page, pointers), default=content)
    return (begin, content) if first_cell >= content else (0, 0)


class _File:
    """The database file, read and written as bytes."""

    def __init__(self, path: Path) -> None:
        self._file = apsw.VFSFile("", str(path), _FILE_FLAGS)
        size = int.from_bytes(self._file.xRead(2, 16))
        self._page_size = 65536 if size == 1 else size
        self._count = self._file.xFileSize() // self._page_size
        self._is_changed = False

    def read_pages(self) -> Iterator[tuple[int, bytes]]:
        size = self._page_size
        for first in range(0, self._count, _READ_PAGES):
            block = self._file.xRead(min(_READ_PAGES, self._count - first) * size, first * size)
            for at in range(0, len(block), size):
                yield first + at // size + 1, block[at : at + size]

    def zero(self, number: int, begin: int, end: int) -> None:
        self._file.xWrite(bytes(end - begin), (number - 1) * self._page_size + begin)
        self._is_changed = True

    def sync(self) -> None:
        if self._is_changed:
            self._file.xSync(apsw.SQLITE_SYNC_NORMAL)

    def close(self) -> None:
        self._file.xClose()
