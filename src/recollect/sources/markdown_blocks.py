"""What a Markdown note is made of: sections under headings, links, dates in names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, NamedTuple
from urllib.parse import unquote

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+)")
_TICKS_OR_TILDES = r"`{3,}(?!`)(?![^\n]*`)|~{3,}"  # code that ends on its line is no block
_FENCE = re.compile(rf"[ ]{{0,3}}({_TICKS_OR_TILDES})")
_MARK = re.compile(rf"^[ ]{{0,3}}(?P<fence>{_TICKS_OR_TILDES})|(?P<ticks>`+)|<!--", re.MULTILINE)
_LONGEST_SPAN = 2_000  # characters of code within a paragraph
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
    if "<!--" not in text:
        return text
    return "".join(
        "\n" * piece.count("\n") if sort == "comment" else piece for sort, piece in _pieces(text)
    )


def _words(text: str) -> str:
    """Without code, in which nothing is a link or a tag."""
    return "".join(" " if sort == "code" else piece for sort, piece in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[Literal["words", "code", "comment"], str]]:
    """A text in its parts. Whichever begins first holds what follows: what looks like a
    comment in code is code, and code in a comment is a comment."""
    place = begun = 0
    while mark := _MARK.search(text, place):
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
    """Where the line ends that closes a block of code; the end of a text that has none."""
    fence = mark["fence"]
    closing = re.compile(rf"^[ ]{{0,3}}{fence[0]}{{{len(fence)},}}[^\n]*", re.MULTILINE)
    line = text.find("\n", mark.end())
    found = closing.search(text, line) if line >= 0 else None
    return found.end() if found is not None else len(text)


def _span_end(text: str, mark: re.Match[str]) -> int:
    """Where code within a paragraph ends; at its ticks where nothing closes them."""
    blank = text.find("\n\n", mark.end(), mark.end() + _LONGEST_SPAN)
    reach = blank if blank >= 0 else mark.end() + _LONGEST_SPAN
    closing = re.compile(rf"(?<!`)`{{{len(mark['ticks'])}}}(?!`)")
    found = closing.search(text, mark.end(), reach)
    return found.end() if found is not None else mark.end()


def title_of(body: str) -> str:
    """The heading of the first level that a note begins with; empty where it has none."""
    heading = _HEADING.fullmatch(body.lstrip().partition("\n")[0])
    if heading is None or len(heading[1]) > 1:
        return ""
    return heading[2].strip().rstrip("#").strip()


def linked(text: str) -> tuple[str, ...]:
    """Names of the notes that a text links to, by [[name]] or [words](file.md), each once."""
    words = _words(text)
    wiki = (found[1].strip() for found in _WIKI.finditer(words))
    links = (unquote(found[1]).partition("#")[0] for found in _LINK.finditer(words))
    local = (link for link in links if link.lower().endswith((".md", ".markdown")))
    named = (*wiki, *(link for link in local if not _SCHEME.match(link)))
    return tuple(dict.fromkeys(name for name in named if name))


def hashtags(text: str) -> tuple[str, ...]:
    """The #tags of a text, each once."""
    return tuple(dict.fromkeys(found[1] for found in _TAG.finditer(_words(text))))


def date_in(name: str) -> datetime | None:
    """The day that a file's name tells, where it tells one: 2026-11-15, 20261115."""
    found = _DATE.search(name)
    if found is None:
        return None
    try:
        return datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC)
    except ValueError:
        return None
