"""Counts tokens without a model, and rather too many than too few."""

from __future__ import annotations

import re

# A run with a digit in it (a code, an id, a number) goes by the character, a word by pieces
# of three letters, every sign by itself, other scripts by the byte.
_CODE = re.compile(r"[A-Za-z]{0,64}\d[A-Za-z0-9]*")
_PIECE = re.compile(r"[A-Za-z][a-z]{0,2}|[^\w\s]|_|\n", re.ASCII)


def tokens_at_most(text: str) -> int:
    """More tokens than common tokenizers make of the text."""
    codes = sum(len(run) for run in _CODE.findall(text))
    words = _CODE.sub(" ", text)
    if words.isascii():
        return codes + len(_PIECE.findall(words))
    ascii_only = words.encode("ascii", "ignore").decode()
    others = len(words.encode("utf-8", "replace")) - len(ascii_only)
    return codes + others + len(_PIECE.findall(ascii_only))
