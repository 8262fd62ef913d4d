"""Transfer the log to the file, and clear the free part of the pages that were in it.

``secure_delete`` zeroes what is deleted. But when SQLite balances a tree it may rebuild a
page, and leaves what stood there before between the page's cell pointers and its cells.
Those bytes belong to nothing. Zeroing them in the file changes no state of the store, and
half of it done does no harm, so it needs no transaction.

Every page that changes passes through the log. A checkpoint clears the pages of the log
before it is used anew, so that nothing else has to be looked at when something is erased.
meta's 'swept' is the generation (and the schema cookie) up to which all pages are clear,
'unswept' lists further pages that are not. Where the log does not reach back to 'swept' (a
file of an earlier version, a copy, a checkpoint by another program) every page is read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

import apsw

from bethink.errors import StoreBusy
from bethink.store.sqlite.files import wal_path
from bethink.store.sqlite.lock import TIMEOUT_S

MAX_LOG_BYTES = 64 * 2**20
# Whether an erase has yet to clear the file, after a crash or because of a reader.
SELECT_PENDING = "SELECT value FROM meta WHERE name = 'unscrubbed'"
_LOG_WAIT_MS = 5000
CHECKPOINT_PAGES = 2000  # pages in the log from which it is transferred to the file
_MAX_LISTED = 2000  # pages that a closing process lists instead of clearing them
_LOG_HEADER = 32  # bytes
_READ_PAGES = 64
_TREE_PAGE = struct.Struct(">BHHHB")  # type, first free block, cells, begin of content, fragments
_INNER_TYPES, _LEAF_TYPES = (2, 5), (10, 13)
# From here on the first byte of an overflow page may look like the type of a tree page.
_MAX_PAGES = 2 << 24
_FILE_FLAGS = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]

_SELECT_STATE = """
    SELECT (SELECT value FROM meta WHERE name = 'generation'),
        (SELECT schema_version FROM pragma_schema_version),
        (SELECT value FROM meta WHERE name = 'swept'),
        (SELECT value FROM meta WHERE name = 'unswept')
"""
_SET_SWEPT = """
    INSERT OR REPLACE INTO meta (name, value) SELECT 'swept', value || ':' || schema_version
    FROM meta, pragma_schema_version WHERE name = 'generation';
