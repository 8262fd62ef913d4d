"""The metrics of a ranking."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.errors import Refused
from bethink.eval.metrics import QUALITY_METRICS, get_metric
from rows import each_row

units = st.lists(st.sampled_from("abcdefghij"), unique=True)
wanted = st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from([1.0, 2.0]), min_size=1)


def test_a_known_ranking_has_known_figures():
    """Two of three relevant among five, at places 1 and 4."""
    ranked = ["a", "x", "y", "b", "z", "c"]
    relevant = {"a": 1.0, "b": 1.0, "c": 1.0}

    assert get_metric("recall@5")(ranked, relevant) == pytest.approx(2 / 3)
    assert get_metric("recall@10")(ranked, relevant) == 1.0
    assert get_metric("hit@5")(ranked, relevant) == 1.0
    assert get_metric("all@5")(ranked, relevant) == 0.0
    assert get_metric("all@10")(ranked, relevant) == 1.0
    assert get_metric("precision@5")(ranked, relevant) == pytest.approx(2 / 5)
    assert get_metric("mrr")(ranked, relevant) == 1.0
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    gained = 1 + 1 / math.log2(5) + 1 / math.log2(7)
    assert get_metric("ndcg@10")(ranked, relevant) == pytest.approx(gained / best)


def test_graded_gains_prefer_the_better_one_first():
    """nDCG with grades is highest with the highest grade on top."""
    relevant = {"good": 2.0, "fair": 1.0}

    assert get_metric("ndcg@10")(["good", "fair"], relevant) == pytest.approx(1.0)
    assert get_metric("ndcg@10")(["fair", "good"], relevant) < 1.0


def test_a_short_answer_is_not_blamed_for_being_short():
    """Precision divides by what came back, not by the cut."""
    assert get_metric("precision@5")(["a"], {"a": 1.0}) == 1.0
    assert get_metric("precision@5")([], {"a": 1.0}) == 0.0


@given(ranked=units, relevant=wanted)
def test_every_metric_lies_between_nothing_and_one(ranked, relevant):
    """No ranking scores below 0 or above 1."""
    for name in QUALITY_METRICS:
        assert 0.0 <= get_metric(name)(ranked, relevant) <= 1.0 + 1e-12


@given(ranked=units, relevant=wanted)
def test_a_longer_cut_never_finds_less(ranked, relevant):
    """Recall, hits and completeness grow with the cut, and all implies hit."""
    for kind in ("recall", "hit", "all"):
        assert get_metric(f"{kind}@3")(ranked, relevant) <= get_metric(f"{kind}@8")(
            ranked, relevant
        )
    assert get_metric("all@5")(ranked, relevant) <= get_metric("hit@5")(ranked, relevant)


@given(relevant=wanted)
def test_the_relevant_ones_first_are_perfect(relevant):
    """The ideal ranking has nDCG 1."""
    ranked = sorted(relevant, key=lambda unit: -relevant[unit])

    assert get_metric("ndcg@10")(ranked, relevant) == pytest.approx(1.0)


@each_row("name", ["recall", "recall@", "recall@x", "fame@10", ""])
def test_a_metric_that_does_not_exist_is_named(name):
    """An unknown metric is refused with what there is."""
    with pytest.raises(Refused, match="unknown metric"):
        get_metric(name)
