"""The hash embedder."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from bethink.models.embed.hashing import HashEmbedder
from bethink.ports import LateInteraction
from rows import each_row

EMBEDDER = HashEmbedder()


@each_row("word", ["auth", "token", "a_b", "42", "cache"])
def test_a_word_goes_where_its_hash_says(word):
    """Four bytes name the place, the fifth the sign."""
    digest = hashlib.sha256(word.encode()).hexdigest()
    place, sign = int(digest[:8], 16) % 384, -1.0 if int(digest[8:10], 16) % 2 else 1.0

    vector = EMBEDDER.embed_query(word).vector

    assert vector[place] == sign
    assert np.count_nonzero(vector) == 1


def test_known_words_have_known_places():
    """The places are the same on every machine and in every release."""
    vectors = [EMBEDDER.embed_query(word).vector for word in ("auth", "token", "deploy")]

    places = [(int(np.argmax(np.abs(vector))), float(vector.sum())) for vector in vectors]

    assert places == [(316, 1.0), (157, 1.0), (65, -1.0)]


def test_words_are_lower_case_and_count_as_often_as_they_occur():
    """Case and punctuation do not matter, repetition does."""
    shouted = EMBEDDER.embed_query("AUTH, auth! (token)").vector
    plain = EMBEDDER.embed_query("token auth auth").vector

    assert np.array_equal(shouted, plain)
    assert sorted(np.abs(plain[plain != 0])) == pytest.approx([1 / math.sqrt(5), 2 / math.sqrt(5)])


@each_row("text", ["", "   ", "!?", "日本語"])
def test_a_text_without_words_is_zeros(text):
    """It knows words of a-z, 0-9 and _ only, and does not pretend otherwise."""
    assert not EMBEDDER.embed_query(text).vector.any()


def test_it_says_what_it_is():
    """Wherever the model's name is shown, it is honest; it cannot compare tokens."""
    assert EMBEDDER.model == "hash-384 (not a learned model)"
    assert not isinstance(EMBEDDER, LateInteraction)
    assert EMBEDDER.embed_query("hello").tokens == b""


def test_tokens_are_estimated_from_bytes():
    """Four bytes a token, rounded up."""
    assert [EMBEDDER.count_tokens(text) for text in ("", "a", "abcd", "abcde", "日本")] == [
        0,
        1,
        1,
        2,
        2,
    ]
