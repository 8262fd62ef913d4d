"""Read drafts from files: JSON Lines, or plain text by paragraph or by line.

Every line becomes a draft or a refusal with its line number; a bad line does not stop the
rest. Gzip is unpacked within limits, so that a small archive cannot exhaust memory.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal

from bethink.core.json_values import Json, parse_strict_json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, Refused, TooLarge
from bethink.ingest.admission import MAX_TEXT_BYTES, TRUST_CEILING
from bethink.model import Draft

MAX_BYTES = 1 << 30
MAX_COMPRESSION_RATIO = 100
_RATIO_MIN_BYTES = 1 << 20  # bytes; below it a high ratio is harmless
GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 16


class _CountedReader(io.RawIOBase):
    """A stream that counts the bytes that were read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        chunk = self._stream.read(len(buffer))
        buffer[: len(chunk)] = chunk
        self.count += len(chunk)
        return len(chunk)


class BoundedReader(io.RawIOBase):
    """A stream that decompresses gzip and enforces size and ratio limits."""

    def __init__(self, stream: BinaryIO, *, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self._bytes_out = max_bytes, 0
        self._counted = _CountedReader(stream)
        plain = io.BufferedReader(self._counted, _CHUNK_BYTES)
        self._is_packed = plain.peek(2)[:2] == GZIP_MAGIC
        self._content = gzip.GzipFile(fileobj=plain) if self._is_packed else plain

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            chunk = self._content.read1(len(buffer))
        except EOFError as error:
            raise BadText("the gzip file is cut off", remedy="copy or create it again") from error
        except (zlib.error, gzip.BadGzipFile) as error:
            raise BadText(f"the file is damaged: {error}") from error
        buffer[: len(chunk)] = chunk
        self._bytes_out += len(chunk)
        if self._bytes_out > self._max_bytes:
            raise TooLarge("the file", limit=self._max_bytes, actual=self._bytes_out)
        if self._is_packed and self._bytes_out > max(
            _RATIO_MIN_BYTES, MAX_COMPRESSION_RATIO * self._counted.count
        ):
            ratio = self._bytes_out // max(1, self._counted.count)
            raise TooLarge(
                "the unpacked file", limit=MAX_COMPRESSION_RATIO, actual=ratio, unit="times as big"
            )
        return len(chunk)


Format = Literal["jsonl", "text", "lines"]
MAX_LINE_BYTES = 1 << 20

_DRAFT_FIELDS = frozenset(Draft._fields)
_TEXT_ALIASES = ("content", "memory", "body")
_TIME_ALIASES = ("timestamp", "created_at", "date")
_TIME_FIELDS = ("occurred_at", "occurred_end", "valid_from", "valid_to")
_BOM = b"\xef\xbb\xbf"


class DraftLine(NamedTuple):
    """A line number (a paragraph's first) with its draft or refusal."""

    number: int
    found: Draft | Refused


class _RawLine(NamedTuple):
    number: int
    content: bytes | Refused


def read_drafts(
    source: Path | BinaryIO, file_format: Format, defaults: Mapping[str, object] | None = None
) -> Iterator[DraftLine]:
    """Yield the drafts of a file one by one, each with its line number.

    ``defaults`` are fields of ``Draft`` for lines that do not name them. Unknown fields of a
    JSON object go into the draft's metadata.
    """
    if isinstance(source, Path):
        with source.open("rb") as stream:
            yield from read_drafts(stream, file_format, defaults)
        return
    lines = _read_lines(io.BufferedReader(BoundedReader(source)), MAX_LINE_BYTES)
    raws = _join_paragraphs(lines) if file_format == "text" else lines
    for raw in raws:
        try:
            draft = _parse_draft(raw, file_format, defaults or {})
        except Refused as refused:
            yield DraftLine(raw.number, refused)
        else:
            if draft:
                yield DraftLine(raw.number, draft)


def _read_lines(stream: io.BufferedReader, limit: int) -> Iterator[_RawLine]:
    """Yield lines of bytes; an overlong line is skipped without holding it in memory."""
    number = 0
    while content := stream.readline(limit + 1):
        number += 1
        if number == 1:
            content = content.removeprefix(_BOM)
        if len(content) <= limit or content.endswith(b"\n"):
            yield _RawLine(number, content)
            continue
        size = len(content)
        while not content.endswith(b"\n") and (content := stream.readline(limit)):
            size += len(content)
        yield _RawLine(number, TooLarge("the line", limit=limit, actual=size))


def _join_paragraphs(lines: Iterator[_RawLine]) -> Iterator[_RawLine]:
    """Join lines up to a blank one; the number is that of the first line."""
    first, parts, size = 0, [b""], 0
    for number, content in lines:
        if isinstance(content, Refused):
            yield _RawLine(number, content)
        elif content.strip():
            first = first or number
            size += len(content)
            if size <= MAX_TEXT_BYTES * 2:
                parts.append(content)
        elif first:
            yield _make_paragraph(first, parts, size)
            first, parts, size = 0, [b""], 0
    if first:
        yield _make_paragraph(first, parts, size)


def _make_paragraph(number: int, parts: list[bytes], size: int) -> _RawLine:
    if size > MAX_TEXT_BYTES * 2:
        return _RawLine(number, TooLarge("the paragraph", limit=MAX_TEXT_BYTES, actual=size))
    return _RawLine(number, b"".join(parts))


def _parse_draft(
    raw: _RawLine, file_format: Format, defaults: Mapping[str, object]
) -> Draft | None:
    if isinstance(raw.content, Refused):
        raise raw.content
    try:
        text = raw.content.decode()
    except UnicodeDecodeError as error:
        raise BadText(
            f"line {raw.number} is not UTF-8 at byte {error.start + 1}",
            remedy="save the file as UTF-8",
        ) from error
    if not text.strip():
        return None
    fields = (
        _parse_fields(parse_strict_json(text)) if file_format == "jsonl" else {"text": text.strip()}
    )
    for name in ("source", "source_class"):
        if name in defaults and claims_trust(fields.get(name)):
            # A file cannot claim to be the user: who imports it sets its source.
            del fields[name]
    return Draft(**{**defaults, **fields})


def claims_trust(source_class: object) -> bool:
    """Whether a class of source has more trust than an import can claim."""
    return TRUST_CEILING.get(str(source_class), 0) > TRUST_CEILING["import"]


def _parse_fields(value: object) -> Json:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict):
        raise BadText("the line must be a JSON object or a JSON string")
    fields: Json = {
        name: field_value for name, field_value in value.items() if field_value is not None
    }
    _apply_aliases(fields, _TEXT_ALIASES, "text")
    _apply_aliases(fields, _TIME_ALIASES, "occurred_at")
    if "text" not in fields:
        raise Refused("the line has no text", remedy="use the field text, content or memory")
    for name in _TIME_FIELDS:
        if isinstance(fields.get(name), int | float):
            fields[name] = _from_epoch(name, fields[name])
    metadata = fields.pop("metadata", {})
    if not isinstance(metadata, dict):
        raise Refused("metadata must be a JSON object")
    extra = {name: fields.pop(name) for name in [*fields] if name not in _DRAFT_FIELDS}
    for name in ("tags", "entities"):
        if isinstance(fields.get(name), list):
            fields[name] = tuple(fields[name])
    return {**fields, "metadata": {**extra, **metadata}}


def _apply_aliases(fields: Json, aliases: tuple[str, ...], name: str) -> None:
    for alias in aliases:
        if name not in fields and alias in fields:
            fields[name] = fields.pop(alias)


def _from_epoch(name: str, value: float) -> datetime:
    """Convert a Unix time in seconds, milliseconds or microseconds."""
    if isinstance(value, bool):
        raise Refused(f"{name} must be a time, not {value}")
    for unit in (1, 1_000, 1_000_000):
        if abs(value) / unit < 100_000_000_000:  # the year 5138
            try:
                return datetime.fromtimestamp(value / unit, UTC)
            except (ValueError, OverflowError, OSError) as error:
                raise Refused(f"{name}: {value} is not a valid time") from error
    raise Refused(f"{name}: {value} is not a valid time")
