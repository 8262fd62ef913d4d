"""Opens the JSON files of a chat export: a file, a folder of them, or the zip it came in.

Nothing is unpacked to disk, so no name inside an archive can lead anywhere; what would
unpack to far more than it is, is refused.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EINVAL
from lzma import LZMAError
from pathlib import Path
from struct import error as StructError  # noqa: N812
from typing import IO, BinaryIO, NamedTuple

from recollect.errors import BadText, NotFound, Refused, TooLarge
from recollect.ingest.unzip import MOST_RATIO, Bounded
from recollect.sources.source import Gauge

ZIP = b"PK\x03\x04"
MOST_BYTES = 16 << 30
_MOST_MEMBERS = 100_000
_RATIO_COUNTS_FROM = 1 << 20  # bytes; a few lines of the same are no attack
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, LZMAError, StructError),
    *(EOFError, NotImplementedError, ValueError, OverflowError),
)
_CONVERSATIONS = re.compile(r"(?:.*[/\\])?conversations(?:[-_ ]?\d{1,6})?\.json", re.IGNORECASE)


class Member(NamedTuple):
    """A file of an export, and what to call it."""

    name: str
    stream: BinaryIO


def opened(path: Path, gauge: Gauge) -> Iterator[Member]:
    """The conversations of an export, file by file; each must be read before the next."""
    if path.is_dir():
        yield from _of_folder(path, gauge)
    elif is_zip(path):
        yield from _of_zip(path, gauge)
    else:
        with path.open("rb") as file:
            gauge.total = os.fstat(file.fileno()).st_size
            yield Member(path.name, _bounded(file, path.name, gauge))


def is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == ZIP


def conversation_files(folder: Path) -> list[Path]:
    """The files of an unpacked export that hold conversations, by name."""
    with os.scandir(folder) as found:
        names = sorted(one.name for one in found if one.is_file(follow_symlinks=False))
    return [folder / name for name in names if _CONVERSATIONS.fullmatch(name)]


def _of_folder(folder: Path, gauge: Gauge) -> Iterator[Member]:
    files = conversation_files(folder)
    if not files:
        raise NotFound(f"there is no conversations.json in {folder.name}")
    gauge.total = sum(file.stat().st_size for file in files)
    for path in files:
        with path.open("rb") as file:
            yield Member(path.name, _bounded(file, path.name, gauge))


def _of_zip(path: Path, gauge: Gauge) -> Iterator[Member]:
    with _unpacking(path.name), zipfile.ZipFile(path) as archive:
        found = _members(archive, path.name)
        gauge.total = sum(member.file_size for member in found)
        for member in found:
            _refuse_bomb(member)
            with archive.open(member) as stream:
                yield Member(member.filename[-200:], _watched(stream, path.name, gauge))


def _members(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    inside = archive.infolist()
    if len(inside) > _MOST_MEMBERS:
        raise TooLarge(name, limit=_MOST_MEMBERS, actual=len(inside), unit="files")
    found = [one for one in inside if _CONVERSATIONS.fullmatch(one.filename)]
    if not found:
        raise Refused(f"there is no conversations.json in {name}")
    return sorted(found, key=lambda one: one.filename)


def _refuse_bomb(member: zipfile.ZipInfo) -> None:
    if member.file_size > MOST_BYTES:
        raise TooLarge("the unpacked file", limit=MOST_BYTES, actual=member.file_size)
    most = max(_RATIO_COUNTS_FROM, MOST_RATIO * member.compress_size)
    if member.file_size > most:
        ratio = member.file_size // max(1, member.compress_size)
        raise TooLarge("the unpacked file", limit=MOST_RATIO, actual=ratio, unit="times as big")


@contextmanager
def _unpacking(name: str) -> Iterator[None]:
    """Says in a sentence what is wrong with an archive."""
    try:
        yield
    except _BROKEN as error:
        raise BadText(f"{name} cannot be unpacked: {error}") from error
    except OSError as error:
        # What a place in the file that cannot be gone to comes to, or a broken bzip2.
        if error.filename is not None or error.errno not in (None, EINVAL):
            raise
        raise BadText(f"{name} cannot be unpacked: it is damaged") from error
    except RuntimeError as error:
        # What zipfile raises for an archive with a password.
        if "password" not in str(error) and "encrypted" not in str(error):
            raise
        raise BadText(f"{name} is locked by a password", remedy="unpack it first") from error


def _bounded(file: BinaryIO, name: str, gauge: Gauge) -> BinaryIO:
    """A file as it is, or unpacked where it is packed by gzip."""
    return _watched(io.BufferedReader(Bounded(file, most_bytes=MOST_BYTES)), name, gauge)


def _watched(stream: IO[bytes], name: str, gauge: Gauge) -> BinaryIO:
    return io.BufferedReader(_Watched(stream, name, gauge))


class _Watched(io.RawIOBase):
    """A stream that tells how far it has been read."""

    def __init__(self, stream: IO[bytes], name: str, gauge: Gauge) -> None:
        self._stream = stream
        self._name = name
        self._gauge = gauge

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with _unpacking(self._name):
            piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        self._gauge.done += len(piece)
        return len(piece)
