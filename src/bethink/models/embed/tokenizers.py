"""Word pieces of BERT vocabularies, with sentence boundaries.

Our own tokenizer serves the encoder and counts tokens for everybody.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from unicodedata import category, normalize

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, ModelError


def require_encodable(text: str) -> str:
    """Return the text; raise BadText if it holds a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadText(
            f"the text contains a lone surrogate at position {error.start}", remedy="remove it"
        ) from error
    return text


# A shorter sentence ("Yes.", "e.g.") is joined to the one before.
_MIN_SENTENCE_PIECES = 4
_END_CHARACTERS = frozenset(".!?…")
_CLOSING_CHARACTERS = frozenset("\"')]}”’»*_")
_BREAK_CHARACTERS = frozenset("。！？")


class TextPieces(NamedTuple):
    """A text's word pieces, without special tokens, and their character spans."""

    text: str
    ids: list[int]
    spans: list[tuple[int, int]]

    def sentence_ends(self) -> list[int]:
        """Return the last piece of each sentence; a full stop ends one where a space follows."""
        ends: list[int] = []
        start, stopped = 0, False
        last = len(self.ids) - 1
        for place, (begin, end) in enumerate(self.spans):
            piece = self.text[begin:end]
            stopped = piece in _END_CHARACTERS or (stopped and piece in _CLOSING_CHARACTERS)
            gap = self.text[end : self.spans[place + 1][0]] if place < last else "\n"
            if "\n" not in gap and piece not in _BREAK_CHARACTERS and not (stopped and gap):
                continue
            if place - start + 1 < _MIN_SENTENCE_PIECES and ends:
                ends[-1] = place
            else:
                ends.append(place)
            start, stopped = place + 1, False
        return ends

    def word_positions(self) -> list[int]:
        """Return the positions of pieces with letters or digits; all, if there are none."""
        places = [
            place
            for place, (begin, end) in enumerate(self.spans)
            if any(map(str.isalnum, self.text[begin:end]))
        ]
        return places or list(range(len(self.ids)))

    def locate(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """Return for each piece of each word the word's and the piece's position.

        Words are searched in order, each after the previous one if it occurs there; a
        word that does not occur in the text has no pieces.
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


def split_windows(
    piece_count: int, sentence_ends: Sequence[int], size: int
) -> list[tuple[int, int]]:
    """Split a row of pieces into windows of at most ``size``, between sentences if possible.

    A cut that would leave a window less than half full goes through the sentence.
    """
    cuts = [0]
    while cuts[-1] < piece_count:
        start, limit = cuts[-1], cuts[-1] + size
        between = bisect_left(sentence_ends, limit) - 1
        fits = between >= 0 and sentence_ends[between] + 1 >= start + max(1, size // 2)
        cuts.append(
            piece_count if limit >= piece_count else sentence_ends[between] + 1 if fits else limit
        )
    return list(pairwise(cuts))


_CHUNKS = lazy_pattern(r"[^ \t\n\r]+")
# ASCII is split by this alone; anything else needs its characters' categories.
_ASCII_WORDS = lazy_pattern(r"[0-9A-Za-z]+|[!-/:-@\[-`{-~]")
# Of ASCII, what is neither printed nor white space here: dropped, with no word ending there.
_CONTROLS = lazy_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs"})
_MAX_CACHED_WORDS, _MAX_CACHED_WORD_LENGTH = 20_000, 40
# Language models spell what is in no vocabulary, about three bytes a token.
_BYTES_PER_SPELLED_TOKEN = 3
# A longer word is unknown as a whole.
_MAX_WORD_CHARACTERS = 100
# Japanese letters differ by these (か, が): no accents, where the vocabulary knows them.
_VOICE_MARKS = "\u3099\u309a"
_CJK_RANGES = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class _PieceIds:
    """The ids of a vocabulary's pieces: their places among the lines of its file.

    A question needs some ten of them. They are searched for in the file; a dictionary of
    all 30,000 takes as long as some hundred searches, and is made once there were so many.
    """

    def __init__(self, lines: bytes) -> None:
        self._lines = b"\n" + lines + b"\n"
        self._searches_left = 100
        self._known: dict[str, int] = {}

    def find(self, piece: str) -> int | None:
        """Return the id of a piece; None where it is none."""
        if self._known:
            return self._known.get(piece)
        at = self._lines.find(b"\n%b\n" % piece.encode())
        # What is not there is searched for to the end.
        self._searches_left -= 1 if at >= 0 else 8
        if self._searches_left < 0:
            pieces = self._lines[1:-1].decode(errors="replace").split("\n")
            self._known = dict(zip(pieces, range(len(pieces)), strict=True))
        return self._lines.count(b"\n", 0, at) if at >= 0 else None


class BertTokenizer:
    """Word pieces of an uncased BERT vocabulary, without a tokenizer library.

    Lower case, no accents, every punctuation mark and Chinese character a word of its own;
    of each word the longest pieces from the left. Control tokens in a text are text.
    """

    def __init__(self, vocabulary: bytes) -> None:
        """Set the pieces, a line each in the order of their ids; ## begins one inside a word."""
        self._find = _PieceIds(vocabulary).find
        ids = [self._find(special) for special in ("[CLS]", "[SEP]", "[UNK]")]
        if None in ids:
            raise ModelError("the vocabulary has no [CLS], [SEP] or [UNK]")
        self.start_id, self.end_id, self._unknown_id = (int(number or 0) for number in ids)
        self._kept_marks = _VOICE_MARKS if self._find("##" + _VOICE_MARKS[0]) is not None else ""
        self._cache: dict[str, tuple[tuple[int, int], ...]] = {}

    def __call__(self, text: str) -> TextPieces:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        if text.isascii() and (text.isprintable() or _CONTROLS.search(text) is None):
            self._add_ascii(text, 0, ids, spans)
            return TextPieces(text, ids, spans)
        for found in _CHUNKS.finditer(text):
            chunk, start = found[0], found.start()
            if chunk.isascii() and chunk.isprintable():
                self._add_ascii(chunk, start, ids, spans)
                continue
            for plain, places in _normalised_words(chunk, self._kept_marks):
                at = 0
                for number, length in self._pieces(plain):
                    ids.append(number)
                    spans.append((start + places[at], start + places[at + length - 1] + 1))
                    at += length
        return TextPieces(text, ids, spans)

    def _add_ascii(
        self, text: str, start: int, ids: list[int], spans: list[tuple[int, int]]
    ) -> None:
        """Add the pieces of an ASCII text that begins at a position."""
        cache = self._cache
        for word in _ASCII_WORDS.finditer(text.lower()):
            at = start + word.start()
            for number, length in cache.get(word[0]) or self._pieces(word[0]):
                ids.append(number)
                spans.append((at, at + length))
                at += length

    def count(self, pieces: TextPieces) -> int:
        """Count the tokens of a text: its pieces, and unknown words by their length."""
        count = len(pieces.ids)
        if self._unknown_id in pieces.ids:
            for number, (begin, end) in zip(pieces.ids, pieces.spans, strict=True):
                if number == self._unknown_id:
                    size = len(pieces.text[begin:end].encode())
                    count += max(0, -(-size // _BYTES_PER_SPELLED_TOKEN) - 1)
        return count or int(pieces.text != "")

    def _pieces(self, word: str) -> tuple[tuple[int, int], ...]:
        """Return the id and the length of each piece of a word, from a cache."""
        known = self._cache.get(word)
        if known is None:
            known = tuple(self._split_word(word))
            if len(self._cache) < _MAX_CACHED_WORDS and len(word) <= _MAX_CACHED_WORD_LENGTH:
                self._cache[word] = known
        return known

    def _split_word(self, word: str) -> list[tuple[int, int]]:
        pieces: list[tuple[int, int]] = []
        start = 0
        while start < len(word) <= _MAX_WORD_CHARACTERS:
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._find(prefix + word[start:end])
                if number is not None:
                    pieces.append((number, end - start))
                    start = end
                    break
            else:
                break
        return pieces if pieces and start == len(word) else [(self._unknown_id, len(word))]


def _normalised_words(text: str, kept_marks: str = "") -> Iterator[tuple[str, list[int]]]:
    """Yield each word as the vocabulary spells it, with the position of each character."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        kind = category(character)
        if character in "\0\ufffd" or kind in _CONTROL_CATEGORIES:
            continue
        alone = kind[0] == "P" or (character.isascii() and not character.isalnum())
        space = kind[0] == "Z"
        if alone or space or _is_cjk(character):
            if letters:
                yield "".join(letters), places
                letters, places = [], []
            if not space:
                yield character, [place]
            continue
        for plain in normalize("NFD", character):
            if category(plain) != "Mn" or plain in kept_marks:
                low = plain.lower()
                letters += low
                places += [place] * len(low)
    if letters:
        yield "".join(letters), places


def _is_cjk(character: str) -> bool:
    code = ord(character)
    return code >= 0x3400 and any(low <= code <= high for low, high in _CJK_RANGES)
