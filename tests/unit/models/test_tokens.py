"""Tokens as they are counted."""

from __future__ import annotations

from bethink.models.embed.encoder import count_tokens


def test_a_text_without_pieces_has_one_token() -> None:
    """As a number: a true is stored as 1, and the memory would not match its hash."""
    assert repr(count_tokens("\ufffd")) == "1"
    assert repr(count_tokens("")) == "0"
