"""The symbols that a source file defines: by a pattern for each language, without a parser.

A definition ends where its braces close or, in languages without braces, where the
indentation returns to that of its first line. Lines are matched one by one, and only their
beginning, so that no file takes long.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple

MAX_LINES = 30_000
_LINE_CHARACTERS = 200
_BRACED_CHARACTERS = 1000
_MAX_HEAD_LINES = 40  # from the name to the brace
_HASH_DIGITS = 16
_LANGUAGES = Path(__file__).with_name("languages.toml")
_CLOSER = lazy_pattern(r"[)\]}]|end\b")
_OPENING = lazy_pattern(r"[:{(\[]\s*(?:#.*)?$")
_QUOTED = lazy_pattern(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|//.*|/\*.*?\*/")
_COMMA = lazy_pattern(r",(?=[)\]}])")
_SEMICOLON = lazy_pattern(r";[ \t]*(?=\n|$)")
_BRACE = lazy_pattern(r"[{}]")
_SPACE = lazy_pattern(r"\s+")


class Symbol(NamedTuple):
    """A definition: its qualified name, and its lines (from 0, to one past the last)."""

    name: str
    start: int
    end: int


@cache
def _languages() -> dict[str, tuple[bool, tuple[re.Pattern[str], ...]]]:
    """By suffix: whether braces end a definition, and what begins one."""
    data = tomllib.loads(_LANGUAGES.read_text("utf-8"))

    def compile_(pattern: str) -> re.Pattern[str]:
        for name, part in data["parts"].items():
            pattern = pattern.replace(f"<{name}>", part)
        return re.compile(pattern)

    found = {}
    for language in data["language"]:
        patterns = tuple(map(compile_, language["definitions"]))
        for suffix in language["suffixes"]:
            found[f".{suffix}"] = language.get("braces", False), patterns
    return found


def knows_language(path: str) -> bool:
    """Whether symbols can be found in a file of this name."""
    return PurePosixPath(path).suffix.lower() in _languages()


def find_symbols(path: str, text: str) -> list[Symbol]:
    """The symbols that a file defines, in order; none in an unknown language or a huge file."""
    known, lines = _languages().get(PurePosixPath(path).suffix.lower()), text.split("\n")
    if known is None or len(lines) > MAX_LINES:
        return []
    braces, patterns = known
    closes = _closing_lines(lines) if braces else {}
    found: list[Symbol] = []
    open_: list[Symbol] = []
    for at, line in enumerate(lines):
        matches = (one.match(line[:_LINE_CHARACTERS]) for one in patterns if line)
        if (match := next(filter(None, matches), None)) is None:
            continue
        names = match.groupdict()
        name = ".".join(filter(None, (names.get("owner"), names["name"].replace("::", "."))))
        end = _end_by_braces(lines, at, closes) if braces else 0
        end = end or _end_by_indentation(lines, at)
        while open_ and open_[-1].end <= at:
            open_.pop()
        owner = f"{open_[-1].name}." if open_ else ""
        found.append(Symbol(f"{owner}{name}", at, end))
        open_.append(found[-1])
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_by_indentation(lines: Sequence[str], at: int) -> int:
    """One past the last line of what is indented more than a line; closing brackets belong."""
    depth, end = _indent(lines[at]), at + 1
    heading = len(lines[at]) - len(lines[at].lstrip("#["))
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if not line or line.isspace():
            continue
        if heading:
            level = len(line) - len(line.lstrip("#["))
            if level and level <= heading:
                break
        elif _indent(line) <= depth:
            if not _CLOSER.match(line.lstrip()) or _indent(line) < depth:
                break
            if not _OPENING.search(line):  # else these were the parameters before a body
                return number + 1
        end = number + 1
    return end


def _end_by_braces(lines: Sequence[str], at: int, closes: Mapping[int, int]) -> int:
    """One past the line where the first brace closes; 0 where none opens or it never does."""
    for number in range(at, min(len(lines), at + _MAX_HEAD_LINES)):
        line = lines[number].lstrip()
        back = number > at and _indent(lines[number]) <= _indent(lines[at])
        if line.startswith("#"):
            return number + 1
        if back and not line.startswith(("{", ")", "]", ">")):
            break
        if number in closes or ";" in line:
            return closes.get(number, number) + 1
    return 0


def _closing_lines(lines: Sequence[str]) -> dict[int, int]:
    """Where the first brace closes that a line opens, by the line; those that never do lack."""
    closes: dict[int, int] = {}
    opened: list[int] = []
    for number, line in enumerate(lines):
        if "{" in line or "}" in line:
            for brace in _BRACE.findall(_QUOTED.sub("", line[:_BRACED_CHARACTERS])):
                if brace == "{":
                    opened.append(number)
                elif opened:
                    closes[opened.pop()] = number  # of several the first is the last to close
    return closes


def hash_code(lines: Sequence[str], name: str = "") -> str:
    """A hash of code without white space, the name it defines, and what formatters change.

    These are the kind of quotes, commas before a closing bracket, and semicolons at the end
    of a line.
    """
    text = "\n".join(lines).rstrip()
    if bare := name.rpartition(".")[2]:
        text = re.sub(rf"(?<![\w$]){re.escape(bare)}(?![\w$])", "\0", text)
    text = _SPACE.sub("", _SEMICOLON.sub("", text).replace("'", '"'))
    text = _COMMA.sub("", text)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_HASH_DIGITS]


def find_symbol(symbols: Sequence[Symbol], name: str) -> Symbol | None:
    """The symbol of a name, qualified or not; None where there is none, or several.

    Of definitions with one qualified name (overloads) it is the longest.
    """
    wanted = name.replace("::", ".").replace("#", ".")
    exact = [one for one in symbols if one.name == wanted]
    if exact:
        return max(exact, key=lambda one: one.end - one.start)
    found = [one for one in symbols if one.name.endswith(f".{wanted}")]
    return found[0] if len(found) == 1 else None


def count_changes(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many lines are no longer there, and how many are new, white space aside."""
    old, new = (
        Counter(bare for line in lines if (bare := _SPACE.sub("", line)))
        for lines in (before, after)
    )
    return (old - new).total(), (new - old).total()
