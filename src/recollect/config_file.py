"""Changes one key of a flat TOML file and leaves every other line as it was."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from recollect.errors import BadSetting
from recollect.places import make_private_folder
from recollect.whole_file import replace_whole


def read_table(path: Path) -> dict[str, Any]:
    """The file's content; BadSetting says where it is not TOML."""
    return _parse(_read(path), path)


def write_key(path: Path, key: str, value: str | int | bool | None, *, keep_mode: bool) -> None:
    """Sets ``key``, or takes it out where ``value`` is None.

    The file is replaced in one step, so that nobody ever reads half of it. It is the
    owner's alone (0600), unless ``keep_mode`` and it was there before.
    """
    # A linked file is a choice of the user's: the target changes, the link stays.
    real = Path(os.path.realpath(path))
    old = _read(real) if real.exists() else ""
    wanted = {name: kept for name, kept in _parse(old, path).items() if name != key}
    if value is not None:
        wanted[key] = value
    new = _edit(old, key, value)
    if not _holds(new, wanted):
        raise BadSetting(f"{path}: {key} cannot be changed safely", remedy="edit the file by hand")
    mode = real.stat().st_mode & 0o777 if keep_mode and real.exists() else 0o600
    _replace(real, new, mode)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise BadSetting(f"{path}: not UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror}") from error


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{path}: not valid TOML: {error}") from error


def _holds(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _edit(text: str, key: str, value: str | int | bool | None) -> str:
    lines = text.split("\n")
    # Keys after a [table] belong to the table, so ours stand before the first one.
    top = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    assigned = re.compile(rf'\s*(?:{key}|"{key}"|\'{key}\')\s*=')
    at = next((at for at in range(top) if assigned.match(lines[at])), None)
    ending = "\r" if lines[0].endswith("\r") else ""
    if value is None:
        return text if at is None else "\n".join(lines[:at] + lines[at + 1 :])
    assignment = f"{key} = {_literal(value)}"
    if at is not None:
        lines[at] = assignment + _comment(lines[at])
    elif top < len(lines):
        lines.insert(top, assignment + ending)
    else:
        lines = [*(lines if lines[-1] else lines[:-1]), assignment + ending, ""]
    return "\n".join(lines)


def _comment(line: str) -> str:
    """What follows the value on its line: spaces and a comment, the line's ending."""
    for found in re.finditer(r"\s*#", line):
        try:
            tomllib.loads(line[: found.start()])
        except tomllib.TOMLDecodeError:
            continue  # this "#" stands inside the value
        return line[found.start() :]
    return "\r" if line.endswith("\r") else ""


def _literal(value: str | int | bool) -> str:
    # JSON writes printable text, whole numbers and booleans the way TOML does.
    return json.dumps(value, ensure_ascii=False)


def _replace(path: Path, text: str, mode: int) -> None:
    try:
        make_private_folder(path.parent)
        replace_whole(path, text.encode(), mode=mode)
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror}") from error
