"""basic-memory's folder: notes with observations and relations in Markdown.

``- [category] text #tag (context)`` is an observation and becomes a memory of its own;
``- relation [[Target]] (context)`` becomes a memory that states it, and an edge between
the two notes. The rest of a note is imported by section.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from bethink.core.named_tuple import NamedTuple
from bethink.importers import entry
from bethink.importers.markdown import Note, NoteReader, Section, hashtags, split_sections
from bethink.model import Draft

_LIST_ITEM = re.compile(r"[ \t]*[-*+][ \t]+(?P<said>\S.*)")
_OBSERVATION = re.compile(r"\[(?P<category>[^\[\]()\n]{1,100})\][ \t]+(?P<text>\S.*)")
_RELATION = re.compile(
    r"(?P<quote>[\"']?)(?P<type>[^\s\"'\[\]]+|(?<=[\"'])[^\"'\[\]\n]+)(?P=quote)[ \t]*"
    r"\[\[(?P<target>[^\[\]\n]{1,300})\]\][ \t]*(?:\((?P<context>[^()\n]*)\))?"
)
_CONTEXT = re.compile(r"(?P<text>.*\S)[ \t]*\((?P<context>[^()\n]+)\)")
# Check boxes and transcript times look like categories.
_NOT_A_CATEGORY = re.compile(r"[xX]?|\W|\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?")
_PLAIN_TAG = re.compile(r"(?:^|(?<=\s))#[^\s#]+")


class _NoteCard(NamedTuple):
    """A note as basic-memory sees it."""

    name: str
    note: Note
    title: str
    kind: str
    group: str


class _Relation(NamedTuple):
    type: str
    target: str
    context: str
    line: int


class BasicMemory(NoteReader):
    """One project's folder, or one note."""

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield an edge between two notes for every relation."""
        for name, note in self._notes():
            card = self._card(name, note)
            for one in _relations(_sections(note)):
                src, dst = _note_entity(card.title), _note_entity(one.target)
                if src and dst:
                    where, own = f"{name} line {one.line}", _relation_id(card, one)
                    yield from entry.Relation(where, own, src, one.type, dst).link()

    def _note_entries(self, name: str, note: Note) -> Iterator[entry.Entry]:
        """Yield the observations, relations and sections of a note."""
        card, sections = self._card(name, note), _sections(note)
        yield from _observations(card, sections)
        for relation in _relations(sections):
            yield _relation_entry(card, relation)
        yield from _section_entries(card, sections)

    def _card(self, name: str, note: Note) -> _NoteCard:
        title = entry.line_of(note.head.get("title"))
        title = title or posixpath.splitext(posixpath.basename(name))[0]
        kind = entry.line_of(note.head.get("type"))
        return _NoteCard(name, note, title, kind, entry.digest(self._place, name))


def _sections(note: Note) -> list[Section]:
    return list(split_sections(note.body, note.lines_before))


def _note_entity(title: str) -> str:
    """Return the entity of a note's title; a target may be written as a path."""
    return entry.entity_name_of("other", posixpath.basename(title.strip()) or title)


def _list_items(parts: list[Section]) -> Iterator[tuple[int, str]]:
    for section in parts:
        fenced = False
        for number, line in enumerate(section.text.split("\n"), start=section.line):
            fenced ^= line.lstrip().startswith(("```", "~~~"))
            item = None if fenced else _LIST_ITEM.fullmatch(line)
            if item is not None:
                yield number, item["said"].strip()


def _observations(card: _NoteCard, parts: list[Section]) -> Iterator[entry.Entry]:
    for line, said in _list_items(parts):
        seen = _OBSERVATION.fullmatch(said)
        if seen is None or _NOT_A_CATEGORY.fullmatch(seen["category"].strip()):
            continue
        text, context = seen["text"].strip(), ""
        around = _CONTEXT.fullmatch(text)
        if around is not None:
            text, context = around["text"], around["context"].strip()
        plain = _PLAIN_TAG.sub("", text).strip() or text
        category = entry.line_of(seen["category"])
        draft = _draft(
            card,
            f"{card.title}: {' '.join(plain.split())}",
            kind=category.lower(),
            tags=hashtags(text),
            about={"category": category, "context": context},
        )
        yield entry.Entry(
            f"{card.name} line {line}", draft, group=entry.digest(card.group, "observation")
        )


def _relations(parts: list[Section]) -> Iterator[_Relation]:
    for line, said in _list_items(parts):
        found = _RELATION.fullmatch(said)
        if found is not None and (target := entry.line_of(found["target"])):
            context = (found["context"] or "").strip()
            yield _Relation(entry.line_of(found["type"]), target, context, line)


def _relation_id(card: _NoteCard, relation: _Relation) -> str:
    return entry.digest(card.group, "relation", relation.type, relation.target)


def _relation_entry(card: _NoteCard, relation: _Relation) -> entry.Entry:
    target = _note_entity(relation.target)
    draft = _draft(
        card,
        f"{card.title} {relation.type.replace('_', ' ')} {target.partition(':')[2]}",
        kind="fact",
        about={"context": relation.context},
        others=(target,),
    )
    return entry.Entry(f"{card.name} line {relation.line}", draft, id=_relation_id(card, relation))


def _section_entries(card: _NoteCard, parts: list[Section]) -> Iterator[entry.Entry]:
    """Yield the sections of a note, without observation and relation lines."""
    taken = {line for line, said in _list_items(parts) if _is_structured(said)}
    for section in parts:
        lines = enumerate(section.text.split("\n"), start=section.line)
        text = "\n".join(line for place, line in lines if place not in taken).strip()
        above = [name for name in section.headings if name.casefold() != card.title.casefold()]
        lead = entry.line_of(" > ".join((card.title, *above)), 300)
        own = entry.digest(card.group, "section", *section.headings, str(section.number))
        for part, piece in enumerate(entry.split_text(text, 63 * 1024)):
            draft = _draft(card, f"{lead}\n{piece}", kind=card.kind or "note", tags=hashtags(piece))
            where = f"{card.name} line {section.line}"
            yield entry.Entry(
                where, draft._replace(caption=lead), id=f"{own}/{part}" if part else own
            )


def _is_structured(said: str) -> bool:
    if _RELATION.fullmatch(said):
        return True
    seen = _OBSERVATION.fullmatch(said)
    return seen is not None and not _NOT_A_CATEGORY.fullmatch(seen["category"].strip())


def _draft(
    card: _NoteCard,
    text: str,
    *,
    kind: str,
    tags: tuple[str, ...] = (),
    about: dict[str, str] | None = None,
    others: tuple[str, ...] = (),
) -> Draft:
    head = card.note.head
    given = {"file": card.name, "permalink": head.get("permalink"), **(about or {})}
    return Draft(
        text,
        kind=kind,
        topic=entry.line_of(posixpath.dirname(card.name)) or None,
        tags=tuple(dict.fromkeys((*entry.tags_of(head.get("tags")), *tags)))[:32],
        entities=(_note_entity(card.title), *others),
        occurred_at=entry.Fields(head).time("created", "date"),
        metadata=entry.metadata_of(given),
        force=True,
    )
