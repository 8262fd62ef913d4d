"""What a host is to have: whole files of ours, or one entry in a file of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import BadSetting
from recollect.plugin.install import json_text, toml_text


class WholeFile(NamedTuple):
    """A file that is all ours."""

    path: Path
    content: bytes


class Entry(NamedTuple):
    """One value under a path of keys, in a file that holds other things too."""

    path: Path
    keys: tuple[str, ...]
    value: Mapping[str, Any]


class Wanted(NamedTuple):
    """All that is installed together: ``place`` is what it is known by, ``root`` the folder
    that nothing may lead out of, ``after`` what the user still has to do."""

    host: str
    place: Path
    root: Path
    files: tuple[WholeFile, ...] = ()
    entries: tuple[Entry, ...] = ()
    after: tuple[str, ...] = ()


class Notation(NamedTuple):
    """How a kind of file is changed as text."""

    parsed: Callable[[str], Any]
    with_entry: Callable[[str, tuple[str, ...], Any], str]
    without_entry: Callable[[str, tuple[str, ...]], str]


_NOTATIONS = {
    ".json": Notation(json_text.parsed, json_text.with_key, json_text.without_key),
    ".toml": Notation(toml_text.parsed, toml_text.with_table, toml_text.without_table),
}


def notation_of(path: Path) -> Notation:
    """How this file is written."""
    return _NOTATIONS[path.suffix]


def text_of(path: Path, content: bytes) -> str:
    """A file's text; BadSetting where it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadSetting(f"{path} is not UTF-8 text", remedy="nothing was changed") from error
