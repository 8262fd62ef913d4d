"""Splits a text into word pieces, and those into sentences and windows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from recollect.errors import ModelError

# A shorter sentence ("Yes.", "e.g.") says too little and belongs to the one before.
_SHORTEST = 4
_ENDS = frozenset(".!?…")
_CLOSING = frozenset("\"')]}”’»*_")
_BREAKS = frozenset("。！？")


class Pieces(NamedTuple):
    """A text's word pieces, without the marks at its ends, and where each stands in it."""

    text: str
    ids: list[int]
    spans: list[tuple[int, int]]

    def sentence_ends(self) -> list[int]:
        """The place of the last piece of each sentence.

        A full stop ends one where a space follows: "v2.3.1" has none.
        """
        ends: list[int] = []
        start, stopped = 0, False
        last = len(self.ids) - 1
        for place, (begin, end) in enumerate(self.spans):
            piece = self.text[begin:end]
            stopped = piece in _ENDS or (stopped and piece in _CLOSING)
            gap = self.text[end : self.spans[place + 1][0]] if place < last else "\n"
            if "\n" not in gap and piece not in _BREAKS and not (stopped and gap):
                continue
            if place - start + 1 < _SHORTEST and ends:
                ends[-1] = place
            else:
                ends.append(place)
            start, stopped = place + 1, False
        return ends

    def spoken(self) -> list[int]:
        """The places of the pieces that are not punctuation alone; all, if no others."""
        places = [
            place
            for place, (begin, end) in enumerate(self.spans)
            if any(map(str.isalnum, self.text[begin:end]))
        ]
        return places or list(range(len(self.ids)))

    def locate(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """For each piece of each word the word's place and the piece's own.

        Words are looked for in their order, each after the one before if it stands
        there; a word that does not stand in the text has no pieces.
        """
        begins = [begin for begin, _ in self.spans]
        found: list[tuple[int, int]] = []
        after = 0
        for place, word in enumerate(words):
            at = self.text.find(word, after)
            at = self.text.find(word) if at < 0 else at
            if at < 0:
                continue
            after = at + len(word)
            pieces = range(bisect_left(begins, at), bisect_left(begins, after))
            found += ((place, piece) for piece in pieces)
        return found


def windows(pieces: int, ends: Sequence[int], size: int) -> list[tuple[int, int]]:
    """Cuts a row of pieces into stretches of at most ``size``, between sentences if it can.

    A cut that would leave a window less than half full goes through the sentence.
    """
    cuts = [0]
    while cuts[-1] < pieces:
        start, limit = cuts[-1], cuts[-1] + size
        between = bisect_left(ends, limit) - 1
        fits = between >= 0 and ends[between] + 1 >= start + max(1, size // 2)
        cuts.append(pieces if limit >= pieces else ends[between] + 1 if fits else limit)
    return list(pairwise(cuts))


class WordPieces:
    """A tokenizer read from a model's file, and the two marks it puts around a text."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer  # start-up time: loads 75 ms of Rust tables

        if not path.is_file():
            raise ModelError(f"the model's file {path} is missing")
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise ModelError(f"{path} is not a tokenizer: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # "[SEP]" in somebody's text is text, not an instruction to the tokenizer.
        self._tokenizer.encode_special_tokens = True
        around = self._tokenizer.encode("").ids
        if len(around) != 2:
            raise ModelError(f"{path} is not the tokenizer of a BERT encoder")
        self.first, self.last = around

    def __call__(self, text: str) -> Pieces:
        # One text at a time: the batch calls start a pool of threads that does not
        # survive a fork and says so on stderr.
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return Pieces(text, found.ids, found.offsets)
