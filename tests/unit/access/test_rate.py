"""How often somebody may ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.access.guard import MAX_CALLERS, TokenBucketLimiter, parse_rate
from bethink.errors import BadSetting
from rows import each_row


def test_a_bucket_empties_and_fills_again() -> None:
    """A minute's tries at once, then one as each comes back; everybody for themselves."""
    now = [0.0]
    buckets = TokenBucketLimiter(60, lambda: now[0])

    assert [buckets.acquire("a") for _ in range(61)] == [0] * 60 + [1]
    assert buckets.acquire("b") == 0
    now[0] = 1.0
    assert buckets.acquire("a") == 0
    assert buckets.acquire("a") == 1


def test_the_wait_is_as_long_as_it_takes() -> None:
    """Who waits so long is served."""
    now = [0.0]
    buckets = TokenBucketLimiter(2, lambda: now[0])
    for _ in range(2):
        buckets.acquire("a")

    wait = buckets.acquire("a")
    now[0] += wait

    assert wait == 30
    assert buckets.acquire("a") == 0


def test_no_limit_is_none() -> None:
    """For who serves themselves."""
    buckets = TokenBucketLimiter(0)

    assert not any(buckets.acquire("a") for _ in range(1000))


def test_only_so_many_callers_are_remembered() -> None:
    """Nobody fills the memory by asking from everywhere."""
    buckets = TokenBucketLimiter(1)
    for number in range(MAX_CALLERS + 100):
        buckets.acquire(str(number))

    assert len(buckets._buckets) == MAX_CALLERS


@given(st.lists(st.floats(0, 10), max_size=80), st.integers(1, 100))
def test_nobody_gets_more_than_the_rate(pauses: list[float], a_minute: int) -> None:
    """In no stretch of time: the bucket and what came back meanwhile."""
    now = [0.0]
    buckets = TokenBucketLimiter(a_minute, lambda: now[0])
    served = 0
    for pause in pauses:
        now[0] += pause
        served += buckets.acquire("a") == 0

    assert served <= a_minute + now[0] * a_minute / 60 + 1e-6


@pytest.mark.parametrize(("written", "rate"), [("600/min", 600), ("600", 600), ("0", 0)])
def test_rates_are_read(written: str, rate: int) -> None:
    """With their unit or without."""
    assert parse_rate(written) == rate


@each_row("written", ["", "x", "-1", "1.5", "10/s", "99999999", "1/min/min"])
def test_other_rates_are_refused(written: str) -> None:
    """In a sentence."""
    with pytest.raises(BadSetting):
        parse_rate(written)
