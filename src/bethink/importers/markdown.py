"""Markdown notes: a folder of them, or one; a memory for every section.

A section carries the note's title and the headings above it, so that it makes sense by
itself. Notes that link to each other are linked: by [[name]] and by [words](file.md).
Front matter is the plain part of YAML that people write there.
"""

from __future__ import annotations

import json
import posixpath
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.importers import entry
from bethink.importers.streams import read_text_files
from bethink.model import Draft

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

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
    return Note(parse_front_matter(found["head"]), text[found.end() :], found[0].count("\n"))


def parse_front_matter(head: str) -> dict[str, FrontMatterValue]:
    """Parse the lines of a front matter; keys in lower case."""
    keys: dict[str, FrontMatterValue] = {}
    under = ""
    for line in head.splitlines():
        listed_line = _LIST_LINE.fullmatch(line)
        key = _KEY_LINE.fullmatch(line)
        if listed_line is not None and under:
            listed = keys.setdefault(under, [])
            if isinstance(listed, list):
                listed.append(_unquote_value(listed_line["value"]))
        elif key is not None:
            under = key["key"].strip().lower()
            if (key["value"] or "").strip():
                keys[under] = _parse_value(key["value"].strip())
    return {key: value for key, value in keys.items() if value}


def _parse_value(value: str) -> FrontMatterValue:
    if value.startswith("[") and value.rstrip().endswith("]"):
        listed = _json_or_none(value)
        if isinstance(listed, list) and all(isinstance(part, str) for part in listed):
            return listed
        parts = value.strip()[1:-1].split(",")
        return [_unquote_value(part) for part in parts if part.strip()]
    return _unquote_value(value)


