"""Sketches find near-duplicates; the measure judges them."""

from __future__ import annotations

import subprocess
import sys
import time
from random import Random

import pytest

from bethink.core.words import fold, jaccard
from bethink.ingest.deduplication import (
    BANDS,
    minhash_sketch,
    shingles_of,
    text_skeleton,
)
from rows import each_row

WORDS = [f"word{i}" for i in range(3_000)]


def changed(words: list[str], times: int, rng: Random) -> list[str]:
    other = list(words)
    for i in rng.sample(range(len(words)), times):
        other[i] = rng.choice(WORDS)
    return other


def met(one: str, other: str) -> bool:
    return not set(minhash_sketch(one)).isdisjoint(minhash_sketch(other))


@each_row(
    ("changes", "least", "most"), [(0, 1.0, 1.0), (1, 0.98, 1.0), (15, 0.0, 0.15), (30, 0.0, 0.01)]
)
def test_the_more_alike_the_surer_they_meet(changes, least, most):
    """A word in thirty changed: nearly always. Half of them: rarely."""
    rng = Random(changes)
    hits = 0
    for _ in range(200):
        words = [rng.choice(WORDS) for _ in range(30)]
        hits += met(" ".join(words), " ".join(changed(words, changes, rng)))

    assert least <= hits / 200 <= most


def test_a_sketch_is_the_same_in_every_process():
    """It is stored, so no hash may depend on the process."""
    text = "the deploy key lives in vault b"
    code = (
        f"from bethink.ingest.deduplication import minhash_sketch; print(minhash_sketch({text!r}))"
    )

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == str(minhash_sketch(text))
    assert minhash_sketch(text)[0] == 5842734169845862427


def test_band_hashes_fit_a_signed_column():
    """Six of them, all different, from 0 up to 2^63."""
    bands = minhash_sketch("some words to be sketched here")

    assert len(set(bands)) == BANDS
    assert all(0 <= band < 2**63 for band in bands)


@pytest.mark.parametrize("text", ["", "one", "two words"])
def test_too_little_to_compare_has_no_sketch(text):
    """Two thanks are not two copies of one memory."""
    assert minhash_sketch(fold(text)) == ()


def test_scripts_without_spaces_have_sketches():
    """Pairs of characters stand for words."""
    one, other = (
        "支払いサービスは東京リージョンで動いている",
        "支払いサービスは東京リージョンで動いていた",
    )

    assert minhash_sketch(fold(one))
    assert met(fold(one), fold(other))
    assert jaccard(shingles_of(fold(one)), shingles_of(fold(other))) > 0.8


def test_similarity_is_a_share():
    """One for equal texts, zero for nothing in common, and for nothing at all."""
    assert jaccard(shingles_of("a b c"), shingles_of("a b c")) == 1
    assert jaccard(shingles_of("red fox runs"), shingles_of("blue whale swims")) == 0
    assert jaccard(frozenset(), frozenset()) == 0


@each_row(
    ("one", "other", "same_but_for_a_detail"),
    [
        ("The limit is 100 requests", "The limit is 200 requests", True),
        ("Deploy on Fridays", "Never deploy on Fridays", True),
        ("We do not use Redis", "We use Redis", True),
        ("It takes 1.5 hours", "It takes 2 hours", True),
        ("The limit is 100 requests", "The limit is 100 users", False),
    ],
)
def test_numbers_and_denials_are_details_that_matter(one, other, same_but_for_a_detail):
    """Such texts are near, never the same."""
    assert (text_skeleton(fold(one)) == text_skeleton(fold(other))) is same_but_for_a_detail
    assert fold(one) != fold(other)


def test_long_texts_are_sketched_in_time():
    """The first two thousand words speak for the rest."""
    began = time.process_time()
    assert len(minhash_sketch("word " * 13_000)) == BANDS

    assert time.process_time() - began < 10
