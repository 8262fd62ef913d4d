"""Contextual tokens as a store keeps them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.core.arrays import normalise
from bethink.errors import ModelError
from bethink.models.embed.contextual import (
    MAX_STORED_TOKENS,
    best_contextual_matches,
    best_contextual_sentences,
    join_contextual,
    pack_contextual,
)
from rows import each_row

RANDOM = np.random.default_rng(11)


def vectors(count: int, width: int = 384) -> np.ndarray:
    return normalise(RANDOM.normal(size=(count, width)).astype(np.float32))


def test_nothing_is_kept_of_nothing():
    """No tokens, no bytes; and no bytes compare as zeros."""
    none = np.zeros((0, 384), dtype=np.float32)

    assert pack_contextual(none, none) == b""
    assert not best_contextual_matches(vectors(3), [b"", b""]).any()
    assert not best_contextual_sentences(vectors(1)[0], [b"", b""]).any()
    assert best_contextual_matches(none, [pack_contextual(vectors(2), vectors(1))]).shape == (1, 0)
    assert best_contextual_matches(vectors(2), []).shape == (0, 2)


def test_a_token_costs_fifty_two_bytes():
    """A bit a dimension and a number; a sentence costs a byte a dimension."""
    small, more, longer = (
        len(pack_contextual(vectors(tokens), vectors(sentences)))
        for tokens, sentences in ((1, 1), (2, 1), (1, 2))
    )

    assert more - small == 384 // 8 + 4
    assert longer - small == 384


def test_a_token_finds_itself():
    """With itself a vector has a cosine of 1, however few bits are kept."""
    tokens = vectors(40)

    best = best_contextual_matches(tokens, [pack_contextual(tokens, tokens[:1])])

    assert best == pytest.approx(np.ones((1, 40)), abs=1e-4)


def test_estimates_are_near_the_truth():
    """A few hundredths off, and as often above as below."""
    common = vectors(1)
    memory, question = (normalise(vectors(300) + 0.8 * common) for _ in range(2))

    estimated = np.array(
        [
            best_contextual_matches(question, [pack_contextual(one[None], one[None])])[0]
            for one in memory
        ]
    )
    errors = estimated - memory @ question.T

    assert np.abs(errors).mean() < 0.04
    assert np.abs(errors).max() < 0.25
    assert abs(float(errors.mean())) < 0.015


def test_the_best_sentence_is_found():
    """Its cosine is the true one to three digits."""
    sentences, question = vectors(7), vectors(1)[0]

    best = best_contextual_sentences(question, [pack_contextual(vectors(20), sentences)])

    assert best[0] == pytest.approx(float((sentences @ question).max()), abs=2e-3)


def test_where_a_memory_stands_does_not_matter():
    """The same bits first or last, alone or among many."""
    question = vectors(9)
    memories = [pack_contextual(vectors(count), vectors(1)) for count in (1, 30, 7, 200, 64)]

    together = best_contextual_matches(question, [*memories, b"", *memories])

    assert np.array_equal(together[:5], together[6:])
    for place, memory in enumerate(memories):
        assert np.array_equal(best_contextual_matches(question, [memory])[0], together[place])


@each_row("width", [1, 7, 64, 100, 385])
def test_any_width_works(width):
    """Dimensions need not come in eights."""
    tokens = vectors(5, width)

    best = best_contextual_matches(tokens, [pack_contextual(tokens, tokens[:2])])

    assert best == pytest.approx(np.ones((1, 5)), abs=1e-3)


@given(cut=st.integers(1, 500), byte=st.integers(0, 255))
def test_damaged_rows_are_refused_or_harmless(cut, byte):
    """Cut short, or with another byte in front: ModelError, never a wrong shape."""
    whole = pack_contextual(vectors(5), vectors(2))
    for damaged in (whole[: len(whole) - cut], bytes([byte]) + whole, bytes([byte]) + whole[1:]):
        if damaged == whole or not damaged:
            continue
        with pytest.raises(ModelError, match="damaged"):
            best_contextual_matches(vectors(2), [whole, damaged])
        with pytest.raises(ModelError, match="damaged"):
            best_contextual_sentences(vectors(1)[0], [damaged])


def test_rows_of_another_width_are_refused():
    """Two models are never compared."""
    with pytest.raises(ModelError, match="damaged"):
        best_contextual_matches(vectors(2, 64), [pack_contextual(vectors(5), vectors(1))])


def test_a_joined_row_finds_what_its_parts_find():
    """Of a text that consists of others each token and sentence is compared as before."""
    parts = [
        pack_contextual(vectors(tokens), vectors(sentences))
        for tokens, sentences in ((5, 1), (9, 3))
    ]
    joined = join_contextual([*parts, b""], 384)
    query = vectors(4)

    apart = best_contextual_matches(query, parts).max(axis=0)
    assert best_contextual_matches(query, [joined])[0].tolist() == apart.tolist()
    sentence = best_contextual_sentences(query[0], parts).max()
    assert best_contextual_sentences(query[0], [joined])[0] == sentence
    assert join_contextual([b"", b""], 384) == b""


def test_of_too_much_each_part_keeps_an_equal_share():
    """No row is longer than that of a long text, and no part is left out of it."""
    parts = [vectors(200) for _ in range(3)]
    joined = join_contextual([pack_contextual(part, vectors(30)) for part in parts], 384)
    first = np.concatenate([part[:1] for part in parts])
    found = best_contextual_matches(first, [joined])[0]

    assert len(joined) <= len(pack_contextual(vectors(MAX_STORED_TOKENS), vectors(63)))
    assert found == pytest.approx(np.ones(3), abs=1e-3)
