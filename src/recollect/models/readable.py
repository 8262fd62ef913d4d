"""Refuses what no tokenizer and no server can read."""

from __future__ import annotations

from recollect.errors import BadText


def readable(text: str) -> str:
    """The text, unless it holds half a character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadText(
            f"the text holds a lone surrogate at position {error.start}", remedy="remove it"
        ) from error
    return text
