"""Tokens as a store keeps them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.errors import ModelError
from bethink.models.embed.encoder import count_tokens
from bethink.models.embed.token_table import pack_tokens, unpack_tokens
from rows import each_row

SIZE = 32_000

sentences = st.lists(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=6), max_size=4)


def floats(*values: float):
    return np.array(values, dtype=np.float32)


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
    """Little-endian ids, a mark after each sentence, then a half-precision length."""
    assert pack_tokens([1, 0x1234, 7], [1, 2], floats(1.0, 2.0)) == bytes.fromhex(
        "01003412ffff003c0700ffff0040"
    )
    assert pack_tokens([], [], floats()) == b""


@each_row(
    "tokens",
    [
        b"\x00",  # half a number
        b"\x01\x00",  # a sentence without an end
        b"\x01\x00\xff\xff",  # an end without a length
        b"\x01\x00\xff\xff\xff\xff",  # a length that is none
        b"\x01\x00\xff\xff\x00\x3c\x02\x00",  # a second sentence without an end
        b"\xfe\xff\xff\xff\x00\x3c",  # an id beyond the vocabulary
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


def test_a_text_without_pieces_has_one_token() -> None:
    """As a number: a true is stored as 1, and the memory would not match its hash."""
    assert repr(count_tokens("\ufffd")) == "1"
    assert repr(count_tokens("")) == "0"
