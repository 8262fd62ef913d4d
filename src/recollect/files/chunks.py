"""Cuts a file's text into named pieces that outlive a change elsewhere in it.

Python by its own parser, Markdown by headings, other languages by the declarations
that begin a line, everything else by windows of a hundred lines.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

WINDOW = 100  # lines
LONG_CLASS = 100  # lines; longer ones are cut by their methods

_MARKDOWN = frozenset((".md", ".markdown", ".mdx"))
_PYTHON = frozenset((".py", ".pyi"))
_HEADING = re.compile(r"(#{2,3}) +(.+?) *#* *")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# A declaration begins its line; whatever is indented belongs to the one above it.
_WORDS_BEFORE = (
    r"(?:(?:export|default|declare|abstract|async|public|private|protected|internal|static|final"
    r"|sealed|open|override|inline|unsafe|pub(?:\([a-z]+\))?|extern|const(?= fn))\s+){0,6}"
)
_KINDS = (
    r"(?P<kind>function\*?|class|interface|type|enum|namespace|module|const|let|var|func|fn|struct"
    r"|impl|trait|mod|def|object|record|protocol|extension|macro_rules!|sub|package|contract)"
)
_NAME = (
    r"(?:\s+|(?=<))(?:\([^()\n]{0,200}\)\s*)?(?:<[^<>\n]{0,200}>\s*)?"
    r"(?P<name>[A-Za-z_$][\w$.:-]{0,120})"
)
_DECLARATION = re.compile(_WORDS_BEFORE + _KINDS + _NAME)
_DECLARED = frozenset(
    (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".go", ".rs", ".java", ".kt", ".kts",
     ".scala", ".swift", ".cs", ".php", ".rb", ".lua", ".zig", ".dart", ".sol", ".pl", ".vue")
)  # fmt: skip


class Chunk(NamedTuple):
    """A piece of a file: its name, its lines (counted from 1) and their text."""

    id: str
    first_line: int
    last_line: int
    text: str

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that change with the text."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _Start(NamedTuple):
    """The line a piece begins at (counted from 0), and its name."""

    line: int
    name: str


def cut(path: str, text: str) -> tuple[Chunk, ...]:
    """The pieces of a file, in order; together they are the whole text."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return ()
    suffix = PurePath(path).suffix.lower()
    starts: Sequence[_Start] = ()
    if suffix in _PYTHON:
        starts = _python(text, lines)
    elif suffix in _MARKDOWN:
        starts = _markdown(lines)
    elif suffix in _DECLARED:
        starts = _declarations(lines)
    if not starts:
        starts = [_Start(at, f"lines:{at + 1}") for at in range(0, len(lines), WINDOW)]
    return tuple(_pieces(starts, lines))


def _pieces(starts: Sequence[_Start], lines: Sequence[str]) -> Iterable[Chunk]:
    """From each start to the next; what stands before the first is the preamble."""
    if starts[0].line > 0:
        starts = [_Start(0, "preamble"), *starts]
    seen: Counter[str] = Counter()
    for number, start in enumerate(starts):
        end = starts[number + 1].line if number + 1 < len(starts) else len(lines)
        seen[start.name] += 1
        name = start.name if seen[start.name] == 1 else f"{start.name}#{seen[start.name]}"
        yield Chunk(name, start.line + 1, end, "".join(lines[start.line : end]))


def _python(text: str, lines: Sequence[str]) -> list[_Start]:
    """Top-level functions and classes; long classes by their methods."""
    # The parser counts lines as Python does, not at form feeds and the like.
    if len(lines) != text.count("\n") + (not text.endswith("\n")):
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    starts: list[_Start] = []
    after_definition = False
    for node in tree.body:
        defined = _definition(node)
        if defined:
            starts.append(_Start(_with_comments(_first_line(node), lines), defined))
            if isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno > LONG_CLASS:
                starts += _methods(node, lines)
        elif after_definition:
            starts.append(_Start(_with_comments(node.lineno - 1, lines), "code"))
        after_definition = bool(defined)
    return _rising(starts)


def _definition(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"function:{node.name}"
    return f"class:{node.name}" if isinstance(node, ast.ClassDef) else ""


def _methods(owner: ast.ClassDef, lines: Sequence[str]) -> list[_Start]:
    return [
        _Start(_with_comments(_first_line(node), lines), f"method:{owner.name}.{node.name}")
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _first_line(node: ast.stmt) -> int:
    """Where a definition begins, decorators included, counted from 0."""
    decorators = getattr(node, "decorator_list", [])
    return int(min([node.lineno, *(one.lineno for one in decorators)]) - 1)


def _with_comments(line: int, lines: Sequence[str]) -> int:
    """The first of the comment lines that stand right above."""
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line


def _rising(starts: Sequence[_Start]) -> list[_Start]:
    """Each line once: two statements on one line are one piece."""
    kept: list[_Start] = []
    for start in starts:
        if not kept or start.line > kept[-1].line:
            kept.append(start)
    return kept


def _markdown(lines: Sequence[str]) -> list[_Start]:
    """Second and third headings, those inside code fences left alone."""
    starts = []
    fence = ""
    for number, line in enumerate(lines):
        marked = _FENCE.match(line)
        if marked and (not fence or marked[1].startswith(fence)):
            fence = "" if fence else marked[1]
        elif not fence and (heading := _HEADING.fullmatch(line.rstrip())):
            starts.append(_Start(number, f"h{len(heading[1])}:{heading[2][:120]}"))
    return starts


def _declarations(lines: Sequence[str]) -> list[_Start]:
    found = ((number, _DECLARATION.match(line[:600])) for number, line in enumerate(lines))
    return [_Start(number, f"{one['kind']}:{one['name']}") for number, one in found if one]
