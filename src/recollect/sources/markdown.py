"""Markdown notes: a folder of them, or one. A memory for every section.

A section carries the note's title and the headings above it, so that it makes sense by
itself. Notes that link to each other are linked: by [[name]] and by [words](file.md).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import Refused
from recollect.model import Draft
from recollect.sources.folder import TextFile, texts_of
from recollect.sources.front_matter import Note, note_of
from recollect.sources.markdown_blocks import (
    Section,
    date_in,
    hashtags,
    linked,
    sections,
    title_of,
)
from recollect.sources.pieces import pieces_of
from recollect.sources.source import End, Entry, Gauge, Tie, digest, place_id
from recollect.sources.values import details, line_of, time_of, words_of

ENDINGS = (".md", ".markdown", ".mdx")
_DATES = ("date", "created", "created_at", "updated", "modified")
_OWN = ("title", "tags", "tag", "aliases", "alias", "type", "topic", *_DATES)
_HEAD_BYTES = 1024  # room for titles above a piece of a section


class _Sheet(NamedTuple):
    """A note, its name, and what all of its sections share."""

    name: str
    note: Note
    title: str
    at: datetime | None
    tags: tuple[str, ...]


class Markdown:
    """One folder, or one note."""

    def __init__(self, path: Path, gauge: Gauge) -> None:
        self._path = path
        self._gauge = gauge
        self._place = place_id(path)

    def entries(self) -> Iterator[Entry]:
        """An entry for every section that says something."""
        for file in texts_of(self._path, ENDINGS, self._gauge):
            if isinstance(file.text, Refused):
                yield Entry(file.name, file.text)
                continue
            sheet = _sheet(file)
            for section, own in self._sections(sheet):
                yield from _of_section(sheet, section, own)

    def ties(self) -> Iterator[Tie]:
        """From a section to the beginning of the note that it links to."""
        first: dict[str, str] = {}
        names: dict[str, str] = {}
        for sheet in self._sheets():
            opening = next(self._sections(sheet), None)
            if opening is not None:
                first[sheet.name] = opening[1]
                for called in (*_stems(sheet.name), *_aliases(sheet)):
                    names.setdefault(called.casefold(), sheet.name)
        for sheet in self._sheets():
            for section, own in self._sections(sheet):
                for link in linked(section.text):
                    target = _target(link, sheet.name, first, names)
                    if target is not None and first[target] != own:
                        where = f"{sheet.name} line {section.line}"
                        ends = (End("item", own), End("item", first[target]))
                        yield Tie(ends[0], "references", ends[1], where)

    def _sheets(self) -> Iterator[_Sheet]:
        for file in texts_of(self._path, ENDINGS, Gauge()):
            if not isinstance(file.text, Refused):
                yield _sheet(file)

    def _sections(self, sheet: _Sheet) -> Iterator[tuple[Section, str]]:
        """Its sections, each with an id that stays while the headings above it do."""
        for section in sections(sheet.note.body, sheet.note.above):
            above = _without_title(section.headings, sheet.title)
            yield section, digest(self._place, sheet.name, *above, str(section.number))


def _sheet(file: TextFile) -> _Sheet:
    assert isinstance(file.text, str)
    note = note_of(file.text)
    head = note.head
    title = line_of(head.get("title")) or line_of(title_of(note.body)) or _stem(file.name)
    moments = (time_of(head.get(name)) for name in _DATES)
    at = next((moment for moment in moments if moment), None) or date_in(_stem(file.name))
    tags = (*words_of(head.get("tags") or head.get("tag")), *hashtags(note.body))
    return _Sheet(file.name, note, title, at, tuple(dict.fromkeys(tags))[:32])


def _of_section(sheet: _Sheet, section: Section, own: str) -> Iterator[Entry]:
    head = sheet.note.head
    above = _without_title(section.headings, sheet.title)
    lead = line_of(" > ".join((sheet.title, *above)), 300)
    where = f"{sheet.name} line {section.line}"
    own_tags = set(hashtags(section.text))
    from_head = words_of(head.get("tags") or head.get("tag"))
    about: dict[str, Any] = {key: value for key, value in head.items() if key not in _OWN}
    for part, text in enumerate(pieces_of(section.text, 64 * 1024 - _HEAD_BYTES)):
        draft = Draft(
            f"{lead}\n{text}",
            kind=line_of(head.get("type")) or "note",
            topic=line_of(head.get("topic")) or _topic(sheet.name),
            tags=tuple(tag for tag in sheet.tags if tag in from_head or tag in own_tags),
            caption=lead,
            occurred_at=sheet.at,
            metadata=details({**about, "file": sheet.name}),
            force=True,
        )
        yield Entry(where, draft, id=f"{own}/{part}" if part else own)


def _without_title(headings: tuple[str, ...], title: str) -> tuple[str, ...]:
    """The headings below the title: a note that is given another one is the same note."""
    is_title = bool(headings) and line_of(headings[0]).casefold() == title.casefold()
    return headings[1:] if is_title else headings


def _topic(name: str) -> str | None:
    """The folder that a note lies in; none where it lies at the top."""
    return line_of(posixpath.dirname(name)) or None


def _stem(name: str) -> str:
    return posixpath.splitext(posixpath.basename(name))[0]


def _stems(name: str) -> tuple[str, ...]:
    return posixpath.splitext(name)[0], _stem(name)


def _aliases(sheet: _Sheet) -> tuple[str, ...]:
    head = sheet.note.head
    return (sheet.title, *words_of(head.get("aliases") or head.get("alias")))


def _target(link: str, name: str, first: dict[str, str], names: dict[str, str]) -> str | None:
    """The note that a link in another one means, where there is one."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    if beside in first:
        return beside
    stem = posixpath.splitext(link)[0] if link.lower().endswith(ENDINGS) else link
    return names.get(stem.casefold())
