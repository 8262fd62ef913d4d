"""What a job may cost: set aside before, corrected after, never overdrawn."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ports import Budget, BudgetSpent


def test_a_request_is_set_aside_and_then_corrected():
    """What was not needed is there for the next one."""
    budget = Budget(calls=9, tokens_in=100, tokens_out=100)

    with budget.reserve(80, 90) as charge:
        assert budget.spent[:3] == (1, 80, 90)
        with pytest.raises(BudgetSpent, match="100 tokens to read is spent"):
            budget.reserve(30, 0)
        charge.commit(20, 10)

    assert budget.spent[:3] == (1, 20, 10)
    with budget.reserve(80, 90):
        pass
    assert budget.spent[:3] == (1, 20, 10), "what was not sent costs nothing"


def test_a_charge_is_closed_once():
    """Leaving it twice gives nothing back twice."""
    budget = Budget()

    with budget.reserve(5, 5) as charge, charge:
        charge.commit(3, 3)

    assert budget.spent[:3] == (1, 3, 3)


def test_a_charge_that_fails_keeps_what_it_cost():
    """A request that was sent and not answered was perhaps read."""
    budget = Budget()

    with suppress(TimeoutError), budget.reserve(5, 5) as charge:
        charge.commit(5, 0)
        raise TimeoutError

    assert budget.spent[:3] == (1, 5, 0)


def test_time_runs_from_the_beginning():
    """Of the job, not of its first request."""
    now = [100.0]
    budget = Budget(seconds=20, clock=lambda: now[0])
    now[0] += 19.5

    assert budget.seconds_left == 0.5
    with budget.reserve(1, 1):
        pass
    now[0] += 0.5
    with pytest.raises(BudgetSpent, match="budget of 20 s is spent"):
        budget.reserve(1, 1)
    assert budget.spent.seconds == 20.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0, 1), st.booleans())))
def test_no_limit_is_ever_passed(requests):
    """As long as no request costs more than was set aside for it."""
    budget, sent = Budget(calls=5, tokens_in=100, tokens_out=100), 0

    for tokens_in, tokens_out, share, was_sent in requests:
        try:
            with budget.reserve(tokens_in, tokens_out) as charge:
                if was_sent:
                    sent += 1
                    charge.commit(int(tokens_in * share), int(tokens_out * share))
        except BudgetSpent:
            pass
        assert budget.spent.calls == sent <= 5
        assert 0 <= budget.spent.tokens_in <= 100
        assert 0 <= budget.spent.tokens_out <= 100
