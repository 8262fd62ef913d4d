"""Intervals, paired differences, areas under curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.eval.metrics import auc, estimates, paired_difference, percentile

scores = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=20)


def test_the_same_seed_gives_the_same_interval():
    """Resampling is repeatable, and another seed draws others."""
    values = np.random.default_rng(1).random((80, 2))

    assert estimates(values, 7) == estimates(values, 7)
    assert estimates(values, 7) != estimates(values, 8)


def test_an_interval_holds_the_mean_and_narrows_with_more_questions():
    """The interval lies around the mean and is about 1.96 standard errors wide to each side."""
    few = np.random.default_rng(1).random((50, 1))
    many = np.random.default_rng(1).random((5000, 1))
    (small,), (large,) = estimates(few, 7), estimates(many, 7)

    assert small.low < small.value < small.high
    assert large.high - large.low < small.high - small.low
    expected = 2 * 1.96 * many.std() / np.sqrt(5000)
    assert large.high - large.low == pytest.approx(expected, rel=0.15)


def test_no_question_gives_no_estimate():
    """Nothing measured is nothing, not zero."""
    assert estimates(np.empty((0, 3)), 7) == []


def test_a_clear_gain_is_significant_and_a_coin_toss_is_not():
    """Pairs that nearly all improve are told from pairs that go either way."""
    before = np.zeros(100)
    better = np.where(np.arange(100) % 10 < 6, 1.0, 0.0)
    noise = np.where(np.arange(100) % 2 == 0, 0.5, -0.5)

    assert paired_difference(before, better, 7).is_significant
    assert paired_difference(before, better, 7).value == pytest.approx(0.6)
    assert not paired_difference(before, noise, 7).is_significant


def test_no_difference_at_all_is_certain_noise():
    """Two equal lists have a difference of nothing and p 1."""
    same = np.arange(10.0)

    found = paired_difference(same, same, 7)

    assert (found.value, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_unequal_lists_are_no_pairs():
    """A paired comparison of different questions is a mistake."""
    with pytest.raises(ValueError, match="same questions"):
        paired_difference(np.zeros(3), np.zeros(4), 7)


@given(positives=scores, negatives=scores)
def test_the_area_is_the_share_of_pairs_won(positives, negatives):
    """AUC counts the pairs where the positive lies above, ties half."""
    won = sum((p > n) + (p == n) / 2 for p in positives for n in negatives)

    assert auc(positives, negatives) == pytest.approx(won / len(positives) / len(negatives))


def test_without_either_side_there_is_no_area():
    """No positives or no negatives: no figure."""
    assert auc([], [1.0]) is None


def test_a_percentile_is_read_off_the_values():
    """The median of an odd number of values is the middle one."""
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