def _json_or_none(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _unquote_value(value: str) -> str:
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        # Escapes in double quotes are those of JSON.
        plain = _json_or_none(text) if text[0] == '"' and "\\" in text else None
        return plain if isinstance(plain, str) else text[1:-1]
    return _COMMENT.sub("", text)


_HEADING = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_COMMENT_MARKS = re.compile(r"<!--.*?-->", re.DOTALL)
# What matters for sections, tags and links; emphasis and the like would only take time.
_INLINE_RULES = ("text", "newline", "escape", "backticks", "html_inline")
_SKIPPED_BLOCKS = ("code", "lheading", "reference")
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
    """A part of a note: headings above it, text, line, and its number below these headings."""

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
    first = 1
    tokens = _parse_markdown(body)
    headings = {
        one.map[0] + 1 for one in tokens if one.map and one.type == "heading_open" and not one.level
    }
    for number, line in enumerate(_without_comments(body, tokens).split("\n"), start=1):
        heading = _parse_heading(line) if number in headings else None
        if heading is None:
            held.append(line)
            continue
        yield from _make_section(path, held, lines_before + first, again)
        path = [(depth, one) for depth, one in path if depth < heading[0]] + [heading]
        held, first = [], number + 1
    yield from _make_section(path, held, lines_before + first, again)


def _parse_heading(line: str) -> tuple[int, str] | None:
    """Return the level and the words of a heading; None for a line that is none."""
    found = _HEADING.fullmatch(line)
    return (len(found[1]), found[2]) if found is not None and found[2] else None


def _make_section(
    path: list[tuple[int, str]], held: list[str], first: int, again: Counter[tuple[str, ...]]
) -> Iterator[Section]:
    blanks = next((place for place, line in enumerate(held) if line.strip()), None)
    if blanks is not None:
        names = tuple(name for _, name in path)
        again[names] += 1
        yield Section(names, "\n".join(held).strip(), first + blanks, again[names])


@cache
def _markdown_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # start-up time: few imports are of Markdown

    parser = MarkdownIt("commonmark").disable(list(_SKIPPED_BLOCKS))
    parser.inline.ruler.enableOnly(list(_INLINE_RULES))
    parser.inline.ruler2.enableOnly([])
    return parser


def _parse_markdown(text: str) -> list[Token]:
    """Parse a text by the rules of CommonMark."""
    # The parser ends lines at a carriage return as well; lines are counted without it.
    return _markdown_parser().parse(text.replace("\r", " "))


def _without_comments(text: str, tokens: Sequence[Token]) -> str:
    """Remove comments, keeping the number of lines; one in a paragraph with one in code stays."""
    lines = text.split("\n")
    for token in tokens:
        inner = token.children or ()
        is_shown = any(one.type == "code_inline" and "<!--" in one.content for one in inner)
        has_comment = any(one.content.startswith("<!--") for one in inner)
        if token.map and (token.type == "html_block" or (has_comment and not is_shown)):
            start, end = token.map
            kept = _COMMENT_MARKS.sub(
                lambda one: "\n" * one[0].count("\n"), "\n".join(lines[start:end])
            )
            lines[start:end] = kept.split("\n")
    return "\n".join(lines)


def _strip_code(text: str) -> str:
    """Remove code, in which nothing is a link or a tag."""
    if "`" not in text and "~~~" not in text:
        return text
    blocks = (token for token in _parse_markdown(text) if token.type in ("inline", "html_block"))
    return "\n".join(_text_outside_code(block) for block in blocks)


def _text_outside_code(block: Token) -> str:
    if block.children is None:
        return block.content
    return "".join(
        " " if child.type == "code_inline" else child.content or "\n" for child in block.children
    )


def title_of(body: str) -> str:
    """Return the first-level heading that a note begins with; empty where it has none."""
    heading = _parse_heading(body.lstrip().partition("\n")[0])
    return heading[1] if heading is not None and heading[0] == 1 else ""


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


class NoteReader(entry.Reader, ABC):
    """A folder of notes, or one note."""

    def __init__(self, path: Path, gauge: entry.ReadProgress) -> None:
        super().__init__(path, gauge)
        self._place = entry.location_id(path)

    def entries(self) -> Iterator[entry.Entry]:
        """Yield the entries of every note, and the notes that cannot be read."""
        for name, text in read_text_files(self._path, MARKDOWN_ENDINGS, self._gauge):
            if isinstance(text, Refused):
                yield entry.Entry(name, text)
            else:
                yield from self._note_entries(name, parse_note(text))

    @abstractmethod
    def _note_entries(self, name: str, note: Note) -> Iterator[entry.Entry]: ...

    def _notes(self) -> Iterator[tuple[str, Note]]:
        """Yield the notes that can be read, again."""
        for name, text in read_text_files(self._path, MARKDOWN_ENDINGS, entry.ReadProgress()):
            if not isinstance(text, Refused):
                yield name, parse_note(text)


class Markdown(NoteReader):
    """Notes of any kind: a memory for every section that is not empty."""

    def _note_entries(self, name: str, note: Note) -> Iterator[entry.Entry]:
        sheet = _with_shared(name, note)
        for section, own in self._sections(sheet):
            yield from _section_entries(sheet, section, own)

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield links from a section to the beginning of the note that it links to."""
        linking = {name for name, note in self._notes() if "[[" in note.body or "](" in note.body}
        if not linking:
            return
        first: dict[str, str] = {}
        names: dict[str, str] = {}
        for sheet in starmap(_with_shared, self._notes()):
            opening = next(self._sections(sheet), None)
            if opening is not None:
                first[sheet.name] = opening[1]
                aliases = entry.tags_of(
                    sheet.note.head.get("aliases") or sheet.note.head.get("alias")
                )
                stems = posixpath.splitext(sheet.name)[0], _stem(sheet.name)
                for called in (*stems, sheet.title, *aliases):
                    names.setdefault(called.casefold(), sheet.name)
        linked = (one for one in self._notes() if one[0] in linking)
        for sheet in starmap(_with_shared, linked):
            for section, own in self._sections(sheet):
                for link in linked_notes(section.text):
                    target = _link_target(link, sheet.name, first, names)
                    if target is not None and first[target] != own:
                        where = f"{sheet.name} line {section.line}"
                        yield entry.item_link(own, "references", first[target], where)

    def _sections(self, sheet: _ParsedNote) -> Iterator[tuple[Section, str]]:
        """Yield its sections, each with an id that is stable while the headings above it are."""
        for section in split_sections(sheet.note.body, sheet.note.lines_before):
            above = _without_title(section.headings, sheet.title)
            yield section, entry.digest(self._place, sheet.name, *above, str(section.number))


def _with_shared(name: str, note: Note) -> _ParsedNote:
    head = entry.Fields(note.head)
    title = head.line("title") or entry.line_of(title_of(note.body)) or _stem(name)
    at = head.time(*_DATE_KEYS) or date_in(_stem(name))
    tags = (*entry.tags_of(note.head.get("tags") or note.head.get("tag")), *hashtags(note.body))
    return _ParsedNote(name, note, title, at, tuple(dict.fromkeys(tags))[:32])


def _section_entries(sheet: _ParsedNote, section: Section, own: str) -> Iterator[entry.Entry]:
    head = sheet.note.head
    above = _without_title(section.headings, sheet.title)
    lead = entry.line_of(" > ".join((sheet.title, *above)), 300)
    where = f"{sheet.name} line {section.line}"
    own_tags = set(hashtags(section.text))
    from_head = entry.tags_of(head.get("tags") or head.get("tag"))
    about = {key: value for key, value in head.items() if key not in _RESERVED_KEYS}
    for part, text in enumerate(entry.split_text(section.text, 64 * 1024 - _HEAD_BYTES)):
        draft = Draft(
            f"{lead}\n{text}",
            kind=entry.line_of(head.get("type")) or "note",
            topic=entry.line_of(head.get("topic"))
            or entry.line_of(posixpath.dirname(sheet.name))
            or None,
            tags=tuple(tag for tag in sheet.tags if tag in from_head or tag in own_tags),
            caption=lead,
            occurred_at=sheet.at,
            metadata=entry.metadata_of({**about, "file": sheet.name}),
            force=True,
        )
        yield entry.Entry(where, draft, id=f"{own}/{part}" if part else own)


def _without_title(headings: tuple[str, ...], title: str) -> tuple[str, ...]:
    """Return the headings below the title: a note with a changed title is the same note."""
    is_title = bool(headings) and entry.line_of(headings[0]).casefold() == title.casefold()
    return headings[1:] if is_title else headings


def _stem(name: str) -> str:
    return posixpath.splitext(posixpath.basename(name))[0]


def _link_target(link: str, name: str, first: dict[str, str], names: dict[str, str]) -> str | None:
    """Return the note that a link in another one refers to, if there is one."""
    sibling = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    if sibling in first:
        return sibling
    stem = posixpath.splitext(link)[0] if link.lower().endswith(MARKDOWN_ENDINGS) else link
    return names.get(stem.casefold())
