"""Input files: folders, standard input, gzip, JSON Lines and JSON arrays of any length.

A folder walk never follows links out of the folder and never blocks on a pipe. Of a
JSON array only one element is held at a time: its ends are found by its brackets,
outside of strings; an element that is too long is skipped without being held.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG
from typing import BinaryIO, Protocol

from bethink.core.json_values import Json, parse_strict_json
from bethink.core.lazy import BackgroundCall
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, Refused, TooLarge
from bethink.importers.entry import ReadProgress
from bethink.ingest.files import BoundedReader
from bethink.store.sql.export import EXPORT_TYPES

FILE_BYTES = 8 * 1024 * 1024
_MAX_DEPTH = 40
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})
# Skip links, which may lead out of the folder, and pipes, which may never end.
_SAFE_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BOM = b"\xef\xbb\xbf"


class TextFile(NamedTuple):
    """A file by its name inside the folder, with / between its parts, and its text."""

    name: str
    text: str | Refused


def file_names_under(root: Path, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield names of files below a folder with these endings; skip hidden ones and links."""
    for place, folders, files in os.walk(root):  # without what cannot be read
        folder = Path(place)
        inside = folder.relative_to(root)
        deeper = folders if len(inside.parts) < _MAX_DEPTH else []
        folders[:] = sorted(name for name in deeper if not _is_skipped(name))
        for name in sorted(files):
            path = folder / name
            is_wanted = name.lower().endswith(endings) and not _is_skipped(name)
            if is_wanted and path.is_file() and not path.is_symlink():
                yield (inside / name).as_posix()


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED_FOLDERS


def read_text_files(
    path: Path, endings: tuple[str, ...], gauge: ReadProgress
) -> Iterator[TextFile]:
    """Yield the texts of the files below a folder, or of a single file."""
    files = [(path.name, path.resolve())]  # a link that is named explicitly is followed
    if path.is_dir():
        files = [(name, path / name) for name in file_names_under(path, endings)]
    gauge.total, gauge.unit = len(files), "files"
    for name, file in files:
        yield TextFile(displayable_name(name), read_text_file(file))
        gauge.done += 1


def displayable_name(name: str) -> str:
    """Return a file's name in characters that can be stored."""
    return os.fsencode(name).decode("utf-8", "replace")


def read_text_file(path: Path) -> str | Refused:
    """Return the text of a file, or the reason why there is none."""
    try:
        descriptor = os.open(path, _SAFE_OPEN_FLAGS)
    except OSError as error:
        return Refused(f"it cannot be opened: {(error.strerror or str(error)).lower()}")
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        if not S_ISREG(state.st_mode):
            return Refused("it is not a regular file")
        if state.st_size > FILE_BYTES:
            return TooLarge("the file", limit=FILE_BYTES, actual=state.st_size)
        content = file.read(FILE_BYTES + 1)
    try:
        return content.removeprefix(_BOM).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return BadText(f"not UTF-8 at byte {error.start + 1}", remedy="save the file as UTF-8")


STDIN_NAME = "-"
BEGINNING_BYTES = 1 << 16
_WRITER_TIMEOUT_S = 10.0  # for a program to begin writing to a named pipe
_NO_TEXT = re.compile(r"[\x00-\x06\x0e-\x1a\x7f\ufffd]")
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
_OBJECT_START = re.compile(rb'\{\s*(?:"|\})')
_JSON_START = re.compile(rb'\{\s*(?:"|\})|\[\s*(?:[{\["\]]|-?\d+\s*[,\]]|true|false|null)')
_MAX_LINES_TRIED = 30


class InputStream(NamedTuple):
    """A file to import; ``reader`` is decompressed, ``file`` is the file itself."""

    name: str
    reader: io.BufferedReader
    file: BinaryIO
    size: int = 0

    @property
    def done(self) -> int:
        """How many bytes of the file have been read, where it has a size."""
        return self.file.tell() if self.size else 0


@contextmanager
def open_stream(name: str) -> Iterator[InputStream]:
    """Open the file of that name; ``-`` is standard input."""
    if name == STDIN_NAME:
        yield _make_stream("standard input", sys.stdin.buffer)
        return
    path = to_path(name)
    # The name becomes the source of the memories, so it must be storable.
    display_name = displayable_name(path.name)
    if S_ISFIFO(path.stat().st_mode):
        with _open_pipe(path) as file:
            yield _make_stream(display_name, file)
        return
    with path.open("rb") as file:
        yield _make_stream(display_name, file, path.stat().st_size)


def _open_pipe(path: Path) -> BinaryIO:
    """Open a named pipe; raise Refused where no program opens it to write."""
    # Opening it waits for a writer, however long.
    opened = BackgroundCall(lambda: path.open("rb"))
    try:
        return opened.result(_WRITER_TIMEOUT_S)
    except TimeoutError as error:
        with suppress(PermissionError):  # where it may be read only
            writer = os.open(path, os.O_RDWR)  # so that the thread ends
            opened.result().close()
            os.close(writer)
        raise Refused(
            f"{path.name} is a pipe that no program writes to",
            remedy="start the program that writes to it first",
        ) from error


