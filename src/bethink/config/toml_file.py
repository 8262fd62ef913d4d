"""Edit one key of a flat TOML file and leave every other line unchanged."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from bethink.config.paths import make_private_folder
from bethink.core.atomic_write import atomic_replace
from bethink.errors import BadSetting


def read_table(path: Path) -> dict[str, Any]:
    """Read a TOML file; raise BadSetting with the position if it is not TOML."""
    return _parse(_read_file(path), path)


def write_key(path: Path, key: str, value: str | int | bool | None, *, keep_mode: bool) -> None:
    """Set ``key``, or remove it where ``value`` is None.

    The file is replaced atomically. Its mode is 0600, unless ``keep_mode`` is set and the
    file existed before.
    """
    # A linked file is a choice of the user's: the target changes, the link stays.
    real = Path(os.path.realpath(path))
    old = _read_file(real) if real.exists() else ""
    wanted = {name: kept for name, kept in _parse(old, path).items() if name != key}
    if value is not None:
        wanted[key] = value
    new = _with_key_set(old, key, value)
    if not _parses_to(new, wanted):
        raise BadSetting(f"{path}: {key} cannot be changed safely", remedy="edit the file by hand")
    mode = real.stat().st_mode & 0o777 if keep_mode and real.exists() else 0o600
    _write_file(real, new, mode)


def _read_file(path: Path) -> str:
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


def _parses_to(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _with_key_set(text: str, key: str, value: str | int | bool | None) -> str:
    lines = text.split("\n")
    # Keys after a [table] belong to the table, so ours stand before the first one.
    top = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    assigned = re.compile(rf'\s*(?:{key}|"{key}"|\'{key}\')\s*=')
    at = next((at for at in range(top) if assigned.match(lines[at])), None)
    ending = "\r" if lines[0].endswith("\r") else ""
    if value is None:
        return text if at is None else "\n".join(lines[:at] + lines[at + 1 :])
    assignment = f"{key} = {_toml_literal(value)}"
    if at is not None:
        lines[at] = assignment + _trailing_comment(lines[at])
    elif top < len(lines):
        lines.insert(top, assignment + ending)
    else:
        lines = [*(lines if lines[-1] else lines[:-1]), assignment + ending, ""]
    return "\n".join(lines)


def _trailing_comment(line: str) -> str:
    """The text after the value on its line: spaces, a comment and the line ending."""
    for found in re.finditer(r"\s*#", line):
        try:
            tomllib.loads(line[: found.start()])
        except tomllib.TOMLDecodeError:
            continue  # this "#" stands inside the value
        return line[found.start() :]
    return "\r" if line.endswith("\r") else ""


def _toml_literal(value: str | int | bool) -> str:
    # JSON writes printable text, whole numbers and booleans the way TOML does.
    return json.dumps(value, ensure_ascii=False)


def _write_file(path: Path, text: str, mode: int) -> None:
    try:
        make_private_folder(path.parent)
        atomic_replace(path, text.encode(), mode=mode)
    except OSError as error:
        raise BadSetting(f"{path} cannot be written: {error.strerror}") from error
