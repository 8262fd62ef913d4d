"""Plain rankings to be ahead of."""

from __future__ import annotations

from bethink.eval.runner import Baselines
from bethink.models import open_embedder

TEXTS = {
    "kite": "Aunt Rosalind gave me a red kite",
    "boat": "The rowing boats are moored behind the mill",
    "bread": "Sourdough needs twelve hours in the pantry",
}


def test_words_find_stems_and_vectors_find_everything():
    """BM25 returns what shares a stem, cosine ranks all, the fusion has both."""
    ranked = Baselines(TEXTS, open_embedder("hash")).rank("where is the boat mooring?", 10)

    assert ranked["BM25"][0] == "boat"
    assert sorted(ranked["cosine"]) == sorted(TEXTS)
    assert ranked["RRF"][0] == "boat"
    assert sorted(ranked["RRF"]) == sorted(TEXTS)


def test_no_more_than_asked_for():
    """Each returns its first k."""
    ranked = Baselines(TEXTS, open_embedder("hash")).rank("boat kite sourdough", 2)

    assert {name: len(ids) for name, ids in ranked.items()} == {"BM25": 2, "cosine": 2, "RRF": 2}


def test_without_an_embedder_there_are_words_alone():
    """No vectors, no cosine."""
    assert Baselines(TEXTS, None).rank("a kite", 10) == {"BM25": ["kite"]}


def test_a_question_without_words_is_no_error():
    """Punctuation and the operators of a search language find nothing."""
    index = Baselines(TEXTS, None)

    assert index.rank("?! -- *", 10) == {"BM25": []}
    assert index.rank('" OR kite NOT (', 10) == {"BM25": ["kite"]}


def test_an_empty_memory_has_empty_rankings():
    """Nothing stored, nothing ranked."""
    assert Baselines({}, open_embedder("hash")).rank("kite", 10)["cosine"] == []
