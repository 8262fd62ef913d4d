"""Our own model of names: where a text has one, and of which kind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from bethink.core.arrays import Matrix
from bethink.core.lazy import Lazy, lazy_pattern
from bethink.core.words import UNSEGMENTED
from bethink.lang.words import is_ordinary
from bethink.models.embed.encoder import ENCODER_DATA
from bethink.models.word_tagger import WordTagger, join_shapes
from bethink.ports import FoundName

NAME_WEIGHTS = "names-3.npz"
# The first word of a name of each kind has an odd tag, further ones the even tag after it.
KINDS = ("person", "company", "tool", "project", "place", "symbol")
DISTANCES = (1, 1, 1)
# Punctuation that is part of no name, between spaces and where no space is.
_CHUNK = lazy_pattern("[^\\s—–…、。，；：！？（）「」『』《》〈〉【】“”„«»‹›·‘]+")
_LEADING, _TRAILING = "\"'`([{<*=&+,;:!?)]}>^%€£|’", "\"'`.,;:!?)]}>*’|=&-([{<~^\\"
# "d'Hortense" and "Ngozi's" are two words each.
_APOSTROPHE = lazy_pattern(r"(?<=\b[^\W\d_])['’](?=\w)|(?<=\b[^\W\d_]{2})['’](?=\w\w)|['’](?=s\b)")
# After "Dr." and "St." a name goes on.
_BREAK = lazy_pattern(r"[,;:!?…\n、。，；：！？]|(?<!\b\w)(?<!\b\w\w)\.")
_CAMEL_CASE = lazy_pattern(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_GAP_SIGNS = (
    "\n", ",、，", ".!?…。！？", ":：", '"“”„«»「」《》‘', "'’", "(（[", ")）]", "`", "&+/|", "—–-",
)  # fmt: skip
_WORD_SIGNS = ("_", "/", ".", "-", "@", "#", "()<>=", ":", "'’", "+")


class NameModel:
    """Finds names in texts; the weights are read with the first. Thread-safe."""

    def __init__(self, path: Path = ENCODER_DATA / NAME_WEIGHTS) -> None:
        self._tagger = Lazy(lambda: WordTagger(path, DISTANCES))

    def find(self, text: str) -> list[FoundName]:
        """Return the names of a text in order, with kind and probability."""
        spans = split_words(text)
        if not spans:
            return []
        shares = self._tagger().tag_shares(text, spans, word_shapes(text, spans))
        return list(_read_names(text, spans, shares))


def split_words(text: str) -> list[tuple[int, int]]:
    """Return where each word starts and ends; without spaces a character is a word."""
    return [
        span for chunk in _CHUNK.finditer(text) for span in _split_chunk(chunk[0], chunk.start())
    ]


def _split_chunk(chunk: str, start: int) -> Iterator[tuple[int, int]]:
    if chunk.isalnum() and chunk.isascii():
        yield start, start + len(chunk)
        return
    at = 0
    for run in () if chunk.isascii() else UNSEGMENTED.finditer(chunk):
        yield from _split_parts(chunk[at : run.start()], start + at)
        yield from ((start + place, start + place + 1) for place in range(*run.span()))
        at = run.end()
    yield from _split_parts(chunk[at:], start + at)


def _split_parts(chunk: str, start: int) -> Iterator[tuple[int, int]]:
    at = 0
    for end, after in (*(found.span() for found in _APOSTROPHE.finditer(chunk)), (len(chunk), 0)):
        bare = chunk[at:end].lstrip(_LEADING)
        begin = start + end - len(bare)
        word = bare.rstrip(_TRAILING)
        ending = bare[len(word) :]
        closed = 2 if ending.startswith("()") else int("(" in word and ending.startswith(")"))
        if word:
            yield begin, begin + len(word) + closed
        at = after


def word_shapes(text: str, spans: list[tuple[int, int]]) -> Matrix:
    """Return how each word is written, and what stands before and after it."""
    gaps = [_gap_shape(text[end:begin]) for (_, end), (begin, _) in pairwise(spans)]
    gaps = [_gap_shape("\n" + text[: spans[0][0]]), *gaps, _gap_shape(text[spans[-1][1] :] + "\n")]
    has_capitals = bytes((not text.islower(),))
    rows = [
        _word_shape(text[begin:end]) + gaps[at] + gaps[at + 1] + has_capitals
        for at, (begin, end) in enumerate(spans)
    ]
    return join_shapes(rows, len(spans))


@lru_cache(maxsize=4_096)
def _word_shape(word: str) -> bytes:
    """Return how a word is written; words come again and again."""
    letters = any(map(str.isalpha, word))
    return bytes(
        (
            word[0].isupper(),
            letters and len(word) > 1 and word.isupper(),
            word.islower(),
            word.isalpha(),
            letters,
            word.isascii(),
            any(map(str.isdigit, word)),
            _CAMEL_CASE.search(word) is not None,
            UNSEGMENTED.match(word) is not None,
            word[0] in "@#-~/.",
            len(word) == 1,
            len(word) == 2,
            len(word) > 9,
            *(any(sign in word for sign in signs) for signs in _WORD_SIGNS),
            is_ordinary(word),
        )
    )


@lru_cache(maxsize=1_024)
def _gap_shape(gap: str) -> bytes:
    """Return what stands between two words, or around them all."""
    signs = (any(sign in gap for sign in signs) for signs in _GAP_SIGNS)
    return bytes((not gap, gap == " ", *signs))


def _read_names(text: str, spans: list[tuple[int, int]], shares: Matrix) -> Iterator[FoundName]:
    """Yield runs of words that are rather part of a name than not, up to a pause."""
    tags, named = shares.argmax(axis=1).tolist(), 1 - shares[:, 0]
    first = 0
    while first < len(tags):
        last = first + 1
        if tags[first]:
            while last < len(tags) and tags[last] and tags[last] % 2 == 0:
                if _BREAK.search(text, spans[last - 1][1], spans[last][0]):
                    break
                last += 1
            share, kind = float(named[first:last].mean()), KINDS[(tags[first] - 1) // 2]
            yield FoundName(spans[first][0], spans[last - 1][1], kind, share)
        first = last


# One for a process: its weights take a megabyte once read.
name_model = NameModel()
