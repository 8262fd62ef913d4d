"""Markdown notes: a folder of them, or one; a memory for every section.

A section carries the note's title and the headings above it, so that it makes sense by
itself. Notes that link to each other are linked: by [[name]] and by [words](file.md).
Front matter is the plain part of YAML that people write there.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from bethink.errors import Refused
from bethink.importers.entry import (
    Entry,
    LinkEnd,
    ReadProgress,
    SourceLink,
    digest,
    line_of,
    location_id,
    metadata_of,
    split_text,
    tags_of,
    time_of,
)
from bethink.importers.streams import TextFile, read_text_files
from bethink.model import Draft

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<head>(?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_MAX_FRONT_MATTER = 64 * 1024  # characters: a head is short
_KEY_LINE = re.compile(r"(?P<key>[^\s:#'\"\[\]{}-][^:\n]{0,99}?)[ \t]*:(?:[ \t]+(?P<value>.*))?")
_LIST_LINE = re.compile(r"[ \t]*-[ \t]+(?P<value>.+)")
_COMMENT = re.compile(r"[ \t]#.*\Z")

FrontMatterValue = str | list[str]


class Note(NamedTuple):
    """A note's front matter (lower-case keys), its body, and the lines before the body."""

    head: dict[str, FrontMatterValue]
    body: str
    lines_before: int = 0


def parse_note(text: str) -> Note:
    """Parse a note; without front matter where it has none.

    Keys with a text, a list in brackets, or a list of lines with dashes; everything else in
    YAML (blocks, nested maps, references) is skipped.
    """
    found = _FRONT_MATTER.match(text[:_MAX_FRONT_MATTER]) if text.startswith("---") else None
    if found is None:
        return Note({}, text)
    return Note(_parse_keys(found["head"]), text[found.end() :], found[0].count("\n"))


def _parse_keys(head: str) -> dict[str, FrontMatterValue]:
    keys: dict[str, FrontMatterValue] = {}
    under = ""
    for line in head.splitlines():
        entry = _LIST_LINE.fullmatch(line)
        key = _KEY_LINE.fullmatch(line)
        if entry is not None and under:
            listed = keys.setdefault(under, [])
            if isinstance(listed, list):
                listed.append(_unquote_value(entry["value"]))
        elif key is not None:
            under = key["key"].strip().lower()
            if (key["value"] or "").strip():
                keys[under] = _parse_value(key["value"].strip())
    return {key: value for key, value in keys.items() if value}


def _parse_value(value: str) -> FrontMatterValue:
    if value.startswith("[") and value.rstrip().endswith("]"):
        parts = value.strip()[1:-1].split(",")
        return [_unquote_value(part) for part in parts if part.strip()]
    return _unquote_value(value)


def _unquote_value(value: str) -> str:
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return _COMMENT.sub("", text)


_HEADING = re.compile(r"(#{1,6})[ \t]+(.+)")
_TICKS_OR_TILDES = r"`{3,}(?!`)(?![^\n]*`)|~{3,}"  # code that ends on its line is no block
_FENCE = re.compile(rf"[ ]{{0,3}}({_TICKS_OR_TILDES})")
_CODE_OR_COMMENT = re.compile(
    rf"^[ ]{{0,3}}(?P<fence>{_TICKS_OR_TILDES})|(?P<ticks>`+)|<!--", re.MULTILINE
)
_MAX_CODE_SPAN = 2_000  # characters of code within a paragraph
_WIKI_LINK = re.compile(
    r"!?\[\[([^\[\]\n|#^]{1,300})(?:[#^][^\[\]\n|]{0,300})?(?:\|[^\[\]\n]{0,300})?\]\]"
)
_MARKDOWN_LINK = re.compile(
    r"(?<!!)\[[^\[\]\n]{0,300}\]\(<?([^()\s<>]{1,500})>?(?:[ \t]+\"[^\"\n]{0,300}\")?\)"
)
_HASHTAG = re.compile(r"(?<![\w&/#])#([^\W\d_][\w/-]{0,60})")
_DATE = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d{2})[-_.]?(\d{2})(?!\d)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class Section(NamedTuple):
    """A part of a note: the headings above it, outermost first, its text, and its line.

    ``number`` counts parts below the same headings.
    """

    headings: tuple[str, ...]
    text: str
    line: int
    number: int


def split_sections(body: str, lines_before: int = 0) -> Iterator[Section]:
    """Split a note at its headings; headings in code are ignored.

    ``lines_before`` are the lines of the file before the body.
    """
    again: Counter[tuple[str, ...]] = Counter()
    path: list[tuple[int, str]] = []
    held: list[str] = []
    first, fence = 1, ""
    for number, line in enumerate(_blank_comments(body).split("\n"), start=1):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.fullmatch(line)
        if heading is None:
            held.append(line)
            continue
        yield from _make_section(path, held, lines_before + first, again)
        level, name = len(heading[1]), heading[2].strip().rstrip("#").strip()
        path = [(depth, one) for depth, one in path if depth < level] + [(level, name)]
        held, first = [], number + 1
    yield from _make_section(path, held, lines_before + first, again)


