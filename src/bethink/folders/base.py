"""What a folder and a space had in common at last, and what the folder has now.

The base names memories by id and revision; it holds no text, so that an erase leaves none.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

from bethink.config.paths import make_private_folder
from bethink.config.spaces import files_folder
from bethink.core.atomic_write import atomic_replace
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused, StoreBusy, TooLarge
from bethink.folders.codec import Document, Links, fold_path, has_merge_markers, parse_document
from bethink.memory import Memory
from bethink.store.sqlite.lock import FileLock

MAX_FILE_BYTES = 4 * 1024 * 1024
_RACY_NS = 2_000_000_000  # a file this young may change again without a new time
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_TEMP_PREFIX = ".bethink-"
_READS = 4


class Row(NamedTuple):
    """A memory in a file: its revision and what the file said of it.

    ``conflict`` is the revision of the other version that the file shows; 0: none.
    """

    path: str
    rev: int
    digest: str
    links: Links = ()
    conflict: int = 0


class FileState(NamedTuple):
    """A file as it was last read or written; without a hash it is read again."""

    size: int
    mtime_ns: int
    inode: int
    sha256: str
    group: str


@dataclass(slots=True)
class Base:
    """The common state of a folder and a space.

    ``kind`` is the importer of a linked folder, whose ``imported`` memories (with their
    revisions) are withdrawn when it no longer has them.
    """

    folder: str
    kind: str = ""
    ceiling: int = 1
    checked_ns: int = 0
    generation: int = -1  # of the store when the files were written
    files: dict[str, FileState] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    imported: dict[str, int] = field(default_factory=dict)


def _base_path(memory: Memory, folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return files_folder(memory.settings, memory.store.space) / f"{name}.json"


def known_folders(memory: Memory) -> list[Path]:
    """List the folders of a space, by path."""
    home = files_folder(memory.settings, memory.store.space)
    files = sorted(home.glob("*.json")) if home.is_dir() else []
    return sorted(Path(json.loads(file.read_text("utf-8"))["folder"]) for file in files)


def load_base(memory: Memory, folder: Path) -> Base:
    """Load the base of a folder; an empty one where there is none."""
    try:
        given = json.loads(_base_path(memory, folder).read_text("utf-8"))
    except FileNotFoundError:
        return Base(str(folder))
    files = {path: FileState(*state) for path, state in given.pop("files").items()}
    rows = {
        item: Row(path, rev, digest, tuple((one, two) for one, two in links), conflict)
        for item, (path, rev, digest, links, conflict) in given.pop("rows").items()
    }
    return Base(**given, files=files, rows=rows)


def save_base(memory: Memory, base: Base) -> None:
    """Save the base of a folder."""
    named = {name: getattr(base, name) for name in Base.__dataclass_fields__}
    path = _base_path(memory, Path(base.folder))
    make_private_folder(path.parent)
    atomic_replace(path, json.dumps(named).encode())


def detach_folder(memory: Memory, folder: Path) -> None:
    """Remove the base of a folder; its files and memories stay as they are."""
    _base_path(memory, folder).unlink(missing_ok=True)


@contextmanager
def lock_folder(memory: Memory, folder: Path) -> Iterator[None]:
    """Hold the lock of a folder: one process at a time works on it."""
    path = _base_path(memory, folder).with_suffix(".lock")
    make_private_folder(path.parent)
    lock = FileLock(path)
    if not lock.acquire(0):
        raise StoreBusy(
            f"another bethink files works on {folder}", remedy="stop it, or wait until it is done"
        )
    try:
        yield
    finally:
        lock.release()


class Source(NamedTuple):
    """A file of memories that was read: its document, its bytes and when it was changed."""

    document: Document
    content: bytes
    state: FileState


@dataclass(slots=True)
class Scan:
    """The files of a folder: those that are as the base has them, read ones, held ones."""

    unchanged: dict[str, FileState] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # every file, also of others


def scan_folder(folder: Path, base: Base) -> Scan:
    """Find the Markdown files of a folder and read those that changed since the base."""
    scan = Scan()
    checked, shown = base.checked_ns, {row.path for row in base.rows.values()}
    base.checked_ns = time.time_ns()
    for path, entry in _walk(folder, ""):
        scan.names.add(path)
        if not path.endswith(".md"):
            continue
        found = entry.stat(follow_symlinks=False)
        before = base.files.get(path)
        young = found.st_mtime_ns > checked - _RACY_NS
        if before and before[:3] == _signature(found) and before.sha256 and not young:
            scan.unchanged[path] = before
            continue
        try:
            content, state = read_file(folder / path)
            if before and before.sha256 == state.sha256:
                scan.unchanged[path] = state._replace(group=before.group)
                continue
            known = before.group if before and path in shown else ""
            source = read_source(path, content, state, known=known)
        except Refused as refused:
            if before or path.partition("/")[0] in ("topics", "days", "notes"):
                scan.held[path] = refused.message
            continue
        if source is not None:
            scan.sources[path] = source
        elif before:
            scan.held[path] = "its front matter no longer says that it holds memories"
    folded = {fold_path(name) for name in scan.names}
    scan.held |= {
        path: "it is no regular file any more" for path in shown
        if fold_path(path) not in folded and os.path.lexists(folder / path)
    }  # fmt: skip
    return scan


def read_source(
    path: str, content: bytes, state: FileState, *, checked: bool = True, known: str = ""
) -> Source | None:
    """Parse a file; None where it is not one of memories."""
    if checked and has_merge_markers(content):
        raise Refused("a merge in it is not finished: it has <<<<<<< and >>>>>>>")
    if known and not content.strip():
        raise Refused("it is empty; remove the file to forget its memories")
    document = parse_document(content, path, known)
    return document and Source(document, content, state._replace(group=document.group))


def read_file(path: Path) -> tuple[bytes, FileState]:
    """Read a regular file that is not being written."""
    for attempt in range(_READS):
        try:
            handle = os.open(path, _OPEN_FLAGS)
        except OSError as error:
            raise Refused(f"it cannot be opened: {error.strerror}") from error
        with os.fdopen(handle, "rb") as file:
            first = os.fstat(handle)
            if not S_ISREG(first.st_mode):
                raise Refused("it is not a regular file")
            if first.st_size > MAX_FILE_BYTES:
                raise TooLarge("the file", limit=MAX_FILE_BYTES, actual=first.st_size)
            content = file.read(MAX_FILE_BYTES + 1)
            last = os.fstat(handle)
        if _signature(first) == _signature(last) and len(content) == last.st_size:
            sha256 = hashlib.sha256(content).hexdigest()
            return content, FileState(*_signature(last), sha256, "")
        time.sleep(0.05 * (attempt + 1))
    raise Refused("another program is writing it")


def _signature(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ino


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the regular files below a folder; no links, nothing hidden, no back-ups."""
    try:
        with os.scandir(folder / prefix) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return  # a new folder, or one that was removed meanwhile
    except OSError as error:
        raise Refused(f"{folder / prefix} cannot be read: {error.strerror}") from error
    for entry in entries:
        if entry.name.startswith(_TEMP_PREFIX) and entry.name != _TEMP_PREFIX:
            with suppress(OSError):  # what an interrupted write left
                Path(entry.path).unlink()
        if entry.name.startswith(".") or entry.name.endswith("~"):
            continue
        path = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(folder, f"{path}/")
        elif entry.is_file(follow_symlinks=False):
            yield path, entry
