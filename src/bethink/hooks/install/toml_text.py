"""Add or remove one table of a TOML file and keep every other byte."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from bethink.errors import BadSetting

Keys = Sequence[str]
_HEADER = re.compile(r"^[ \t]*\[")
_COMMENT_OR_BLANK = re.compile(r"^\s*(?:#|$)")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse the text; raise BadSetting where it is not TOML."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"it is not valid TOML: {error}") from error


def set_table(text: str, keys: Keys, value: Mapping[str, Any]) -> str:
    """Return the text with the table at its end, replacing an existing one."""
    meant = parse_toml(text)
    kept = remove_table(text, keys)
    newline = "\r\n" if "\r\n" in text else "\n"
    body = newline.join([f"[{'.'.join(keys)}]", *_format_lines(value)]) + newline
    gap = "" if not kept or kept.endswith("\n") else newline
    blank = newline if kept.strip() else ""
    return _require_equal(f"{kept}{gap}{blank}{body}", _with_value(meant, keys, value))


def remove_table(text: str, keys: Keys) -> str:
    """Return the text without the table and its subtables."""
    meant = parse_toml(text)
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
        elif _COMMENT_OR_BLANK.match(line):
            after.append(line)
        else:
            after = []
    kept += after
    return _require_equal("".join(kept), _without_value(meant, keys))


def _format_lines(value: Mapping[str, Any]) -> list[str]:
    # JSON writes texts and lists of texts the way TOML does.
    return [f"{key} = {json.dumps(part, ensure_ascii=False)}" for key, part in value.items()]


def _require_equal(text: str, expected: Mapping[str, Any]) -> str:
    try:
        same = parse_toml(text) == expected
    except BadSetting:
        same = False
    if not same:
        raise BadSetting("it cannot be changed safely", remedy="edit the file by hand")
    return text


def _look_up(parsed: Any, keys: Keys) -> Any:
    for key in keys:
        if not isinstance(parsed, dict) or key not in parsed:
            return None
        parsed = parsed[key]
    return parsed


def _with_value(parsed: Any, keys: Keys, value: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(parsed, dict):
        raise BadSetting(f"what holds {keys[0]!r} is no table")
    rest = keys[1:]
    return {
        **parsed,
        keys[0]: _with_value(parsed.get(keys[0], {}), rest, value) if rest else dict(value),
    }


def _without_value(parsed: dict[str, Any], keys: Keys) -> dict[str, Any]:
    if len(keys) == 1:
        return {key: kept for key, kept in parsed.items() if key != keys[0]}
    inner = _without_value(parsed[keys[0]], keys[1:])
    # A table that was only written as a part of ours goes with it.
    return {**parsed, keys[0]: inner} if inner else _without_key(parsed, keys[0])


def _without_key(parsed: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: kept for name, kept in parsed.items() if name != key}
