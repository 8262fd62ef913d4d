"""Adds or takes out one table of a TOML file and leaves every other byte as it was."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.errors import BadSetting

Keys = Sequence[str]
_HEADER = re.compile(r"^[ \t]*\[")
_REMARK = re.compile(r"^\s*(?:#|$)")


def parsed(text: str) -> dict[str, Any]:
    """What the text means; BadSetting where it is not TOML."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"it is not valid TOML: {error}") from error


def with_table(text: str, keys: Keys, value: Mapping[str, Any]) -> str:
    """The text with the table at its end, in place of one that was there."""
    meant = parsed(text)
    kept = without_table(text, keys)
    newline = "\r\n" if "\r\n" in text else "\n"
    body = newline.join([f"[{'.'.join(keys)}]", *_lines(value)]) + newline
    gap = "" if not kept or kept.endswith("\n") else newline
    blank = newline if kept.strip() else ""
    return _checked(f"{kept}{gap}{blank}{body}", _set(meant, keys, value))


def without_table(text: str, keys: Keys) -> str:
    """The text without the table and those below it."""
    meant = parsed(text)
    if _look_up(meant, keys) is None:
        return text
    name = r"\s*\.\s*".join(rf"(?:{re.escape(key)}|[\"']{re.escape(key)}[\"'])" for key in keys)
    ours = re.compile(rf"^[ \t]*\[\s*{name}\s*(?:\.[^\]]*)?\]")
    kept: list[str] = []
    inside = False
    # Remarks and blank lines after the last line of ours belong to what comes next.
    after: list[str] = []
    for line in re.split(r"(?<=\n)", text):
        if _HEADER.match(line):
            kept += after
            after = []
            inside = ours.match(line) is not None
            if inside and kept and not kept[-1].strip():
                kept.pop()  # the blank line before it came with it
        if not inside:
            kept.append(line)
        elif _REMARK.match(line):
            after.append(line)
        else:
            after = []
    kept += after
    return _checked("".join(kept), _unset(meant, keys))


def _lines(value: Mapping[str, Any]) -> list[str]:
    # JSON writes texts and lists of texts the way TOML does.
    return [f"{key} = {json.dumps(part, ensure_ascii=False)}" for key, part in value.items()]


def _checked(text: str, wanted: Mapping[str, Any]) -> str:
    try:
        same = parsed(text) == wanted
    except BadSetting:
        same = False
    if not same:
        raise BadSetting("it cannot be changed safely", remedy="edit the file by hand")
    return text


def _look_up(meant: Any, keys: Keys) -> Any:
    for key in keys:
        if not isinstance(meant, dict) or key not in meant:
            return None
        meant = meant[key]
    return meant


def _set(meant: Any, keys: Keys, value: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(meant, dict):
        raise BadSetting(f"what holds {keys[0]!r} is no table")
    rest = keys[1:]
    return {**meant, keys[0]: _set(meant.get(keys[0], {}), rest, value) if rest else dict(value)}


def _unset(meant: dict[str, Any], keys: Keys) -> dict[str, Any]:
    if len(keys) == 1:
        return {key: kept for key, kept in meant.items() if key != keys[0]}
    inner = _unset(meant[keys[0]], keys[1:])
    # A table that was only written as a part of ours goes with it.
    return {**meant, keys[0]: inner} if inner else _without(meant, keys[0])


def _without(meant: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: kept for name, kept in meant.items() if name != key}
