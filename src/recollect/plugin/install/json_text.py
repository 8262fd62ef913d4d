"""Sets or takes out one key of a JSON file and leaves every other byte as it was.

The text is parsed twice: by the standard library, which says whether it is JSON at all, and
by a scan for where things stand. After a change it must mean what was meant, or it is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from recollect.errors import BadSetting

Keys = Sequence[str]
_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN = re.compile(r"[^\s,\[\]{}\"]+")
_UNIT = "  "


class _Member(NamedTuple):
    """One member of an object: its key, and where key and value stand."""

    key: str
    start: int
    value: int
    end: int


class _Object(NamedTuple):
    """An object in the text: where its braces stand, and its members."""

    start: int
    end: int
    members: tuple[_Member, ...]

    def named(self, key: str) -> _Member | None:
        return next((member for member in self.members if member.key == key), None)


def parsed(text: str) -> Any:
    """What the text means; an empty text is an empty object. BadSetting where it is not
    plain JSON, or names a key twice."""
    body = text.removeprefix("\ufeff")
    if not body.strip():
        return {}
    try:
        return json.loads(body, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise BadSetting("it is nested too deeply") from error
    except ValueError as error:
        raise BadSetting(f"it is not plain JSON: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def look_up(value: Any, keys: Keys) -> Any:
    """What stands under a path of keys; None where nothing does."""
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def with_key(text: str, keys: Keys, value: Any) -> str:
    """The text with the value under that path of keys, its missing parents made."""
    meant = parsed(text)
    if not text.removeprefix("\ufeff").strip():
        whole = _nested(keys, value)
        return f"{text}{json.dumps(whole, indent=2, ensure_ascii=False)}\n"
    wanted = _set(meant, keys, value)
    new = _written(text, keys, value)
    return _checked(new, wanted)


def without_key(text: str, keys: Keys) -> str:
    """The text without that path of keys; its parents stay."""
    meant = parsed(text)
    if look_up(meant, keys) is None:
        return text
    inner = _scan(text, keys[:-1])
    member = inner.named(keys[-1])
    if member is None:
        raise BadSetting(f"{keys[-1]} is not where it should be")
    place = inner.members.index(member)
    start = inner.members[place - 1].end if place else inner.start + 1
    if place == 0 and len(inner.members) > 1:
        # The first of several: what stood before it stands before the next one.
        start, end = member.start, inner.members[1].start
    else:
        end = inner.end - 1 if len(inner.members) == 1 else member.end
    return _checked(text[:start] + text[end:], _unset(meant, keys))


def _checked(text: str, wanted: Any) -> str:
    if parsed(text) != wanted:
        raise BadSetting("it cannot be changed safely", remedy="edit the file by hand")
    return text


def _nested(keys: Keys, value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _set(meant: Any, keys: Keys, value: Any) -> Any:
    if not isinstance(meant, dict):
        raise BadSetting(f"what holds {keys[0]!r} is no object")
    rest = keys[1:]
    inner = _set(meant.get(keys[0], {}), rest, value) if rest else value
    return {**meant, keys[0]: inner}


def _unset(meant: Any, keys: Keys) -> Any:
    if len(keys) == 1:
        return {key: kept for key, kept in meant.items() if key != keys[0]}
    return {**meant, keys[0]: _unset(meant[keys[0]], keys[1:])}


def _written(text: str, keys: Keys, value: Any) -> str:
    """With the value in place of the one that is there, or as a last member."""
    depth = 0
    found = _scan(text, ())
    while depth < len(keys) - 1 and (member := found.named(keys[depth])) is not None:
        found = _object_at(text, member.value)
        depth += 1
    member = found.named(keys[depth])
    newline, unit = _style(text)
    if member is not None:
        body = _laid_out(value, text, member.start, newline, unit)
        return text[: member.value] + body + text[member.end :]
    rest = _nested(keys[depth + 1 :], value)
    key = json.dumps(keys[depth], ensure_ascii=False)
    if found.members:
        last = found.members[-1]
        before = found.members[-2].end if len(found.members) > 1 else found.start + 1
        gap = text[before : last.start].partition(",")[2] if len(found.members) > 1 else ""
        gap = gap or text[found.start + 1 : found.members[0].start]
        body = _laid_out(rest, text, last.start, newline, unit)
        return f"{text[: last.end]},{gap}{key}: {body}{text[last.end :]}"
    outer = _indent_at(text, found.start)
    inner = outer + unit
    body = _shifted(rest, inner, newline, unit)
    filled = f"{{{newline}{inner}{key}: {body}{newline}{outer}}}"
    return text[: found.start] + filled + text[found.end :]


def _laid_out(value: Any, text: str, at: int, newline: str, unit: str) -> str:
    """The value as JSON: on lines of its own where its neighbour begins a line."""
    line = text.rfind("\n", 0, at) + 1
    if text[line:at].strip(" \t"):
        return json.dumps(value, ensure_ascii=False)
    return _shifted(value, text[line:at], newline, unit)


def _shifted(value: Any, indent: str, newline: str, unit: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline}{indent}".join(lines)


def _indent_at(text: str, at: int) -> str:
    """The blanks that the line of this place begins with."""
    line = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]*").match(text, line)
    return found[0] if found else ""


def _style(text: str) -> tuple[str, str]:
    """How the file ends its lines and how far it indents."""
    found = re.search(r"\r?\n([ \t]+)\S", text)
    newline = "\r\n" if "\r\n" in text else "\n"
    return newline, found[1] if found else _UNIT


def _scan(text: str, keys: Keys) -> _Object:
    start = 1 if text.startswith("\ufeff") else 0
    found = _object_at(text, _skip(text, start))
    for key in keys:
        member = found.named(key)
        if member is None:
            raise BadSetting(f"{key} is not where it should be")
        found = _object_at(text, member.value)
    return found


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _object_at(text: str, at: int) -> _Object:
    """The object that begins here; the text is known to be JSON."""
    if text[at : at + 1] != "{":
        raise BadSetting("what should be an object is none")
    members: list[_Member] = []
    place = _skip(text, at + 1)
    while text[place] != "}":
        end = _string_end(text, place)
        key: str = json.loads(text[place:end])
        value = _skip(text, _skip(text, end) + 1)
        after = _value_end(text, value)
        members.append(_Member(key, place, value, after))
        place = _skip(text, after)
        if text[place] == ",":
            place = _skip(text, place + 1)
    return _Object(at, place + 1, tuple(members))


def _string_end(text: str, at: int) -> int:
    found = _STRING.match(text, at)
    if found is None:
        raise BadSetting("a key is not where it should be")
    return found.end()


def _value_end(text: str, at: int) -> int:
    """Where the value that begins here ends: by counting brackets outside of strings."""
    if text[at] == '"':
        return _string_end(text, at)
    if text[at] not in "[{":
        plain = _PLAIN.match(text, at)
        return plain.end() if plain else at + 1
    depth, place = 0, at
    while True:
        sign = text[place]
        if sign == '"':
            place = _string_end(text, place)
            continue
        depth += (sign in "[{") - (sign in "]}")
        place += 1
        if depth == 0:
            return place