def _make_section(
    path: list[tuple[int, str]], held: list[str], first: int, again: Counter[tuple[str, ...]]
) -> Iterator[Section]:
    blanks = next((place for place, line in enumerate(held) if line.strip()), None)
    if blanks is not None:
        names = tuple(name for _, name in path)
        again[names] += 1
        yield Section(names, "\n".join(held).strip(), first + blanks, again[names])


def _blank_comments(text: str) -> str:
    """Remove comments, keeping the line numbers."""
    if "<!--" not in text:
        return text
    return "".join(
        "\n" * piece.count("\n") if sort == "comment" else piece
        for sort, piece in _split_code_and_comments(text)
    )


def _strip_code(text: str) -> str:
    """Remove code, in which nothing is a link or a tag."""
    return "".join(
        " " if sort == "code" else piece for sort, piece in _split_code_and_comments(text)
    )


def _split_code_and_comments(
    text: str,
) -> Iterator[tuple[Literal["words", "code", "comment"], str]]:
    """Yield words, code and comments of a text.

    Whichever begins first holds what follows: a comment mark in code is code, and code in a
    comment is a comment.
    """
    place = begun = 0
    while mark := _CODE_OR_COMMENT.search(text, place):
        sort: Literal["code", "comment"] = "code"
        if mark["fence"]:
            end = _fence_end(text, mark)
        elif mark["ticks"]:
            end = _span_end(text, mark)
        else:
            sort, end = "comment", text.find("-->", mark.end()) + len("-->")
            if end < mark.end():
                break  # no comment ends from here on, so none begins
        place = max(end, mark.end())
        if end > mark.end():
            yield "words", text[begun : mark.start()]
            yield sort, text[mark.start() : end]
            begun = end
    yield "words", text[begun:]


def _fence_end(text: str, mark: re.Match[str]) -> int:
    """Return the end of the line that closes a code block; else the end of the text."""
    fence = mark["fence"]
    closing = re.compile(rf"^[ ]{{0,3}}{fence[0]}{{{len(fence)},}}[^\n]*", re.MULTILINE)
    line = text.find("\n", mark.end())
    found = closing.search(text, line) if line >= 0 else None
    return found.end() if found is not None else len(text)


def _span_end(text: str, mark: re.Match[str]) -> int:
    """Return where a code span ends; right after its ticks where nothing closes them."""
    blank = text.find("\n\n", mark.end(), mark.end() + _MAX_CODE_SPAN)
    reach = blank if blank >= 0 else mark.end() + _MAX_CODE_SPAN
    closing = re.compile(rf"(?<!`)`{{{len(mark['ticks'])}}}(?!`)")
    found = closing.search(text, mark.end(), reach)
    return found.end() if found is not None else mark.end()


def title_of(body: str) -> str:
    """Return the first-level heading that a note begins with; empty where it has none."""
    heading = _HEADING.fullmatch(body.lstrip().partition("\n")[0])
    if heading is None or len(heading[1]) > 1:
        return ""
    return heading[2].strip().rstrip("#").strip()


def linked_notes(text: str) -> tuple[str, ...]:
    """Return names of the notes that a text links to, by [[name]] or [words](file.md)."""
    words = _strip_code(text)
    wiki = (found[1].strip() for found in _WIKI_LINK.finditer(words))
    links = (unquote(found[1]).partition("#")[0] for found in _MARKDOWN_LINK.finditer(words))
    local = (link for link in links if link.lower().endswith((".md", ".markdown")))
    named = (*wiki, *(link for link in local if not _SCHEME.match(link)))
    return tuple(dict.fromkeys(name for name in named if name))


def hashtags(text: str) -> tuple[str, ...]:
    """Return the #tags of a text, each once."""
    return tuple(dict.fromkeys(found[1] for found in _HASHTAG.finditer(_strip_code(text))))


def date_in(name: str) -> datetime | None:
    """Return the date in a file's name, if there is one: 2026-11-15, 20261115."""
    found = _DATE.search(name)
    if found is None:
        return None
    try:
        return datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC)
    except ValueError:
        return None


MARKDOWN_ENDINGS = (".md", ".markdown", ".mdx")
_DATE_KEYS = ("date", "created", "created_at", "updated", "modified")
_RESERVED_KEYS = ("title", "tags", "tag", "aliases", "alias", "type", "topic", *_DATE_KEYS)
_HEAD_BYTES = 1024  # room for titles above a piece of a section


class _ParsedNote(NamedTuple):
    """A note, its name, and what all of its sections share."""

    name: str
    note: Note
    title: str
    at: datetime | None
    tags: tuple[str, ...]


