"""The head of a Markdown note: the plain part of YAML that people write there."""

from __future__ import annotations

import re
from typing import NamedTuple

_HEAD = re.compile(r"\A---[ \t]*\n(?P<head>(?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_MOST = 64 * 1024  # characters: a head is short
_KEY = re.compile(r"(?P<key>[^\s:#'\"\[\]{}-][^:\n]{0,99}?)[ \t]*:(?:[ \t]+(?P<value>.*))?")
_ENTRY = re.compile(r"[ \t]*-[ \t]+(?P<value>.+)")
_COMMENT = re.compile(r"[ \t]#.*\Z")

Value = str | list[str]


class Note(NamedTuple):
    """A note's head, its keys in small letters, how many lines that is, and what stands below."""

    head: dict[str, Value]
    body: str
    above: int = 0


def note_of(text: str) -> Note:
    """The note; without a head where it has none.

    Keys with a text, a list in brackets, or a list of lines with dashes; whatever else
    YAML knows (blocks, maps inside, references) is passed over.
    """
    found = _HEAD.match(text[:_MOST]) if text.startswith("---") else None
    if found is None:
        return Note({}, text)
    return Note(_keys(found["head"]), text[found.end() :], found[0].count("\n"))


def _keys(head: str) -> dict[str, Value]:
    keys: dict[str, Value] = {}
    under = ""
    for line in head.splitlines():
        entry = _ENTRY.fullmatch(line)
        key = _KEY.fullmatch(line)
        if entry is not None and under:
            listed = keys.setdefault(under, [])
            if isinstance(listed, list):
                listed.append(_plain(entry["value"]))
        elif key is not None:
            under = key["key"].strip().lower()
            if (key["value"] or "").strip():
                keys[under] = _read(key["value"].strip())
    return {key: value for key, value in keys.items() if value}


def _read(value: str) -> Value:
    if value.startswith("[") and value.rstrip().endswith("]"):
        parts = value.strip()[1:-1].split(",")
        return [_plain(part) for part in parts if part.strip()]
    return _plain(value)


def _plain(value: str) -> str:
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return _COMMENT.sub("", text)