def _make_stream(name: str, file: BinaryIO, size: int = 0) -> InputStream:
    return InputStream(name, io.BufferedReader(BoundedReader(file), BEGINNING_BYTES), file, size)


@contextmanager
def open_decompressed(path: Path) -> Iterator[BinaryIO]:
    """Open a file from its beginning, decompressing gzip."""
    with path.open("rb") as file:
        yield io.BufferedReader(BoundedReader(file), BEGINNING_BYTES)


def is_stream(name: str) -> bool:
    """Whether it can be read only once: standard input, a pipe, a device."""
    if name == STDIN_NAME:
        return True
    mode = to_path(name).stat().st_mode
    return not (S_ISREG(mode) or S_ISDIR(mode))


def to_path(name: str) -> Path:
    """Convert a name to a path; raise BadText for one that no file can have."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise BadText("a file name must not contain a lone surrogate") from error
    if "\x00" in name:
        raise BadText("a file name must not contain NUL")
    return Path(name)


def guess_format(beginning: bytes, name: str = "the file") -> str:
    """Guess a file's format by its beginning: an export, JSON Lines, paragraphs, or lines.

    Raises Refused for JSON that is not one value per line: its lines mean nothing alone.
    """
    content = beginning.removeprefix(_BOM).strip()
    first = content.partition(b"\n")[0]
    if first.startswith((b"{", b'"')):
        value = _parse_json(first)
        if not isinstance(value, Refused):
            return "bethink" if is_export(value) else "jsonl"
        if first.startswith(b"{") and (_has_record_line(content) or _is_lax_record(first)):
            return "jsonl"  # the error will name the line
    if _is_whole_json(content, complete=len(beginning) < BEGINNING_BYTES):
        raise unknown_json(name)
    if first.startswith(b"{"):
        return "jsonl"  # meant as JSON, too
    if found := _format_of_lines(content, name):
        return found
    return "text" if _BLANK_LINE.search(content) else "lines"


def guess_text_format(beginning: bytes, name: str) -> str:
    """Guess as `guess_format`; raise Refused for no text, such as a picture, a PDF, UTF-16."""
    guessed = guess_format(beginning, name)
    strange = _NO_TEXT.findall(beginning.decode(errors="replace"))
    # One line of a text may be damaged; the reader names it.
    if guessed in ("lines", "text") and len(strange) * 20 > len(beginning):
        raise Refused(f"{name} is not text in UTF-8", remedy="save it as text in UTF-8")
    return guessed


def _format_of_lines(content: bytes, name: str) -> str:
    """Return the format where a line that is no record stands first; empty for plain text.

    A comment or a stray value above records: the reader will name it, and read the rest.
    """
    lines = [line for line in content.split(b"\n", _MAX_LINES_TRIED) if line.strip()]
    parsed = [_parse_json(line) for line in lines[:_MAX_LINES_TRIED]]
    if any(map(is_export, parsed)):
        return "bethink"
    records = sum(isinstance(value, dict) for value in parsed)
    return "jsonl" if _JSON_LINES_NAME.search(name) or 2 * records >= max(1, len(parsed)) else ""


_JSON_LINES_NAME = re.compile(r"\.(?:jsonl|ndjson)(?:\.gz)?$", re.IGNORECASE)


def unknown_json(name: str) -> Refused:
    """Return the error for JSON of no known program."""
    return Refused(
        f"{name} is not JSON of a known program, or it is damaged",
        remedy="write one object per line (jq -c '.[]'), or name its format with --from",
    )


def _has_record_line(content: bytes) -> bool:
    """Whether one of the first lines is a JSON object of its own, so that each is meant to be."""
    lines = content.split(b"\n", _MAX_LINES_TRIED)[:_MAX_LINES_TRIED]
    parsed = (_parse_json(line) for line in lines if line.startswith(b"{"))
    return any(isinstance(found, dict) for found in parsed)


def _is_lax_record(line: bytes) -> bool:
    """Whether a line is an object in JSON that allows doubled keys, NaN and any number."""
    try:
        return isinstance(json.loads(line, parse_int=str, parse_float=str), dict)
    except (ValueError, RecursionError):
        return False


def _is_whole_json(content: bytes, *, complete: bool) -> bool:
    """Whether the beginning of a file is that of one JSON object or array."""
    if not _JSON_START.match(content):
        return False
    return (
        not complete
        or isinstance(_parse_json(content), dict | list)
        or (content.startswith(b"{") and bool(_OBJECT_START.match(content)))
    )


def is_export(first: object) -> bool:
    """Whether this is the first record of an export."""
    return isinstance(first, dict) and first.get("type") in EXPORT_TYPES


def read_records(stream: InputStream) -> Iterator[Json]:
    """Yield the records of an export; an invalid line ends the import."""
    for number, line in enumerate(stream.reader, start=1):
        if line.strip():
            try:
                value = parse_strict_json(line.removeprefix(_BOM).decode())
            except UnicodeDecodeError as error:
                raise BadText(f"line {number} is not UTF-8 at byte {error.start + 1}") from error
            if not isinstance(value, dict):
                raise BadText(f"line {number} is not a record of an export")
            yield value


MAX_JSON_LINE_BYTES = 16 * 1024 * 1024


class Element(NamedTuple):
    """A line or an element by its number from 1: its value, or the Refused that says why not."""

    number: int
    found: object


def json_lines(path: Path, gauge: ReadProgress) -> Iterator[Element]:
    """Yield the lines of a file that are not blank; lines that are too long are not held."""
    with path.open("rb") as file:
        gauge.total = os.fstat(file.fileno()).st_size
        stream: BinaryIO = io.BufferedReader(BoundedReader(file))
        number = 0
        while content := stream.readline(MAX_JSON_LINE_BYTES + 1):
            number += 1
            gauge.done = min(gauge.total, file.tell())
            if len(content) > MAX_JSON_LINE_BYTES and not content.endswith(b"\n"):
                size = len(content) + skip_line(stream, MAX_JSON_LINE_BYTES)
                too_large = TooLarge("the line", limit=MAX_JSON_LINE_BYTES, actual=size)
                yield Element(number, too_large)
            elif content.strip():
                yield Element(number, _parse_json(content))


def skip_line(stream: BinaryIO, held: int) -> int:
    """Skip the rest of a line that is too long to be held; return how many bytes that was."""
    passed = 0
    while part := stream.readline(held):
        passed += len(part)
        if part.endswith(b"\n"):
            break
    return passed


def _parse_json(content: bytes) -> object:
    """Return the value of JSON, or the Refused that says why there is none."""
    value: object
    try:
        value = parse_strict_json(content.removeprefix(_BOM).decode())
    except UnicodeDecodeError as error:
        value = BadText(f"not UTF-8 at byte {error.start + 1}")
    except Refused as refused:
        value = refused
    return value


MAX_ELEMENT_BYTES = 32 * 1024 * 1024
_READ_BYTES = 1 << 18
_STRUCTURAL = re.compile(rb'["\[\]{},]')
_STRING_MARKS = re.compile(rb'["\\]')
_JSON_BLANKS = b" \t\r\n"


class ByteReader(Protocol):
    """Bytes to be read, a piece at a time."""

    def read(self, size: int, /) -> bytes: ...


def json_elements(stream: ByteReader, *, max_bytes: int = MAX_ELEMENT_BYTES) -> Iterator[Element]:
    """Yield the elements of a JSON array in a stream; of anything else, the value itself."""
    pieces = _read_pieces(stream)
    first = next(pieces, b"")
    if not first.startswith(b"["):
        held = bytearray(first)
        while len(held) <= max_bytes and (piece := next(pieces, b"")):
            held += piece
        too_large = TooLarge("the JSON", limit=max_bytes, actual=len(held))
        yield Element(1, too_large if len(held) > max_bytes else _parse_json(bytes(held)))
        return
    scan = _ArrayScanner(max_bytes)
    for piece in chain((first,), pieces):
        yield from scan.feed(piece)
    yield from scan.finish()


def _read_pieces(stream: ByteReader) -> Iterator[bytes]:
    """Yield pieces of the stream; leading blanks and a BOM are skipped."""
    first = stream.read(_READ_BYTES).removeprefix(_BOM)
    while first and not first.strip():
        first = stream.read(_READ_BYTES)
    yield first.lstrip(_JSON_BLANKS)
    while piece := stream.read(_READ_BYTES):
        yield piece


@dataclass(slots=True)
class _ArrayScanner:
    """The position in an array, and the bytes of the current element."""

    most_bytes: int
    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    held: bytearray = field(default_factory=bytearray)
    passed: int = 0
    number: int = 0

    def feed(self, piece: bytes) -> Iterator[Element]:
        """Yield the elements that this piece completes."""
        kept, place = 0, 0
        while place < len(piece):
            if self.escaped:
                self.escaped = False
                place += 1
                continue
            mark = (_STRING_MARKS if self.quoted else _STRUCTURAL).search(piece, place)
            if mark is None:
                break
            place = mark.end()
            if self._advance(piece[mark.start()], at_top=self.depth <= 1):
                self._hold(piece[kept : mark.start()])
                kept = place
                yield from self._complete()
        self._hold(piece[kept:])

    def finish(self) -> Iterator[Element]:
        """Yield an error if the stream ended before the array was closed."""
        if self.depth or self.quoted:
            self.held.clear()
            self.number += 1
            yield Element(self.number, BadText("not JSON: the array is not closed"))

    def _advance(self, mark: int, *, at_top: bool) -> bool:
        """Update the state at a mark; return whether it separates two elements."""
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
            yield Element(self.number, _parse_json(content))
