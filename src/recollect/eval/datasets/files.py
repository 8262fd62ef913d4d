"""Reads data files: JSON, JSON Lines, either of them gzipped."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, TypeVar

from recollect.errors import Refused

T = TypeVar("T")

_IN_WORDS: dict[type, str] = {
    str: "text", list: "a list", dict: "an object", int: "a number", float: "a number",
    bool: "true or false", type(None): "null",
}  # fmt: skip


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
    return (record for _, record in read_placed(path))


def read_placed(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, each with the place it stands at."""
    with open_text(path) as stream:
        first, line = stream.read(1), 1
        while first.isspace():
            line += first == "\n"
            first = stream.read(1)
        if first == "[":
            records = _listed(first + stream.read(), path)
        else:
            records = _lines(chain((first + stream.readline(),), stream), line, path)
        for place, record in records:
            yield place, of_kind(record, place, dict)


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


def _listed(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    for number, entry in enumerate(_parse(text, str(path))):
        yield f"{path}[{number}]", entry


def _lines(lines: Iterable[str], first: int, path: Path) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(lines, start=first):
        if line.strip():
            yield f"{path}:{number}", _parse(line, f"{path}:{number}")


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(f"{place}: not valid JSON: {error}") from error


def field(record: Any, name: str, place: str, kind: type[T] = object) -> T:  # type: ignore[assignment]
    """A field that must be there and be of a kind; ``place`` says where it was looked for."""
    if name not in of_kind(record, place, dict):
        raise Refused(f"{place}: the field {name!r} is missing")
    return of_kind(record[name], f"{place}: {name}", kind)


def of_kind(value: Any, place: str, kind: type[T]) -> T:
    """The value, unless it is of another kind."""
    if not isinstance(value, kind):
        raise Refused(f"{place}: expected {_IN_WORDS[kind]}, found {_IN_WORDS[type(value)]}")
    return value
