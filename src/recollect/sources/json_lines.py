"""JSON Lines from a file: every line its value or, by its number, why it has none."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from recollect.errors import BadText, Refused, TooLarge
from recollect.ingest.strict_json import strict_json
from recollect.ingest.unzip import Bounded
from recollect.sources.source import Gauge

LINE_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class JsonLine(NamedTuple):
    """A line by its number from 1, and its value or why it has none."""

    number: int
    found: Any


def json_lines(path: Path, gauge: Gauge) -> Iterator[JsonLine]:
    """The lines of a file that are not blank; none is held that is too long."""
    with path.open("rb") as file:
        gauge.total = os.fstat(file.fileno()).st_size
        stream: BinaryIO = io.BufferedReader(Bounded(file))
        number = 0
        while content := stream.readline(LINE_BYTES + 1):
            number += 1
            gauge.done = min(gauge.total, file.tell())
            if len(content) > LINE_BYTES and not content.endswith(b"\n"):
                yield JsonLine(number, _too_long(stream, len(content)))
            elif content.strip():
                yield JsonLine(number, _value(content.removeprefix(_BOM)))


def _too_long(stream: BinaryIO, size: int) -> Refused:
    """Reads past what is left of the line."""
    while rest := stream.readline(LINE_BYTES):
        size += len(rest)
        if rest.endswith(b"\n"):
            break
    return TooLarge("the line", limit=LINE_BYTES, actual=size)


def _value(content: bytes) -> Any:
    try:
        return strict_json(content.decode())
    except UnicodeDecodeError as error:
        return BadText(f"not UTF-8 at byte {error.start + 1}")
    except Refused as refused:
        return refused
