"""Splits a short text into a vocabulary's pieces, without loading a tokenizer library.

Byte-pair merging in the SentencePiece manner: every character is a piece, and the
two neighbours whose union comes first in the vocabulary become one, until no two
fit. A command that embeds one question needs this for some hundred characters;
starting the full tokenizer for it would cost more than all the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from recollect.errors import ModelError

SPACE = "▁"
_NEVER = 1 << 62
_MOST_KNOWN, _LONGEST_KNOWN = 20_000, 40


class Bpe:
    """The pieces of a text, by a vocabulary whose ids rank the merges.

    It relies on three facts of such a vocabulary: no piece has a space after its
    first character unless it is all spaces; runs of spaces merge after everything
    else; of two ways to make the same piece the one with the lower ids goes first.
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._space_runs = len(vocabulary)
        # The control and byte pieces come first and are never the result of a merge.
        self._first_merged = vocabulary["<0xFF>"] + 1
        self._known: dict[str, tuple[str, ...]] = {}

    def encode(self, text: str) -> list[int]:
        """The ids of the text's pieces."""
        vocabulary = self._vocabulary
        return [vocabulary[symbol] for symbol in self._symbols(text)]

    def _symbols(self, text: str) -> Iterator[str]:
        """Word by word, each with the space before it; spaces left over are joined last."""
        spaces: list[str] = []
        for word in text.replace(" ", SPACE).split(SPACE) if text else ():
            first, *rest = self._word(word)
            if first == SPACE:
                spaces.append(first)
            if rest or first != SPACE:
                yield from self._merge(spaces)
                spaces = []
                yield from rest if first == SPACE else (first, *rest)
        yield from self._merge(spaces)

    def _word(self, word: str) -> tuple[str, ...]:
        """The symbols of a word after its space; most words come again and again."""
        known = self._known.get(word)
        if known is None:
            known = tuple(self._merge([SPACE, *self._spell(word)]))
            if len(self._known) < _MOST_KNOWN and len(word) <= _LONGEST_KNOWN:
                self._known[word] = known
        return known

    def _spell(self, word: str) -> Iterator[str]:
        for character in word:
            if character in self._vocabulary:
                yield character
            else:
                yield from (f"<0x{byte:02X}>" for byte in character.encode())

    def _merge(self, symbols: list[str]) -> list[str]:
        order = [self._rank(left, right) for left, right in pairwise(symbols)]
        while order and (best := min(order)) < _NEVER:
            at = order.index(best)
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
            del order[at]
            if at:
                order[at - 1] = self._rank(symbols[at - 1], symbols[at])
            if at < len(order):
                order[at] = self._rank(symbols[at], symbols[at + 1])
        return symbols

    def _rank(self, left: str, right: str) -> int:
        merged = self._vocabulary.get(left + right, 0)
        if merged < self._first_merged:
            return _NEVER
        if right[0] == SPACE:
            merged += self._space_runs
        return merged << 32 | self._vocabulary[left] << 16 | self._vocabulary[right]


def read_vocabulary(path: Path) -> dict[str, int]:
    """The vocabulary of a tokenizer file, without reading its (longer) list of merges."""
    try:
        raw = path.read_bytes()
        start = raw.index(b'"vocab"')
        text = raw[start : raw.index(b'"merges"', start)].decode()
        vocabulary, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is not a tokenizer file we can read: {error}") from error
    return dict(vocabulary)
