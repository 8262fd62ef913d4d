"""The numbers that a search may turn."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.errors import Refused
from bethink.eval.tune import tunable_parameters
from bethink.retrieval.profile import bounds_of, load_profile

DEFAULT = load_profile("default")
ALL = tunable_parameters(DEFAULT)


def test_gate_and_depths_are_left_alone():
    """Recall alone would open the gate, and a channel's depth is a cost, not a weight."""
    names = [knob.name for knob in ALL]

    assert not [name for name in names if name.startswith(("gate", "budget"))]
    assert not [name for name in names if name.endswith(".depth")]
    assert "channels.lexical.weight" in names


@given(place=st.integers(0, len(ALL) - 1), value=st.floats(-1e6, 1e6))
def test_turning_changes_one_number_and_stays_in_range(place, value):
    """Whatever is asked for, the knob stays within its bounds and the others as they were."""
    knob = ALL[place]

    turned = knob.turn(DEFAULT, value)

    slack = 0.01 * max(abs(knob.low), abs(knob.high))
    assert knob.low - slack <= knob.read(turned) <= knob.high + slack
    for other in ALL:
        if other != knob:
            assert other.read(turned) == other.read(DEFAULT)


def test_moves_are_repeatable():
    """The same randomness moves a knob to the same place."""
    knob = ALL[0]

    assert knob.mutate(1.0, 0.3, Random(1)) == knob.mutate(1.0, 0.3, Random(1))


def test_patterns_choose_and_a_pattern_without_any_says_what_there_is():
    """Only settings that fit are turned."""
    assert {knob.field for knob in tunable_parameters(DEFAULT, ["channels.*.weight"])} == {"weight"}
    with pytest.raises(Refused) as caught:
        tunable_parameters(DEFAULT, ["nothing.*"])
    assert "channels.lexical.weight" in caught.value.remedy


def test_no_knob_reaches_beyond_what_a_profile_may_say():
    """A search must not end in a profile that cannot be read, or in a length norm below 0."""
    for knob in ALL:
        allowed = bounds_of(knob.slot, knob.field)

        assert allowed.low <= knob.low <= knob.high <= allowed.high
        assert knob.low <= knob.read(DEFAULT) <= knob.high
