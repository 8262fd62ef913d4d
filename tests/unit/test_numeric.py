"""Small arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.numeric import clamp, cosine, max_normalise, min_max, sigmoid

numbers = st.floats(min_value=-1e100, max_value=1e100)


def vector(*values: float):
    return np.array(values, dtype=np.float32)


def test_cosine_of_known_angles():
    """Same, opposite, square and slanted directions, whatever the lengths."""
    assert cosine(vector(1, 2), vector(3, 6)) == pytest.approx(1.0)
    assert cosine(vector(1, 2), vector(-2, -4)) == pytest.approx(-1.0)
    assert cosine(vector(1, 0), vector(0, 5)) == 0.0
    assert cosine(vector(3, 4), vector(1, 0)) == pytest.approx(0.6)


def test_a_vector_without_length_has_no_direction():
    """Zeros are like nothing, not even themselves; nothing is divided by zero."""
    assert cosine(vector(0, 0), vector(1, 2)) == cosine(vector(0, 0), vector(0, 0)) == 0.0


@settings(deadline=None)
@given(st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=3))
def test_cosine_never_leaves_its_range(values):
    """Rounding never makes a cosine above 1, and the result is a plain float."""
    found = cosine(vector(*values), vector(*values))

    assert type(found) is float
    assert -1.0 <= found <= 1.0


@given(st.lists(numbers, min_size=1))
def test_min_max_keeps_the_order_between_0_and_1(values):
    """The best is 1 unless none is above 0, and no two change places."""
    scaled = min_max(values)

    assert all(0.0 <= value <= 1.0 for value in scaled)
    if min(values) < max(values):
        assert (min(scaled), max(scaled)) == (0.0, 1.0)
    pairs = sorted(zip(values, scaled, strict=True))
    assert [new for _, new in pairs] == sorted(scaled)


def test_min_max_of_equals():
    """Where all are equal, all are the best, or none is any good."""
    assert min_max([]) == []
    assert min_max([3.0, 3.0]) == [1.0, 1.0]
    assert min_max([0.0, 0.0]) == min_max([-2.0, -2.0]) == [0.0, 0.0]
    assert min_max([2.0, 4.0, 3.0]) == [0.0, 1.0, 0.5]


@given(st.lists(numbers))
def test_max_normalise_makes_the_best_1(values):
    """Unless nothing is above 0, which gives zeros."""
    scaled = max_normalise(values)

    if max(values, default=0.0) > 0:
        assert max(scaled) == 1.0
    else:
        assert scaled == [0.0] * len(values)


def test_max_normalise_takes_any_iterable():
    """A generator is read once; ratios are kept."""
    assert max_normalise(value for value in (1.0, 4.0, -2.0)) == [0.25, 1.0, -0.5]


@given(numbers)
def test_sigmoid_is_symmetric_and_never_overflows(value):
    """Any number lands in 0 to 1, and its opposite on the other side of one half."""
    assert 0.0 <= sigmoid(value) <= 1.0
    assert sigmoid(value) + sigmoid(-value) == pytest.approx(1.0)


def test_sigmoid_of_known_values():
    """Zero is one half; ln 3 is three quarters."""
    assert sigmoid(0.0) == 0.5
    assert sigmoid(math.log(3)) == pytest.approx(0.75)


def test_clamp_keeps_to_its_limits():
    """Inside it changes nothing."""
    assert [clamp(value) for value in (-0.5, 0.25, 7.0)] == [0.0, 0.25, 1.0]
    assert clamp(7, -5, 5) == 5
