"""Reads drafts from files: JSON Lines, or plain text by paragraph or by line.

Every line becomes a draft or a refusal with its number; one bad line stops nothing.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from recollect.errors import BadText, Refused, TooLarge
from recollect.ingest.admit import SELF_SPEAKING, TEXT_BYTES
from recollect.ingest.strict_json import strict_json
from recollect.ingest.unzip import Bounded
from recollect.model import Draft

Format = Literal["jsonl", "text", "lines"]
LINE_BYTES = 1 << 20

_FIELDS = frozenset(Draft._fields)
_TEXT_NAMES = ("content", "memory", "body")
_TIME_NAMES = ("timestamp", "created_at", "date")
_TIMES = ("occurred_at", "occurred_end", "valid_from", "valid_to")
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line, or the first of a paragraph, and what it holds."""

    number: int
    found: Draft | Refused


class _Raw(NamedTuple):
    number: int
    content: bytes | Refused


def read_drafts(
    source: Path | BinaryIO, form: Format, defaults: Mapping[str, Any] | None = None
) -> Iterator[Line]:
    """The drafts of a file, one after the other, each with its line.

    ``defaults`` are fields of ``Draft`` for lines that do not name them. Fields of a
    JSON object that a draft does not have go into its metadata.
    """
    if isinstance(source, Path):
        with source.open("rb") as stream:
            yield from read_drafts(stream, form, defaults)
        return
    lines = _lines(io.BufferedReader(Bounded(source)), LINE_BYTES)
    raws = _paragraphs(lines) if form == "text" else lines
    for raw in raws:
        try:
            draft = _draft(raw, form, defaults or {})
        except Refused as refused:
            yield Line(raw.number, refused)
        else:
            if draft:
                yield Line(raw.number, draft)


def _lines(stream: io.BufferedReader, limit: int) -> Iterator[_Raw]:
    """Lines of bytes; one that is too long is skipped without being held in memory."""
    number = 0
    while content := stream.readline(limit + 1):
        number += 1
        if number == 1:
            content = content.removeprefix(_BOM)
        if len(content) <= limit or content.endswith(b"\n"):
            yield _Raw(number, content)
            continue
        size = len(content)
        while not content.endswith(b"\n") and (content := stream.readline(limit)):
            size += len(content)
        yield _Raw(number, TooLarge("the line", limit=limit, actual=size))


def _paragraphs(lines: Iterator[_Raw]) -> Iterator[_Raw]:
    """Lines up to a blank one, put together; its number is that of the first."""
    first, held, size = 0, [b""], 0
    for number, content in lines:
        if isinstance(content, Refused):
            yield _Raw(number, content)
        elif content.strip():
            first = first or number
            size += len(content)
            if size <= TEXT_BYTES * 2:
                held.append(content)
        elif first:
            yield _paragraph(first, held, size)
            first, held, size = 0, [b""], 0
    if first:
        yield _paragraph(first, held, size)


def _paragraph(number: int, held: list[bytes], size: int) -> _Raw:
    if size > TEXT_BYTES * 2:
        return _Raw(number, TooLarge("the paragraph", limit=TEXT_BYTES, actual=size))
    return _Raw(number, b"".join(held))


def _draft(raw: _Raw, form: Format, defaults: Mapping[str, Any]) -> Draft | None:
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
    given = _fields_of(strict_json(text)) if form == "jsonl" else {"text": text.strip()}
    if given.get("source_class") in SELF_SPEAKING and "source_class" in defaults:
        # A file may come from anybody: whose word it is says who imports it.
        del given["source_class"]
    return Draft(**{**defaults, **given})


def _fields_of(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict):
        raise BadText("the line must be a JSON object or a JSON string")
    named = {name: inner for name, inner in value.items() if inner is not None}
    _rename(named, _TEXT_NAMES, "text")
    _rename(named, _TIME_NAMES, "occurred_at")
    if "text" not in named:
        raise Refused("there is no text in the line", remedy="name it text, content or memory")
    for name in _TIMES:
        if isinstance(named.get(name), int | float):
            named[name] = _from_epoch(name, named[name])
    metadata = named.pop("metadata", {})
    if not isinstance(metadata, dict):
        raise Refused("metadata must be a JSON object")
    further = {name: named.pop(name) for name in [*named] if name not in _FIELDS}
    for name in ("tags", "entities"):
        if isinstance(named.get(name), list):
            named[name] = tuple(named[name])
    return {**named, "metadata": {**further, **metadata}}


def _rename(named: dict[str, Any], others: tuple[str, ...], name: str) -> None:
    for other in others:
        if name not in named and other in named:
            named[name] = named.pop(other)


def _from_epoch(name: str, value: float) -> datetime:
    """A moment counted from 1970: in seconds or, where that is too far, in smaller units."""
    if isinstance(value, bool):
        raise Refused(f"{name} must be a time, not {value}")
    for unit in (1, 1_000, 1_000_000):
        if abs(value) / unit < 100_000_000_000:  # the year 5138
            try:
                return datetime.fromtimestamp(value / unit, UTC)
            except (ValueError, OverflowError, OSError) as error:
                raise Refused(f"{name}: {value} is no moment in time") from error
    raise Refused(f"{name}: {value} is no moment in time")
