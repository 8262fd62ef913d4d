"""TOML files of our own, which are plain, read without `tomllib`: start-up time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bethink.core.lazy import lazy_pattern
from bethink.core.small_files import MAX_DEPTH, refuse_extremes


def parse_toml(text: str) -> dict[str, Any]:
    """Return what `tomllib.loads` returns, a file of plain lines without loading it.

    Plain are tables, lists of tables, and words with a text, number or truth value each. A
    file with anything else, or with a mistake, is left to `tomllib`. Raises ValueError, also
    for keys of more parts than any file needs: `tomllib` takes 6 GB for one of 40,000.
    """
    try:
        return _parse_plain_toml(text)
    except _NotPlainError:
        import tomllib  # start-up time: 3 % of a recall

        has_long_texts = '"""' in text or "'''" in text  # which go on in the next line
        keys = text if has_long_texts else _TEXT.sub("", text)
        if any(line.count(".") > _MAX_DOTS for line in keys.split("\n")):
            raise ValueError(f"a key has more than {_MAX_DOTS} dots") from None
        try:
            found = tomllib.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        refuse_extremes(found)
        return found


class _NotPlainError(ValueError):
    """A line that only `tomllib` reads."""


_MAX_NUMBER_SIGNS = 18
_TEXT = lazy_pattern(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|#[^\n]*""")
_MAX_DOTS = 100  # in one line, where they may separate the parts of a key
_TRUTH = {"true": True, "false": False}


def _parse_plain_toml(text: str) -> dict[str, Any]:
    if not text.replace("\n", "").isprintable():
        raise _NotPlainError
    whole: dict[str, Any] = {}
    table = whole
    lines = iter(text.split("\n"))
    for line in lines:
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            table = _add_table(whole, line)
            continue
        name, _, value = line.partition(" = ")
        key = _unquoted(name) if name[:1] == '"' else _bare_key(name)
        if key in table:
            raise _NotPlainError
        table[key] = _join_until_quotes(lines) if value == "'''" else _parse_plain_value(value)
    return whole


def _bare_key(name: str) -> str:
    if name.isascii() and name.replace("-", "_").isidentifier():
        return name
    raise _NotPlainError


def _unquoted(value: str) -> str:
    quote, inner = value[:1], value[1:-1]
    if not value[1:].endswith(quote) or quote in inner or (quote == '"' and "\\" in inner):
        raise _NotPlainError
    return inner


def _add_table(whole: dict[str, Any], line: str) -> dict[str, Any]:
    """Return a new table; one that is there already may only be a list of them."""
    is_listed = line.startswith("[[") and line.endswith("]]")
    *outer, name = (line[2:-2] if is_listed else line[1:-1]).split(".")
    if len(outer) >= MAX_DEPTH:
        raise _NotPlainError
    within, made = whole, dict[str, Any]()
    for part in outer:
        within = within.setdefault(_bare_key(part), {})
        if not isinstance(within, dict):
            raise _NotPlainError
    first: Any = [] if is_listed else made
    known = within.setdefault(_bare_key(name), first)
    if line[-1] != "]" or not (known is first or (is_listed and isinstance(known, list))):
        raise _NotPlainError
    if is_listed:
        known.append(made)
    return made


def _join_until_quotes(lines: Iterator[str]) -> str:
    """Return the lines of a text up to the line that ends it."""
    found: list[str] = []
    for line in lines:
        if "'''" in line:
            if line == "'''":
                return "".join(found)
            break
        found.append(f"{line}\n")
    raise _NotPlainError


def _parse_plain_value(value: str) -> str | float | bool:
    if value[:1] in ("'", '"'):
        return _unquoted(value)
    if value in _TRUTH:
        return _TRUTH[value]
    whole, dot, part = value.removeprefix("-").partition(".")
    is_whole = whole.isdecimal() and (whole[0] != "0" or whole == "0")
    if not (is_whole and value.isascii() and len(value) <= _MAX_NUMBER_SIGNS):
        raise _NotPlainError
    if not dot:
        return int(value)
    if part.isdecimal():
        return float(value)
    raise _NotPlainError
