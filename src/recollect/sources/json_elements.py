"""The elements of a JSON array, one after the other, from a stream of any length.

Never more is held than one element: its ends are found by its brackets, outside of
strings, and only then is it read. What is too long is skipped without being held.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from recollect.errors import BadText, Refused, TooLarge
from recollect.ingest.strict_json import strict_json

ELEMENT_BYTES = 32 * 1024 * 1024
_PIECE = 1 << 18
_BOM = b"\xef\xbb\xbf"
_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\\]')
_BLANK = b" \t\r\n"


class Readable(Protocol):
    """Bytes to be read, a piece at a time."""

    def read(self, size: int, /) -> bytes: ...


class Element(NamedTuple):
    """An element of an array by its number from 1, or why it cannot be read."""

    number: int
    found: Any


def elements(stream: Readable, *, most_bytes: int = ELEMENT_BYTES) -> Iterator[Element]:
    """The elements of the array that the stream is; of anything else, the value itself."""
    pieces = _pieces(stream)
    first = next(pieces, b"")
    if not first.startswith(b"["):
        yield Element(1, _value(_whole(first, pieces, most_bytes)))
        return
    scan = _Scan(most_bytes)
    for piece in _with(first, pieces):
        yield from scan.read(piece)
    yield from scan.end()


def _pieces(stream: Readable) -> Iterator[bytes]:
    """Pieces of the stream; the first is more than blanks, wherever there is more."""
    first = stream.read(_PIECE).removeprefix(_BOM)
    while first and not first.strip():
        first = stream.read(_PIECE)
    yield first.lstrip(_BLANK)
    while piece := stream.read(_PIECE):
        yield piece


def _with(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def _whole(first: bytes, others: Iterator[bytes], most_bytes: int) -> bytes | Refused:
    held = bytearray()
    for piece in _with(first, others):
        held += piece
        if len(held) > most_bytes:
            return TooLarge("the JSON", limit=most_bytes, actual=len(held))
    return bytes(held)


def _value(content: bytes | Refused) -> Any:
    if isinstance(content, Refused):
        return content
    try:
        return strict_json(content.decode())
    except UnicodeDecodeError as error:
        return BadText(f"not UTF-8 at byte {error.start + 1}")
    except Refused as refused:
        return refused


@dataclass(slots=True)
class _Scan:
    """Where in an array the reading stands, and what it holds of the element under way."""

    most_bytes: int
    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    held: bytearray = field(default_factory=bytearray)
    passed: int = 0
    number: int = 0

    def read(self, piece: bytes) -> Iterator[Element]:
        """Elements that this piece completes."""
        kept, place = 0, 0
        while place < len(piece):
            if self.escaped:
                self.escaped = False
                place += 1
                continue
            mark = (_INSIDE if self.quoted else _OUTSIDE).search(piece, place)
            if mark is None:
                break
            place = mark.end()
            if self._moves(piece[mark.start()], at_top=self.depth <= 1):
                self._hold(piece[kept : mark.start()])
                kept = place
                yield from self._complete()
        self._hold(piece[kept:])

    def end(self) -> Iterator[Element]:
        """What is left when the stream has ended: an array is closed before that."""
        if self.depth or self.quoted:
            self.held.clear()
            self.number += 1
            yield Element(self.number, BadText("not JSON: the array is not closed"))

    def _moves(self, mark: int, *, at_top: bool) -> bool:
        """Goes on after a mark; says whether it parts two elements."""
        if self.quoted:
            self.escaped = mark == 0x5C
            self.quoted = mark != 0x22
            return False
        if mark == 0x22:
            self.quoted = True
        elif mark in b"[{":
            self.depth += 1
            return self.depth == 1
        elif mark in b"]}":
            self.depth -= 1
            return self.depth == 0
        return mark == 0x2C and at_top and self.depth == 1

    def _hold(self, part: bytes) -> None:
        room = self.most_bytes - len(self.held)
        self.held += part[: max(0, room)]
        self.passed += len(part)

    def _complete(self) -> Iterator[Element]:
        content, size = bytes(self.held).strip(), self.passed
        self.held.clear()
        self.passed = 0
        if not content:
            return
        self.number += 1
        if size > self.most_bytes:
            yield Element(self.number, TooLarge("it", limit=self.most_bytes, actual=size))
        else:
            yield Element(self.number, _value(content))
