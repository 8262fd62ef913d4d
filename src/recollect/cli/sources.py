"""Files to import: recognised, read a line at a time, every line a draft or a refusal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from recollect.cli.options import decoded, parsed_json
from recollect.errors import BadText, RecollectError

BATCH = 500

Refuse = Callable[[int, RecollectError], None]


class Line(NamedTuple):
    """A memory to be, and the line of the file it begins on."""

    number: int
    draft: dict[str, Any]


class Source:
    """Lines to import: the first can be looked at before, what was read is counted."""

    def __init__(self, stream: BinaryIO, name: str = "", size: int = 0) -> None:
        self._stream = stream
        self._looked_at: list[bytes] = []
        self.name = name
        self.size = size
        self.read = 0

    def first_line(self) -> bytes:
        """The first line that is not blank; it is still to be read."""
        for line in self._stream:
            self._looked_at.append(line)
            if line.strip():
                return line
        return b""

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line with its number, from 1."""
        for number, line in enumerate(chain(self._looked_at, self._stream), start=1):
            self.read += len(line)
            yield number, line


@contextmanager
def open_source(name: str) -> Iterator[Source]:
    """The file of that name; ``-`` is standard input."""
    if name == "-":
        yield Source(sys.stdin.buffer, "standard input")
        return
    path = _path(name)
    # The name becomes the memories' source, so it must be one that can be stored.
    told = os.fsencode(path.name).decode("utf-8", "replace")
    with path.open("rb") as stream:
        yield Source(stream, told, path.stat().st_size)


def _path(name: str) -> Path:
    """Refuses by name what the system would not even look for."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise BadText("a file's name cannot hold a lone surrogate") from error
    if "\x00" in name:
        raise BadText("a file's name cannot hold NUL")
    return Path(name)


def guess_format(source: Source) -> str:
    """What the beginning of the file looks like: an export, JSON Lines, or plain text."""
    first = source.first_line()
    if not first.lstrip(b"\xef\xbb\xbf \t").startswith((b"{", b'"')):
        return "text"
    try:
        value = parsed_json(decoded(first, "line 1"), "line 1")
    except BadText:
        return "jsonl" if first.lstrip().startswith(b"{") else "text"
    return "recollect" if is_export(value) else "jsonl"


def is_export(first: Any) -> bool:
    """Whether this is the first record of an export."""
    return isinstance(first, dict) and first.get("type") == "recollect"


def drafts(source: Source, form: str, defaults: dict[str, Any], refuse: Refuse) -> Iterator[Line]:
    """Every memory of the file over the defaults; what is none is refused by its line."""
    entries = _json_lines(source, refuse) if form == "jsonl" else _texts(source, refuse)
    for number, entry in entries:
        yield Line(number, {**defaults, **entry})


def batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """So many lines at a time as fit one transaction."""
    batch: list[Line] = []
    for line in lines:
        batch.append(line)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def records(source: Source) -> Iterator[dict[str, Any]]:
    """The records of an export; anything else ends the import."""
    for number, line in source.lines():
        if line.strip():
            value = parsed_json(decoded(line, f"line {number}"), f"line {number}")
            if not isinstance(value, dict):
                raise BadText(f"line {number} is not a record of an export")
            yield value


def _json_lines(source: Source, refuse: Refuse) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            yield number, _fields(parsed_json(decoded(line, "the line"), "the line"))
        except BadText as error:
            refuse(number, error)


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict):
        return value
    raise BadText("the line must be a JSON object or a JSON string")


def _texts(source: Source, refuse: Refuse) -> Iterator[tuple[int, dict[str, Any]]]:
    """A paragraph each or, where no line between them is blank, a line each."""
    lines = list(source.lines())
    written = [place for place, (_, line) in enumerate(lines) if line.strip()]
    if not written:
        return
    inside = lines[written[0] : written[-1] + 1]
    by_line = len(inside) == len(written)
    for number, content in inside if by_line else _paragraphs(inside):
        try:
            text = decoded(content, "the text").strip()
        except BadText as error:
            refuse(number, error)
        else:
            yield number, {"text": text}


def _paragraphs(lines: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    for blank, group in groupby(lines, key=lambda entry: not entry[1].strip()):
        if not blank:
            together = list(group)
            yield together[0][0], b"".join(line for _, line in together)
