"""basic-memory's folder: notes with observations and relations in Markdown.

``- [category] text #tag (context)`` is an observation and becomes a memory of its own;
``- relation [[Target]] (context)`` becomes a memory that says it, and an edge between the
two notes. What else a note says is taken by section.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from recollect.errors import Refused
from recollect.model import Draft
from recollect.sources.folder import TextFile, texts_of
from recollect.sources.front_matter import Note, note_of
from recollect.sources.markdown import ENDINGS
from recollect.sources.markdown_blocks import Section, hashtags, sections
from recollect.sources.pieces import pieces_of
from recollect.sources.source import End, Entry, Gauge, Tie, digest, place_id
from recollect.sources.values import details, entity_of, line_of, time_of, words_of

_ITEM = re.compile(r"[ \t]*[-*+][ \t]+(?P<said>\S.*)")
_OBSERVED = re.compile(r"\[(?P<category>[^\[\]()\n]{1,100})\][ \t]+(?P<text>\S.*)")
_RELATED = re.compile(
    r"(?P<quote>[\"']?)(?P<type>[^\s\"'\[\]]+|(?<=[\"'])[^\"'\[\]\n]+)(?P=quote)[ \t]*"
    r"\[\[(?P<target>[^\[\]\n]{1,300})\]\][ \t]*(?:\((?P<context>[^()\n]*)\))?"
)
_CONTEXT = re.compile(r"(?P<text>.*\S)[ \t]*\((?P<context>[^()\n]+)\)")
# Check boxes and times of a transcript look like categories.
_NO_CATEGORY = re.compile(r"[xX]?|\W|\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?")
_PLAIN_TAG = re.compile(r"(?:^|(?<=\s))#[^\s#]+")


class _Card(NamedTuple):
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


class BasicMemory:
    """One project's folder, or one note."""

    def __init__(self, path: Path, gauge: Gauge) -> None:
        self._path = path
        self._gauge = gauge
        self._place = place_id(path)

    def entries(self) -> Iterator[Entry]:
        """Of every note its observations, its relations, and its words."""
        for file in texts_of(self._path, ENDINGS, self._gauge):
            if isinstance(file.text, Refused):
                yield Entry(file.name, file.text)
                continue
            card = self._card(file)
            told = list(sections(card.note.body, card.note.above))
            yield from _observations(card, told)
            for relation in _relations(told):
                yield _of_relation(card, relation)
            yield from _words(card, told)

    def ties(self) -> Iterator[Tie]:
        """An edge between two notes for every relation."""
        for file in texts_of(self._path, ENDINGS, Gauge()):
            if isinstance(file.text, Refused):
                continue
            card = self._card(file)
            for relation in _relations(list(sections(card.note.body, card.note.above))):
                src, dst = _entity(card.title), _entity(relation.target)
                if src and dst and src != dst:
                    yield Tie(
                        End("entity", src),
                        relation.type,
                        End("entity", dst),
                        f"{card.name} line {relation.line}",
                        said_in=_relation_id(card, relation),
                    )

    def _card(self, file: TextFile) -> _Card:
        assert isinstance(file.text, str)
        note = note_of(file.text)
        stem = posixpath.splitext(posixpath.basename(file.name))[0]
        title = line_of(note.head.get("title")) or stem
        kind = line_of(note.head.get("type"))
        return _Card(file.name, note, title, kind, digest(self._place, file.name))


def _entity(title: str) -> str:
    """A note is known by its title; a target may be written as its address."""
    return entity_of("other", posixpath.basename(title.strip()) or title)


def _lines(told: list[Section]) -> Iterator[tuple[int, str]]:
    for section in told:
        fenced = False
        for number, line in enumerate(section.text.split("\n"), start=section.line):
            fenced ^= line.lstrip().startswith(("```", "~~~"))
            item = None if fenced else _ITEM.fullmatch(line)
            if item is not None:
                yield number, item["said"].strip()


def _observations(card: _Card, told: list[Section]) -> Iterator[Entry]:
    for line, said in _lines(told):
        seen = _OBSERVED.fullmatch(said)
        if seen is None or _NO_CATEGORY.fullmatch(seen["category"].strip()):
            continue
        text, context = seen["text"].strip(), ""
        around = _CONTEXT.fullmatch(text)
        if around is not None:
            text, context = around["text"], around["context"].strip()
        plain = _PLAIN_TAG.sub("", text).strip() or text
        category = line_of(seen["category"])
        draft = _draft(
            card,
            f"{card.title}: {' '.join(plain.split())}",
            kind=category.lower(),
            tags=hashtags(text),
            about={"category": category, "context": context},
        )
        yield Entry(f"{card.name} line {line}", draft, group=digest(card.group, "observation"))


def _relations(told: list[Section]) -> Iterator[_Relation]:
    for line, said in _lines(told):
        found = _RELATED.fullmatch(said)
        if found is not None and line_of(found["target"]):
            yield _Relation(
                line_of(found["type"]),
                line_of(found["target"]),
                (found["context"] or "").strip(),
                line,
            )


def _relation_id(card: _Card, relation: _Relation) -> str:
    return digest(card.group, "relation", relation.type, relation.target)


def _of_relation(card: _Card, relation: _Relation) -> Entry:
    target = _entity(relation.target)
    draft = _draft(
        card,
        f"{card.title} {relation.type.replace('_', ' ')} {target.partition(':')[2]}",
        kind="fact",
        about={"context": relation.context},
        others=(target,),
    )
    return Entry(f"{card.name} line {relation.line}", draft, id=_relation_id(card, relation))


def _words(card: _Card, told: list[Section]) -> Iterator[Entry]:
    """What a note says besides: its sections, without the lines that were taken already."""
    taken = {line for line, said in _lines(told) if _is_taken(said)}
    for section in told:
        lines = enumerate(section.text.split("\n"), start=section.line)
        text = "\n".join(line for place, line in lines if place not in taken).strip()
        above = [name for name in section.headings if name.casefold() != card.title.casefold()]
        lead = line_of(" > ".join((card.title, *above)), 300)
        own = digest(card.group, "section", *section.headings, str(section.number))
        for part, piece in enumerate(pieces_of(text, 63 * 1024)):
            draft = _draft(card, f"{lead}\n{piece}", kind=card.kind or "note", tags=hashtags(piece))
            where = f"{card.name} line {section.line}"
            yield Entry(where, draft._replace(caption=lead), id=f"{own}/{part}" if part else own)


def _is_taken(said: str) -> bool:
    if _RELATED.fullmatch(said):
        return True
    seen = _OBSERVED.fullmatch(said)
    return seen is not None and not _NO_CATEGORY.fullmatch(seen["category"].strip())


def _draft(
    card: _Card,
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
        topic=line_of(posixpath.dirname(card.name)) or None,
        tags=tuple(dict.fromkeys((*words_of(head.get("tags")), *tags)))[:32],
        entities=(_entity(card.title), *others),
        occurred_at=time_of(head.get("created")) or time_of(head.get("date")),
        metadata=details(given),
        force=True,
    )
