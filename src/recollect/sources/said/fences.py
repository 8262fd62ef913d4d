"""Finds what Recollect itself has quoted in a text: whole fences, and pieces of broken ones."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(r"<<([a-z][a-z -]{0,30}) ([0-9a-f]{16})>>")
_HEAD = re.compile(r"^[ \t>*-]{0,8}\[([0-9a-f]{16}) \d{1,4}\].*$", re.MULTILINE)
_RULE = re.compile(
    r"^.{0,200}Between (?:the lines with the code|<<NAME) [0-9a-f]{16}.*$", re.MULTILINE
)


class _Fence(NamedTuple):
    """Where a fence stands in a text, and where what it quotes does."""

    start: int
    body: int
    body_end: int
    end: int
    whole: bool


def fenced_texts(text: str) -> list[str]:
    """What stands inside the fences of a text, without the lines that are ours."""
    return [
        _HEAD.sub("", text[fence.body : fence.body_end]).strip()
        for fence in _fences(text)
        if fence.whole
    ]


def without_fences(text: str) -> str:
    """A text without what is quoted in fences of ours.

    A fence that begins and does not end reaches to the end of the text, one that ends and
    did not begin to its beginning: who quotes a part of one has not said it either.
    """
    if not (_MARK.search(text) or _HEAD.search(text) or _RULE.search(text)):
        return text
    kept, place = [], 0
    for fence in _fences(text):
        kept.append(text[place : fence.start])
        place = fence.end
    kept.append(text[place:])
    return _without_pieces(_RULE.sub("", "".join(kept))).strip()


def _fences(text: str) -> list[_Fence]:
    """The fences of a text in order; a mark inside one belongs to what it quotes."""
    found: list[_Fence] = []
    opened: re.Match[str] | None = None
    for mark in _MARK.finditer(text):
        if mark[1] != "end":
            opened = opened or mark
        elif opened is None:
            if not found:
                found.append(_Fence(0, 0, mark.start(), mark.end(), whole=False))
        elif mark[2] == opened[2]:
            fence = _Fence(opened.start(), opened.end(), mark.start(), mark.end(), whole=True)
            found.append(fence)
            opened = None
    if opened is not None:
        found.append(_Fence(opened.start(), opened.end(), len(text), len(text), whole=False))
    return found


def _without_pieces(text: str) -> str:
    """Without the heads of entries that were quoted alone, and the paragraph below each."""
    kept, place = [], 0
    for head in _HEAD.finditer(text):
        if head.start() < place:
            continue
        kept.append(text[place : head.start()])
        gap = text.find("\n\n", head.end())
        place = len(text) if gap < 0 else gap
    kept.append(text[place:])
    return "".join(kept)