"""
_DROP_LIST = "DELETE FROM meta WHERE name = 'unswept';"
_SET_LIST = "INSERT OR REPLACE INTO meta (name, value) VALUES ('unswept', ?);"


# How many pages the log had after the last commit of a connection.
_log_pages = WeakKeyDictionary[apsw.Connection, int]()


def watch_log(db: apsw.Connection) -> None:
    """Note how long the log is, instead of the checkpoints that SQLite makes by itself."""
    db.set_wal_hook(_note_pages)


def _note_pages(db: apsw.Connection, _: str, pages: int) -> int:
    _log_pages[db] = pages
    return apsw.SQLITE_OK


def transfer_if_long(db: apsw.Connection, path: Path) -> None:
    """After a commit, transfer the log to the file if it has become long."""
    if _log_pages.get(db, 0) < CHECKPOINT_PAGES:
        return
    try:
        _transfer(db, path)
    except apsw.Error:
        return  # what was committed is in the log; the next commit tries again


def _transfer(db: apsw.Connection, path: Path) -> None:
    """Transfer the log as far as readers allow, and clear its pages if that was all of it."""
    frames, done = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    # The log stays as it is until the next write.
    pages = unswept_pages(db, path) if frames == done else None
    if pages is not None:
        clear_pages(path, pages)
        mark_swept(db)


def bound_log(db: apsw.Connection, path: Path) -> None:
    """Keep the log within its limit: transfer it to the file, or refuse to write more.

    A reader that stays at an old state of the store keeps the log from being reused.
    """
    try:
        if wal_path(path).stat().st_size <= MAX_LOG_BYTES:
            return
    except OSError:
        return  # there is none yet; SQLite reports any other error
    if not empty_log(db, path, wait_ms=_LOG_WAIT_MS):
        raise StoreBusy(
            f"the log of {path} is full, another program has been reading it for long;"
            " nothing was saved",
            remedy="end the program that reads it, then try again",
        )


def empty_log(
    db: apsw.Connection, path: Path, *, wait_ms: int, sweep_all: bool = False, also: str = ""
) -> bool:
    """Transfer the log and truncate it; False where a reader keeps it in use.

    ``sweep_all`` clears every page of the file if it is not known which ones to clear, and
    ``also`` is a statement of the transaction that records it.
    """
    pages = unswept_pages(db, path)
    db.set_busy_timeout(wait_ms)
    try:
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        db.set_busy_timeout(int(TIMEOUT_S * 1000))
    if pages is not None or sweep_all:
        clear_pages(path, pages)
        # This connection, too, must not write a page back as it was.
        db.execute("PRAGMA shrink_memory")
        mark_swept(db, also)
    return True


def can_sweep(db: apsw.Connection) -> bool:
    """Whether the pages of the file can be distinguished."""
    has_map = db.execute("PRAGMA auto_vacuum").get != 0
    return not has_map and db.execute("PRAGMA page_count").get < _MAX_PAGES


def unswept_pages(db: apsw.Connection, path: Path) -> set[int] | None:
    """Return the pages that may have to be cleared; None where it may be any."""
    generation, cookie, swept, listed = db.execute(_SELECT_STATE).get
    since, _, known_cookie = str(swept or "").partition(":")
    pages = _listed_pages(listed)
    if pages is None or not (since.isdecimal() and str(generation).isdecimal()):
        return None
    if known_cookie != str(cookie) or not can_sweep(db):
        return None
    missing = int(generation) - int(since)
    try:
        frames = _frames(wal_path(path)) if missing > 0 else []
    except OSError:
        return None  # no handle is free; the log itself is SQLite's to read
    for page, is_commit in reversed(frames):
        # The frames of a transaction end with that of its commit.
        if is_commit:
            if missing == 0:
                break
            missing -= 1
        pages.add(page)
    return pages if missing == 0 else None


def _listed_pages(listed: object) -> set[int] | None:
    """Return the pages of a list; None where rot has made it something else."""
    try:
        found = json.loads(str(listed or "[]"))
    except ValueError:
        return None
    is_sound = isinstance(found, list) and all(type(one) is int and one > 0 for one in found)
    return set(found) if is_sound else None


def _frames(log: Path) -> list[tuple[int, bool]]:
    """Return the page of each frame in the log, and whether it commits a transaction."""
    frames: list[tuple[int, bool]] = []
    if not log.exists():
        return frames
    with log.open("rb", buffering=0) as file:
        header = file.read(_LOG_HEADER)
        own_salt = header[16:24]
        # Of a frame: page, pages of the file after a commit, salt; two checksums and the page.
        layout = struct.Struct(f">I4s8s8x{int.from_bytes(header[8:12])}x")
        while block := file.read(_READ_PAGES * layout.size):
            whole = memoryview(block)[: len(block) // layout.size * layout.size]
            for page, size, salt in layout.iter_unpack(whole):
                # A frame with another salt is from before the log was used anew.
                if salt != own_salt:
                    return frames
                frames.append((page, size != b"\0\0\0\0"))
    return frames


def clear_pages(path: Path, pages: Iterable[int] | None) -> None:
    """Zero the free part of these pages, or of all, in the file itself.

    The log must have been transferred, and the write lock held. Reads through SQLite's own
    file layer: a handle of ours, once closed, would drop the locks of other connections.
    """
    with closing(_File(path)) as file:
        for number, page in file.read_pages(None if pages is None else sorted(pages)):
            begin, end = _free_part(page, 100 if number == 1 else 0)
            if page[begin:end].strip(b"\0"):
                file.zero(number, begin, end)
        file.sync()


def _free_part(page: bytes, header: int) -> tuple[int, int]:
    """Return where the unused part of a page begins and ends; an empty one if it is no tree's.

    What the page's cells take is never part of it, also where rot has changed its header.
    """
    kind, _, cells, content, _ = _TREE_PAGE.unpack_from(page, header)
    if kind not in _LEAF_TYPES and kind not in _INNER_TYPES:
        return 0, 0
    pointers = header + (8 if kind in _LEAF_TYPES else 12)
    begin = pointers + 2 * cells
    if not begin < content <= len(page):
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

    def read_pages(self, numbers: Iterable[int] | None) -> Iterator[tuple[int, bytes]]:
        size = self._page_size
        if numbers is not None:
            for number in numbers:
                if number <= self._count:
                    yield number, self._file.xRead(size, (number - 1) * size)
            return
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


def mark_swept(db: apsw.Connection, also: str = "") -> None:
    """Record that all pages are clear, in a transaction of its own.

    It also makes other connections read their pages anew, so that none writes a page back
    as it was. It need not survive a crash: then every page is read once more.
    """
    with _without_sync(db):
        _execute_all(db, f"{_SET_SWEPT} {_DROP_LIST} {also}")


def list_unswept(db: apsw.Connection, path: Path) -> None:
    """Before the log goes with the last connection, list its pages, or clear them."""
    try:
        pages = unswept_pages(db, path)
        if pages is not None and len(pages) > _MAX_LISTED:
            _transfer(db, path)
        elif pages is not None:
            with _without_sync(db):
                _execute_all(db, f"{_SET_SWEPT} {_SET_LIST}", json.dumps(sorted(pages)))
    except apsw.Error:
        return  # every page is read when something is erased


def _execute_all(db: apsw.Connection, statements: str, *values: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(statements, values)
        db.execute("COMMIT")
    except BaseException:
        if not db.get_autocommit():
            db.execute("ROLLBACK")
        raise


@contextmanager
def _without_sync(db: apsw.Connection) -> Iterator[None]:
    before = db.execute("PRAGMA synchronous").get
    db.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        db.execute(f"PRAGMA synchronous = {before:d}")
