"""Files and standard input: opened, unpacked, recognised by how they begin."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, BinaryIO, NamedTuple

from recollect.errors import BadText, Refused
from recollect.ingest.strict_json import strict_json
from recollect.ingest.unzip import Bounded

STANDARD_INPUT = "-"
BEGINNING = 1 << 16
_BOM = b"\xef\xbb\xbf"
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")


class Stream(NamedTuple):
    """A file to import; ``reader`` gives it unpacked, ``file`` is the file itself."""

    name: str
    reader: io.BufferedReader
    file: BinaryIO
    size: int = 0

    @property
    def done(self) -> int:
        """How many bytes of the file have been read, where it has a size."""
        return self.file.tell() if self.size else 0


@contextmanager
def open_stream(name: str) -> Iterator[Stream]:
    """The file of that name; ``-`` is standard input."""
    if name == STANDARD_INPUT:
        yield _stream("standard input", sys.stdin.buffer)
        return
    path = path_of(name)
    # The name becomes the memories' source, so it must be one that can be stored.
    told = os.fsencode(path.name).decode("utf-8", "replace")
    with path.open("rb") as file:
        yield _stream(told, file, path.stat().st_size)


def _stream(name: str, file: BinaryIO, size: int = 0) -> Stream:
    return Stream(name, io.BufferedReader(Bounded(file), BEGINNING), file, size)


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """A file from its beginning, unpacked where it is packed by gzip."""
    with path.open("rb") as file:
        yield io.BufferedReader(Bounded(file), BEGINNING)


def is_stream(name: str) -> bool:
    """Whether something can be read only once: standard input, a pipe, a device."""
    if name == STANDARD_INPUT:
        return True
    mode = path_of(name).stat().st_mode
    return not (S_ISREG(mode) or S_ISDIR(mode))


def path_of(name: str) -> Path:
    """Refuses by name what the system would not even look for."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise BadText("a file's name cannot hold a lone surrogate") from error
    if "\x00" in name:
        raise BadText("a file's name cannot hold NUL")
    return Path(name)


def guess_format(beginning: bytes) -> str:
    """What a file begins like: an export, JSON Lines, paragraphs, or lines."""
    content = beginning.removeprefix(_BOM).strip()
    first = content.partition(b"\n")[0]
    if first.startswith((b"{", b'"')):
        try:
            return "recollect" if is_export(_value(first, 1)) else "jsonl"
        except Refused:
            if first.startswith(b"{"):
                return "jsonl"  # JSON was meant; the line will be refused by name
    return "text" if _BLANK_LINE.search(content) else "lines"


def is_export(first: Any) -> bool:
    """Whether this is the first record of an export."""
    return isinstance(first, dict) and first.get("type") == "recollect"


def records(stream: Stream) -> Iterator[dict[str, Any]]:
    """The records of an export; a line that is none ends the import."""
    for number, line in enumerate(stream.reader, start=1):
        if line.strip():
            value = _value(line, number)
            if not isinstance(value, dict):
                raise BadText(f"line {number} is not a record of an export")
            yield value


def _value(line: bytes, number: int) -> Any:
    try:
        return strict_json(line.removeprefix(_BOM).decode())
    except UnicodeDecodeError as error:
        raise BadText(f"line {number} is not UTF-8 at byte {error.start + 1}") from error
