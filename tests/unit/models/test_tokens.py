"""Tokens as a store keeps them, and the sentences in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.errors import ModelError
from bethink.models.embed.static import _SPACE_TOKEN, WORDLLAMA_TOKENIZER, _installed_folder
from bethink.models.embed.token_table import (
    pack_tokens,
    sentence_ends,
    sentence_flags,
    unpack_tokens,
)
from bethink.models.embed.tokenizers import SPACE_PIECE, BpeTokenizer, read_vocabulary

SIZE = 32_000
VOCABULARY = read_vocabulary(_installed_folder() / WORDLLAMA_TOKENIZER)
PIECES = {number: piece for piece, number in VOCABULARY.items()}
BPE = BpeTokenizer(VOCABULARY)
MARKS = sentence_flags(VOCABULARY)

sentences = st.lists(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=6), max_size=4)


def floats(*values: float):
    return np.array(values, dtype=np.float32)


def split(text: str) -> list[str]:
    """The sentences of a text, spelled from its tokens."""
    ids = BPE.encode(text)
    ends = sentence_ends(ids, MARKS)
    starts = [0, *(end + 1 for end in ends)]
    spelled = [
        "".join(PIECES[n] for n in ids[a : b + 1]) for a, b in zip(starts, ends, strict=False)
    ]
    return [part.replace(SPACE_PIECE, " ").replace("<0x0A>", "\n").strip() for part in spelled]


def pack_sentences(memory: list[list[int]]) -> bytes:
    ids = [number for sentence in memory for number in sentence]
    ends = (np.cumsum([len(sentence) for sentence in memory]) - 1).tolist() if memory else []
    return pack_tokens(ids, ends, floats(*range(1, len(memory) + 1)))


@settings(deadline=None)
@given(st.lists(sentences, max_size=4))
def test_what_is_packed_is_unpacked(memories):
    """Ids, sentences and lengths of many memories come back in order, empty ones too."""
    row = unpack_tokens([pack_sentences(memory) for memory in memories], SIZE)

    assert row.ids.tolist() == [n for memory in memories for sentence in memory for n in sentence]
    assert row.filled.tolist() == [bool(memory) for memory in memories]
    assert row.lengths.tolist() == [n + 1 for memory in memories for n in range(len(memory))]
    filled = [memory for memory in memories if memory]
    tokens = [sum(map(len, memory)) for memory in filled]
    assert row.memory_starts.tolist() == [sum(tokens[:place]) for place in range(len(filled))]
    counts = [len(memory) for memory in filled]
    assert row.first_sentences.tolist() == [sum(counts[:place]) for place in range(len(filled))]
    sizes = [len(sentence) for memory in filled for sentence in memory]
    assert row.sentence_starts.tolist() == [sum(sizes[:place]) for place in range(len(sizes))]


def test_the_stored_form_is_the_same_on_every_machine():
    """Little-endian ids, the last of a sentence marked, then a half-precision length."""
    assert pack_tokens([1, 0x1234, 7], [1, 2], floats(1.0, 2.0)) == bytes.fromhex(
        "01003492003c07800040"
    )
    assert pack_tokens([], [], floats()) == b""


@pytest.mark.parametrize(
    "tokens",
    [
        b"\x00",  # half a number
        b"\x01\x00",  # a sentence without an end
        b"\x01\x80",  # an end without a length
        b"\x01\x80\x01\x80",  # a length that is none
        b"\x01\x80\x00\x3c\x02\x00",  # a second sentence without an end
        b"\xff\xff\x00\x3c",  # an id beyond the vocabulary
    ],
)
def test_damage_is_named(tokens):
    """Wherever it stands among others, it is a ModelError with a remedy."""
    good = pack_tokens([1, 2], [1], floats(1.0))

    for memories in ([tokens], [good, tokens], [tokens, good], [b"", tokens, b"", good]):
        with pytest.raises(ModelError, match="damaged") as caught:
            unpack_tokens(memories, SIZE)
        assert caught.value.remedy


@settings(deadline=None)
@given(st.lists(st.binary(max_size=24), max_size=4))
def test_any_bytes_are_read_or_refused(memories):
    """Damage never gives anything but tokens of the vocabulary or a ModelError."""
    try:
        row = unpack_tokens(memories, SIZE)
    except ModelError:
        return
    assert (row.ids < SIZE).all()
    assert len(row.memory_starts) == int(row.filled.sum())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One sentence only", ["One sentence only"]),
        ("The first one is here. The second one is there! Is there a third one?",
         ["The first one is here.", "The second one is there!", "Is there a third one?"]),
        ("Release v2.3.1 of src/app.py is out now. It is good to have.",
         ["Release v2.3.1 of src/app.py is out now.", "It is good to have."]),
        ("a line without a stop\nanother line without a stop",
         ["a line without a stop", "another line without a stop"]),
        ('He said "we are done here." Then he went home.',
         ['He said "we are done here."', "Then he went home."]),
        ("That is a good idea. Yes. We will do it then.", ["That is a good idea. Yes.", "We will do it then."]),
        ("これは最初の文です。これは二番目の文です。", ["これは最初の文です。", "これは二番目の文です。"]),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_would_say(text, expected):
    """At stops before a space, at line breaks, never inside a name; short ones join."""
    assert split(text) == expected


@settings(deadline=None)
@given(st.text(st.sampled_from("ab .!?\n。v2"), max_size=60))
def test_sentences_cover_the_text(text):
    """Ends rise and the last is the last token."""
    ids = BPE.encode(text)

    ends = sentence_ends(ids, MARKS)

    assert ends == sorted(set(ends))
    assert ends[-1:] == ([len(ids) - 1] if ids else [])


def test_the_bare_space_is_the_one_we_know():
    """The default embedder leaves it out by its id."""
    assert VOCABULARY[SPACE_PIECE] == _SPACE_TOKEN
