"""What a Markdown note is made of: sections under headings, links, dates in names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+)")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_WIKI = re.compile(
    r"!?\[\[([^\[\]\n|#^]{1,300})(?:[#^][^\[\]\n|]{0,300})?(?:\|[^\[\]\n]{0,300})?\]\]"
)
_LINK = re.compile(
    r"(?<!!)\[[^\[\]\n]{0,300}\]\(<?([^()\s<>]{1,500})>?(?:[ \t]+\"[^\"\n]{0,300}\")?\)"
)
_TAG = re.compile(r"(?<![\w&/#])#([^\W\d_][\w/-]{0,60})")
_DATE = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d{2})[-_.]?(\d{2})(?!\d)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class Section(NamedTuple):
    """A part of a note: the headings above it, outermost first, its text, and the line on
    which that begins. ``number`` counts parts below the same headings."""

    headings: tuple[str, ...]
    text: str
    line: int
    number: int


def sections(body: str, above: int = 0) -> Iterator[Section]:
    """The parts of a note that say something, cut at its headings; those in code are none.
    ``above`` are the lines of the file that stand before it."""
    again: Counter[tuple[str, ...]] = Counter()
    path: list[tuple[int, str]] = []
    held: list[str] = []
    first, fence = 1, ""
    for number, line in enumerate(_without_comments(body).split("\n"), start=1):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.fullmatch(line)
        if heading is None:
            held.append(line)
            continue
        yield from _section(path, held, above + first, again)
        level, name = len(heading[1]), heading[2].strip().rstrip("#").strip()
        path = [(depth, one) for depth, one in path if depth < level] + [(level, name)]
        held, first = [], number + 1
    yield from _section(path, held, above + first, again)


def _section(
    path: list[tuple[int, str]], held: list[str], first: int, again: Counter[tuple[str, ...]]
) -> Iterator[Section]:
    blanks = next((place for place, line in enumerate(held) if line.strip()), None)
    if blanks is not None:
        names = tuple(name for _, name in path)
        again[names] += 1
        yield Section(names, "\n".join(held).strip(), first + blanks, again[names])


def _without_comments(text: str) -> str:
    """Without what stands in comments, every line where it was."""
    kept: list[str] = []
    place = 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept += (text[place:start], "\n" * text.count("\n", start, end))
        place = end + len("-->")
    return "".join((*kept, text[place:]))


def title_of(body: str) -> str:
    """The heading of the first level that a note begins with; empty where it has none."""
    heading = _HEADING.fullmatch(body.lstrip().partition("\n")[0])
    if heading is None or len(heading[1]) > 1:
        return ""
    return heading[2].strip().rstrip("#").strip()


def linked(text: str) -> tuple[str, ...]:
    """Names of the notes that a text links to, by [[name]] or [words](file.md), each once."""
    wiki = (found[1].strip() for found in _WIKI.finditer(text))
    links = (unquote(found[1]).partition("#")[0] for found in _LINK.finditer(text))
    local = (link for link in links if link.lower().endswith((".md", ".markdown")))
    named = (*wiki, *(link for link in local if not _SCHEME.match(link)))
    return tuple(dict.fromkeys(name for name in named if name))


def hashtags(text: str) -> tuple[str, ...]:
    """The #tags of a text, each once."""
    return tuple(dict.fromkeys(found[1] for found in _TAG.finditer(text)))


def date_in(name: str) -> datetime | None:
    """The day that a file's name tells, where it tells one: 2026-11-15, 20261115."""
    found = _DATE.search(name)
    if found is None:
        return None
    try:
        return datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC)
    except ValueError:
        return None
