"""Set or remove one value of a JSON or TOML file and keep every other byte.

A JSON text is parsed twice: by the standard library, which validates it, and by a
scanner for the positions; both see comments and trailing commas as blanks. Of TOML one table
is added or removed, as lines: tomlkit counts the comments after a table as the table's own,
and would remove a user's comment with it (docs/decisions/0020). After a change the parsed
value is checked, or the change is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from bethink.core import toml
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting

Keys = Sequence[str]
_WHITESPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_DEFAULT_INDENT = "  "
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[\]}])')
_NOT_NEWLINE = re.compile(r"[^\r\n]")
_REMARK_BEHIND = re.compile(r"(?:[ \t,]|/\*[\s\S]*?\*/)*(//[^\r\n]*)?")
_HEADER = re.compile(r"^[ \t]*\[")
_COMMENT_OR_BLANK = re.compile(r"^\s*(?:#|$)")


class _Member(NamedTuple):
    """A member of an object: its key, and the positions of key and value."""

    key: str
    start: int
    value: int
    end: int


class _Object(NamedTuple):
    """An object in the text: the positions of its braces, and its members."""

    start: int
    end: int
    members: tuple[_Member, ...]

    def named(self, key: str) -> _Member | None:
        return next((member for member in self.members if member.key == key), None)


def without_comments(text: str) -> str:
    """Return the text with blanks for comments and trailing commas; positions stay."""
    return _STRING_OR_LAST_COMMA.sub(_blank_unless_string, _blank_comments(text))


def _blank_comments(text: str) -> str:
    return _STRING_OR_COMMENT.sub(_blank_unless_string, text)


def _blank_unless_string(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else _NOT_NEWLINE.sub(" ", found[0])


def parse_json(text: str) -> object:
    """Parse the text, in which there may be comments; an empty text is an empty object.

    Raises BadSetting where it is not JSON, or has a duplicate key.
    """
    body = without_comments(text).removeprefix("\ufeff")
    if not body.strip():
        return {}
    try:
        return json.loads(
            body, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant
        )
    except RecursionError as error:
        raise BadSetting("it is nested too deeply") from error
    except ValueError as error:
        raise BadSetting(f"it is not plain JSON: {error}") from error


def _reject_duplicate_keys(pairs: list[tuple[str, object]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def look_up(value: object, keys: Keys) -> object:
    """Return the value under a path of keys; None where there is none."""
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def set_key(text: str, keys: Keys, value: object) -> str:
    """Return the text with the value under that path, missing parents created."""
    parsed = parse_json(text)
    if not text.removeprefix("\ufeff").strip():
        document = _nested(keys, value)
        return f"{text}{json.dumps(document, indent=2, ensure_ascii=False)}\n"
    expected = _with_value(parsed, keys, value)
    new = _insert_value(text, keys, value)
    return _require_equal(new, expected)


def remove_key(text: str, keys: Keys) -> str:
    """Return the text without that path of keys; its parents stay."""
    parsed = parse_json(text)
    if look_up(parsed, keys) is None:
        return text
    plain = without_comments(text)
    inner = _locate_object(plain, keys[:-1])
    member = inner.named(keys[-1])
    if member is None:
        raise BadSetting(f"{keys[-1]} is not where it should be")
    place = inner.members.index(member)
    start = inner.members[place - 1].end if place else inner.start + 1
    if place == 0 and len(inner.members) > 1:
        # The first of several: keep the whitespace before it for the next one.
        start, end = member.start, inner.members[1].start
    else:
        end = inner.end - 1 if len(inner.members) == 1 else member.end
    new = text[:start] + text[end:]
    around = (slice(start, member.start), slice(member.end, end))
    if any(_blank_comments(text)[part] != text[part] for part in around):
        new = _remove_member(text, inner, place)
    return _require_equal(new, _without_value(parsed, keys))


def _remove_member(text: str, inner: _Object, place: int) -> str:
    """Remove a member and one comma, and keep the comments around it."""
    member, commas = inner.members[place], _blank_comments(text)
    is_last = place == len(inner.members) - 1
    comma = commas.find(",", member.end, inner.end if is_last else inner.members[place + 1].start)
    if comma >= 0:
        return text[: member.start] + text[member.end : comma] + text[comma + 1 :]
    if place:
        comma = commas.rfind(",", inner.members[place - 1].end, member.start)
        return text[:comma] + text[comma + 1 : member.start] + text[member.end :]
    return text[: member.start] + text[member.end :]


def _require_equal(text: str, expected: object, parse: Callable[[str], object] = parse_json) -> str:
    try:
        same = parse(text) == expected
    except BadSetting:
        same = False
    if not same:
        raise BadSetting("cannot change it safely", remedy="edit the file by hand")
    return text


def _nested(keys: Keys, value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _with_value(parsed: object, keys: Keys, value: object) -> object:
    if not isinstance(parsed, dict):
        raise BadSetting(f"the parent of {keys[0]!r} holds no keys")
    rest = keys[1:]
    inner = _with_value(parsed.get(keys[0], {}), rest, value) if rest else value
    return {**parsed, keys[0]: inner}


def _without_value(parsed: object, keys: Keys, *, with_empty: bool = False) -> Json:
    """Return the parsed value without a path of keys, or with its parents that are empty then."""
    assert isinstance(parsed, dict)
    others = {key: kept for key, kept in parsed.items() if key != keys[0]}
    if len(keys) == 1:
        return others
    inner = _without_value(parsed[keys[0]], keys[1:], with_empty=with_empty)
    return others if with_empty and not inner else {**parsed, keys[0]: inner}


def _insert_value(text: str, keys: Keys, value: object) -> str:
    """Replace the existing value, or append a last member."""
    plain = without_comments(text)
    depth = 0
    found = _locate_object(plain, ())
    while depth < len(keys) - 1 and (member := found.named(keys[depth])) is not None:
        found = _scan_object(plain, member.value)
        depth += 1
    member = found.named(keys[depth])
    newline, unit = _detect_style(text)
    if member is not None:
        body = _format_value_at(value, plain, member.start, newline, unit)
        return text[: member.value] + body + text[member.end :]
    rest = _nested(keys[depth + 1 :], value)
    key = json.dumps(keys[depth], ensure_ascii=False)
    if found.members:
        last = found.members[-1]
        line = plain.rfind("\n", 0, last.start) + 1
        is_first_on_line = not plain[line : last.start].strip(" \t")
        gap = newline + plain[line : last.start] if is_first_on_line else " "
        body = _format_value_at(rest, plain, last.start, newline, unit)
        return _append_member(text, last.end, f"{gap}{key}: {body}")
    outer = _indent_at(text, found.start)
    inner = outer + unit
    body = _dump_indented(rest, inner, newline, unit)
    comments = text[found.start + 1 : found.end - 1].rstrip()
    filled = f"{{{comments}{newline}{inner}{key}: {body}{newline}{outer}}}"
    return text[: found.start] + filled + text[found.end :]


def _append_member(text: str, at: int, member: str) -> str:
    """Insert after the last member, and after a comment on the rest of its line."""
    found = _REMARK_BEHIND.match(text, at)
    end = found.end() if found else at
    commas = _blank_comments(text)[at:end]
    if commas == text[at:end]:
        return f"{text[:at]},{member}{text[at:]}"
    comma = "" if "," in commas else ","
    newline = "\n" if found and found[1] and member[0] not in "\r\n" else ""
    return f"{text[:at]}{comma}{text[at:end]}{newline}{member}{text[end:]}"


def _format_value_at(value: object, text: str, at: int, newline: str, unit: str) -> str:
    """Format the value as JSON: on several lines where its neighbour begins a line."""
    line = text.rfind("\n", 0, at) + 1
    if text[line:at].strip(" \t"):
        return json.dumps(value, ensure_ascii=False)
    return _dump_indented(value, text[line:at], newline, unit)


def _dump_indented(value: object, indent: str, newline: str, unit: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline}{indent}".join(lines)


def _indent_at(text: str, at: int) -> str:
    """The leading whitespace of the line at this position."""
    line = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]*").match(text, line)
    return found[0] if found else ""


def _detect_style(text: str) -> tuple[str, str]:
    """Detect the line ending and the indentation of the file."""
    found = re.search(r"\r?\n([ \t]+)\S", text)
    newline = "\r\n" if "\r\n" in text else "\n"
    return newline, found[1] if found else _DEFAULT_INDENT


def _locate_object(text: str, keys: Keys) -> _Object:
    start = 1 if text.startswith("\ufeff") else 0
    found = _scan_object(text, _skip_whitespace(text, start))
    for key in keys:
        member = found.named(key)
        if member is None:
            raise BadSetting(f"{key} is not where it should be")
        found = _scan_object(text, member.value)
    return found


def _skip_whitespace(text: str, at: int) -> int:
    blank = _WHITESPACE.match(text, at)
    return blank.end() if blank else at


def _scan_object(text: str, at: int) -> _Object:
    """Scan the object that begins here; the text is known to be JSON."""
    if text[at : at + 1] != "{":
        raise BadSetting("expected an object")
    members: list[_Member] = []
    place = _skip_whitespace(text, at + 1)
    while text[place] != "}":
        key, end = _DECODER.raw_decode(text, place)
        value = _skip_whitespace(text, _skip_whitespace(text, end) + 1)
        _, after = _DECODER.raw_decode(text, value)
        members.append(_Member(key, place, value, after))
        place = _skip_whitespace(text, after)
        if text[place] == ",":
            place = _skip_whitespace(text, place + 1)
    return _Object(at, place + 1, tuple(members))


def parse_toml(text: str) -> Json:
    """Parse the text; raise BadSetting where it is not TOML."""
    try:
        return toml.parse_toml(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise BadSetting(f"it is not valid TOML: {error}") from error


def set_table(text: str, keys: Keys, value: Mapping[str, object]) -> str:
    """Return the text with the table at its end, replacing an existing one."""
    meant = parse_toml(text)
    kept = remove_table(text, keys)
    newline = "\r\n" if "\r\n" in text else "\n"
    body = newline.join([f"[{'.'.join(keys)}]", *_format_lines(value)]) + newline
    gap = "" if not kept or kept.endswith("\n") else newline
    blank = newline if kept.strip() else ""
    return _require_equal(
        f"{kept}{gap}{blank}{body}", _with_value(meant, keys, dict(value)), parse_toml
    )


def remove_table(text: str, keys: Keys) -> str:
    """Return the text without the table and its subtables."""
    meant = parse_toml(text)
    if look_up(meant, keys) is None:
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
    # A table that was only written as a part of ours goes with it.
    return _require_equal("".join(kept), _without_value(meant, keys, with_empty=True), parse_toml)


def _format_lines(value: Mapping[str, object]) -> list[str]:
    # JSON writes texts and lists of texts the way TOML does.
    return [f"{key} = {json.dumps(part, ensure_ascii=False)}" for key, part in value.items()]
