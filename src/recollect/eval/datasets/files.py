"""Reads data files: JSON, JSON Lines, either of them gzipped."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from recollect.errors import Refused


def locate(path: Path | None, names: Sequence[str], published: str) -> Path:
    """The file meant by a path or by the folder it is in; a sentence where there is none."""
    where = f"the data is published as {published}"
    if path is None:
        raise Refused("this data set needs a path", remedy=f"{where}; give its path")
    if path.is_dir():
        for name in names:
            for found in sorted(path.glob(name)):
                return found
        raise Refused(f"{path} holds none of {', '.join(names)}", remedy=where)
    if not path.exists():
        raise Refused(f"there is no file {path}", remedy=where)
    return path


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file: one JSON list, or one object a line."""
    with open_text(path) as stream:
        first = stream.read(1)
        while first.isspace():
            first = stream.read(1)
        records = _listed(first, stream, path) if first == "[" else _lines(first, stream, path)
        for place, record in records:
            if not isinstance(record, dict):
                raise Refused(f"{place}: expected an object, found {type(record).__name__}")
            yield record


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, without their ends."""
    with open_text(path) as stream:
        for line in stream:
            yield line.rstrip("\r\n")


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The file as text, unpacked if it is packed; refused by name where it is broken."""
    with path.open("rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    unpack = gzip.open if packed else open
    try:
        with unpack(path, "rt", encoding="utf-8-sig") as stream:
            yield stream
    except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"{path} cannot be read: {error}") from error


def _listed(first: str, stream: TextIO, path: Path) -> Iterator[tuple[str, Any]]:
    for number, entry in enumerate(_parse(first + stream.read(), str(path))):
        yield f"{path}[{number}]", entry


def _lines(first: str, stream: TextIO, path: Path) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(stream, start=1):
        place = f"{path}:{number}"
        full = first + line if number == 1 else line
        if full.strip():
            yield place, _parse(full, place)


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(f"{place}: not valid JSON: {error}") from error


def field(record: dict[str, Any], name: str, place: str) -> Any:
    """A field that must be there."""
    if name not in record:
        raise Refused(f"{place}: the field {name!r} is missing")
    return record[name]