class Markdown:
    """One folder, or one note."""

    def __init__(self, path: Path, gauge: ReadProgress) -> None:
        self._path = path
        self._gauge = gauge
        self._place = location_id(path)

    def entries(self) -> Iterator[Entry]:
        """Yield an entry for every section that is not empty."""
        for file in read_text_files(self._path, MARKDOWN_ENDINGS, self._gauge):
            if isinstance(file.text, Refused):
                yield Entry(file.name, file.text)
                continue
            sheet = _parse_file(file)
            for section, own in self._sections(sheet):
                yield from _section_entries(sheet, section, own)

    def links(self) -> Iterator[SourceLink]:
        """Yield links from a section to the beginning of the note that it links to."""
        first: dict[str, str] = {}
        names: dict[str, str] = {}
        for sheet in self._notes():
            opening = next(self._sections(sheet), None)
            if opening is not None:
                first[sheet.name] = opening[1]
                for called in (*_stems(sheet.name), *_aliases(sheet)):
                    names.setdefault(called.casefold(), sheet.name)
        for sheet in self._notes():
            for section, own in self._sections(sheet):
                for link in linked_notes(section.text):
                    target = _link_target(link, sheet.name, first, names)
                    if target is not None and first[target] != own:
                        where = f"{sheet.name} line {section.line}"
                        ends = (LinkEnd("item", own), LinkEnd("item", first[target]))
                        yield SourceLink(ends[0], "references", ends[1], where)

    def _notes(self) -> Iterator[_ParsedNote]:
        for file in read_text_files(self._path, MARKDOWN_ENDINGS, ReadProgress()):
            if not isinstance(file.text, Refused):
                yield _parse_file(file)

    def _sections(self, sheet: _ParsedNote) -> Iterator[tuple[Section, str]]:
        """Yield its sections, each with an id that is stable while the headings above it are."""
        for section in split_sections(sheet.note.body, sheet.note.lines_before):
            above = _without_title(section.headings, sheet.title)
            yield section, digest(self._place, sheet.name, *above, str(section.number))


def _parse_file(file: TextFile) -> _ParsedNote:
    assert isinstance(file.text, str)
    note = parse_note(file.text)
    head = note.head
    title = line_of(head.get("title")) or line_of(title_of(note.body)) or _stem(file.name)
    moments = (time_of(head.get(name)) for name in _DATE_KEYS)
    at = next((moment for moment in moments if moment), None) or date_in(_stem(file.name))
    tags = (*tags_of(head.get("tags") or head.get("tag")), *hashtags(note.body))
    return _ParsedNote(file.name, note, title, at, tuple(dict.fromkeys(tags))[:32])


def _section_entries(sheet: _ParsedNote, section: Section, own: str) -> Iterator[Entry]:
    head = sheet.note.head
    above = _without_title(section.headings, sheet.title)
    lead = line_of(" > ".join((sheet.title, *above)), 300)
    where = f"{sheet.name} line {section.line}"
    own_tags = set(hashtags(section.text))
    from_head = tags_of(head.get("tags") or head.get("tag"))
    about: dict[str, Any] = {key: value for key, value in head.items() if key not in _RESERVED_KEYS}
    for part, text in enumerate(split_text(section.text, 64 * 1024 - _HEAD_BYTES)):
        draft = Draft(
            f"{lead}\n{text}",
            kind=line_of(head.get("type")) or "note",
            topic=line_of(head.get("topic")) or _topic(sheet.name),
            tags=tuple(tag for tag in sheet.tags if tag in from_head or tag in own_tags),
            caption=lead,
            occurred_at=sheet.at,
            metadata=metadata_of({**about, "file": sheet.name}),
            force=True,
        )
        yield Entry(where, draft, id=f"{own}/{part}" if part else own)


def _without_title(headings: tuple[str, ...], title: str) -> tuple[str, ...]:
    """Return the headings below the title: a note with a changed title is the same note."""
    is_title = bool(headings) and line_of(headings[0]).casefold() == title.casefold()
    return headings[1:] if is_title else headings


def _topic(name: str) -> str | None:
    """Return the folder of a note; None at the top."""
    return line_of(posixpath.dirname(name)) or None


def _stem(name: str) -> str:
    return posixpath.splitext(posixpath.basename(name))[0]


def _stems(name: str) -> tuple[str, ...]:
    return posixpath.splitext(name)[0], _stem(name)


def _aliases(sheet: _ParsedNote) -> tuple[str, ...]:
    head = sheet.note.head
    return (sheet.title, *tags_of(head.get("aliases") or head.get("alias")))


def _link_target(link: str, name: str, first: dict[str, str], names: dict[str, str]) -> str | None:
    """Return the note that a link in another one refers to, if there is one."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    if beside in first:
        return beside
    stem = posixpath.splitext(link)[0] if link.lower().endswith(MARKDOWN_ENDINGS) else link
    return names.get(stem.casefold())
