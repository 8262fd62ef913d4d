"""Word pieces, sentences, windows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.models.embed.tokenizers import BertTokenizer, TextPieces, split_windows
from library_tokenizer import LibraryTokenizer
from rows import each_row
from tiny_bert import make_tiny_bert


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return make_tiny_bert(tmp_path_factory.mktemp("tiny")) / "tokenizer.json"


@pytest.fixture(scope="module", params=[LibraryTokenizer, "ours"])
def split(request, file):
    """The library's reading of the file, and ours."""
    return our_tokenizer(file) if request.param == "ours" else request.param(file)


def our_tokenizer(file: Path) -> BertTokenizer:
    vocabulary = LibraryTokenizer(file).vocabulary
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    return BertTokenizer("\n".join(pieces).encode())


def sentences(pieces: TextPieces) -> list[str]:
    """What the places of the ends stand for in the text."""
    ends = pieces.sentence_ends()
    starts = [0, *(end + 1 for end in ends)][: len(ends)]
    return [
        pieces.text[pieces.spans[start][0] : pieces.spans[end][1]]
        for start, end in zip(starts, ends, strict=True)
    ]


@each_row(
    ("text", "parts"),
    [
        ("the key lives there. anna has it now", ["the key lives there.", "anna has it now"]),
        ("is it there? no! anna has it", ["is it there? no!", "anna has it"]),
        ('"it lives there." anna said so', ['"it lives there."', "anna said so"]),
        ("release v2.3.1 is out now", ["release v2.3.1 is out now"]),
        ("first line here\nsecond line here", ["first line here", "second line here"]),
        ("no stop here", ["no stop here"]),
        ("the end of it.", ["the end of it."]),
        ("a。b and some more", ["a。", "b and some more"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(split, text, parts):
    """At a stop before a space, at a line's end; what is very short goes with the one before."""
    assert sentences(split(text)) == parts


@given(st.text(max_size=200))
def test_every_piece_is_in_one_sentence(split, text):
    """Ends rise, and the last piece is the last end."""
    pieces = split("".join(c for c in text if not "\ud800" <= c <= "\udfff"))
    ends = pieces.sentence_ends()

    assert ends == sorted(set(ends))
    assert ends[-1:] == ([len(pieces.ids) - 1] if pieces.ids else [])


@given(
    count=st.integers(0, 300),
    marks=st.sets(st.integers(0, 299)),
    size=st.integers(1, 60),
)
def test_windows_cover_everything_once(count, marks, size):
    """No gap, no overlap, none too long, none empty."""
    ends = sorted({mark for mark in marks if mark < count} | ({count - 1} if count else set()))

    cut = split_windows(count, ends, size)

    assert [start for start, _ in cut] == [0, *(stop for _, stop in cut)][: len(cut)]
    assert all(0 < stop - start <= size for start, stop in cut)
    assert [stop for _, stop in cut][-1:] == ([count] if count else [])


def test_windows_are_cut_between_sentences():
    """Unless that would leave more than half of one unused."""
    assert split_windows(20, [7, 12, 19], 10) == [(0, 8), (8, 13), (13, 20)]
    assert split_windows(20, [3, 19], 10) == [(0, 10), (10, 20)]
    assert split_windows(10, [4, 9], 10) == [(0, 10)]


def test_words_are_found_in_their_text(split):
    """Each with its own pieces, in order; a word that is not there has none."""
    pieces = split("where does the key live? in vault b, the key says")

    found = pieces.locate(["key", "vault", "gone", "the", "key"])

    shown = [(word, pieces.text[slice(*pieces.spans[piece])]) for word, piece in found]
    assert shown == [(0, "key"), (1, "vault"), (3, "the"), (4, "key")]
    assert found[0][1] < found[1][1] < found[2][1] < found[3][1]


def test_a_word_of_several_pieces_has_them_all(split):
    """Also where punctuation stands inside."""
    pieces = split("parse v2.3.1 now")

    found = pieces.locate(["v2.3.1"])

    assert [pieces.text[slice(*pieces.spans[piece])] for _, piece in found] == [*"v2.3.1"]


def test_punctuation_is_not_spoken(split):
    """Unless there is nothing else."""
    pieces = split("well, v2.3!")

    assert [pieces.text[slice(*pieces.spans[place])] for place in pieces.word_positions()] == [
        *"well", "v", "2", "3",
    ]  # fmt: skip
    assert split("?!").word_positions() == [0, 1]


def test_marks_in_a_text_are_text(split):
    """Somebody's "[SEP]" does not end anything."""
    pieces = split("the [SEP] key")

    assert split.end_id not in pieces.ids
    assert len(pieces.ids) > 5


@given(st.text(max_size=200))
def test_our_reading_of_a_file_is_the_librarys(file, text):
    """Ours needs no library, and gives the same pieces."""
    ours, theirs = our_tokenizer(file), LibraryTokenizer(file)
    text = "".join(c for c in text if not "\ud800" <= c <= "\udfff")

    assert (ours.start_id, ours.end_id) == (theirs.start_id, theirs.end_id)
    assert ours(text).ids == theirs(text).ids
    assert ours(text).spans == [tuple(span) for span in theirs(text).spans]
