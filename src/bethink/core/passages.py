"""Passages: the parts by which a long text is searched and shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import islice

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import sentence_spans
from bethink.core.words import UNSEGMENTED

LONG_TEXT_WORDS = 120  # a longer text is searched and shown by passage
_PASSAGE_WORDS = 100  # words of a passage, about
_MIN_PASSAGE_WORDS = 40
_MAX_OVERLAP_WORDS = 20  # a last sentence up to this long also begins the next passage
_PARAGRAPH_SHARE = 0.7  # of the aim, from which the end of a paragraph ends a passage
_CHARS_PER_WORD = 12  # characters that count as a word where there are no spaces
_SHORT_CHARS = 2 * LONG_TEXT_WORDS  # a text this short cannot have more words
_WORD_END = lazy_pattern(r"\s+")
_PARAGRAPH_END = lazy_pattern(r"\n\s*\n")
_PART_WORDS = _PASSAGE_WORDS // 2  # of a sentence that is cut
_PART_CHARS = _PART_WORDS * _CHARS_PER_WORD
# Characters that belong to the one before, and to the one after, besides marks.
_CONTINUING = lazy_pattern(
    "[\u0e33\u0eb3\u1160-\u11ff\u200c\u200d\ud7b0-\ud7fb\uff9e\uff9f"
    "\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
_CONTINUED = lazy_pattern(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\u1100-\u115f\u200d\ua960-\ua97c"
    "\U000110bd\U000110cd\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011a84-\U00011a89"
    "\U00011d46\U00011f02]"
)
_VIRAMA_CLASS = 9  # joins two consonants


class _Piece(NamedTuple):
    """A stretch of text that no passage divides: a sentence, or part of a very long one."""

    start: int
    end: int
    words: int
    ends_paragraph: bool


def count_words(text: str) -> int:
    """How long a text is in words; without spaces, in what would be as many characters."""
    unsegmented = 0 if text.isascii() else sum(map(len, UNSEGMENTED.findall(text)))
    return max(len(text.split()), -(-len(text) // _CHARS_PER_WORD), -(-unsegmented // 2))


def split_passages(text: str) -> tuple[tuple[int, int], ...]:
    """Where the passages of a long text start and end; empty for a text that is not long.

    Passages of some 100 words follow each other without a gap, end with a sentence where
    they can, and begin with the last sentence of the one before if that is short.
    """
    if len(text) <= _SHORT_CHARS or (total := count_words(text)) <= LONG_TEXT_WORDS:
        return ()
    aim = total / -(-total // _PASSAGE_WORDS)
    groups: list[list[_Piece]] = [[]]
    words = 0
    for piece in _pieces(text):
        if words and _ends_passage(groups[-1][-1], words, piece.words, aim):
            groups.append([])
            words = 0
        groups[-1].append(piece)
        words += piece.words
    if len(groups) > 2 and words < _MIN_PASSAGE_WORDS // 2:
        rest = groups.pop()
        groups[-1] += rest
    return tuple(
        (_overlap_start(before) if before else group[0].start, group[-1].end)
        for before, group in zip([None, *groups], groups, strict=False)
    )


def _ends_passage(last: _Piece, words: int, more: int, aim: float) -> bool:
    if words >= aim:
        return True
    if last.ends_paragraph and words >= _PARAGRAPH_SHARE * aim:
        return True
    return words >= _MIN_PASSAGE_WORDS and words + more > LONG_TEXT_WORDS


def _overlap_start(group: list[_Piece]) -> int:
    """Where the next passage starts: with the last sentence of this one, if it is short."""
    last = group[-1]
    repeats = len(group) > 1 and last.words <= _MAX_OVERLAP_WORDS and not last.ends_paragraph
    return last.start if repeats else last.end


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the sentences of a text, very long ones in parts; together they are the text."""
    start = 0
    for _, end in sentence_spans(text):
        if end == start or not _is_character_border(text, end):
            continue
        yield from _parts_of(text, start, end)
        start = end


def _parts_of(text: str, start: int, end: int) -> Iterator[_Piece]:
    """Yield a sentence, cut between words or characters where it exceeds half a passage."""
    while end - start > _PART_CHARS or count_words(text[start:end]) > _PART_WORDS:
        cut = _cut_place(text, start, min(start + _PART_CHARS, end))
        if cut >= end:
            break
        yield _Piece(start, cut, count_words(text[start:cut]), ends_paragraph=False)
        start = cut
    ends_paragraph = _PARAGRAPH_END.search(text, max(start, end - 80), end) is not None
    yield _Piece(start, end, count_words(text[start:end]), ends_paragraph)


def _cut_place(text: str, start: int, most: int) -> int:
    """The last place between two words up to which a part is not too long; else any."""
    places = [mark.end() for mark in islice(_WORD_END.finditer(text, start + 1, most), _PART_WORDS)]
    for place in reversed(places):
        if count_words(text[start:place]) <= _PART_WORDS and _is_character_border(text, place):
            return place
    place = min(start + _PASSAGE_WORDS, most)
    while place < len(text) and not _is_character_border(text, place):
        place += 1
    return place


def _is_character_border(text: str, at: int) -> bool:
    """Whether no reader's character is divided there; in doubt it says no.

    See Unicode's annex 29 on grapheme clusters.
    """
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before.isascii() and after.isascii():
        return before != "\r" or after != "\n"
    return not (
        unicodedata.category(after)[0] == "M"
        or _CONTINUING.match(after)
        or _CONTINUED.match(before)
        or unicodedata.combining(before) == _VIRAMA_CLASS
    )
