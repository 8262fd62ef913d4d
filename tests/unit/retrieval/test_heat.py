"""Heat, momentum and forgetting risk: the reference values and every boundary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.retrieval.heat import (
    BANDS,
    ActivityCounts,
    UseCounts,
    band_of,
    forgetting_risk,
    heat,
    momentum,
    pace_of,
)
from rows import each_row

counts = st.integers(0, 10_000)
shares = st.floats(0, 1)
days = st.floats(-10, 5_000)


@pytest.mark.parametrize(
    ("uses", "days_since", "importance", "value", "band"),
    [
        (UseCounts(0, 0, 0), 0, 0.5, 27.5, "cold"),
        (UseCounts(10, 10, 10), 0, 0.5, 72.5, "hot"),
        (UseCounts(0, 5, 5), 45, 0.5, 15.0, "frozen"),
    ],
)
def test_heat_is_that_of_the_reference(
    uses: UseCounts, days_since: float, importance: float, value: float, band: str
) -> None:
    """Values from running the original."""
    assert heat(uses, days_since, importance) == pytest.approx(value)
    assert band_of(heat(uses, days_since, importance)) == band


@each_row(
    ("more", "less", "difference"),
    [
        (UseCounts(1, 0, 0), UseCounts(0, 0, 0), 3.0),
        (UseCounts(10, 0, 0), UseCounts(9, 0, 0), 3.0),
        (UseCounts(11, 0, 0), UseCounts(10, 0, 0), 0.0),
        (UseCounts(0, 20, 0), UseCounts(0, 19, 0), 1.0),
        (UseCounts(0, 21, 0), UseCounts(0, 20, 0), 0.0),
        (UseCounts(0, 0, 30), UseCounts(0, 0, 29), 0.5),
        (UseCounts(0, 0, 31), UseCounts(0, 0, 30), 0.0),
    ],
)
def test_each_count_has_its_cap(more: UseCounts, less: UseCounts, difference: float) -> None:
    """3 points a use in 30 days up to 30, 1 in 90 up to 20, a half ever up to 15."""
    assert heat(more, 20) - heat(less, 20) == pytest.approx(difference)


@each_row(
    ("day", "bonus"),
    [(0, 20), (7, 20), (7.001, 10), (30, 10), (30.001, 0), (90, 0), (90.001, -10), (4000, -10)],
)
def test_freshness_falls_in_steps(day: float, bonus: float) -> None:
    """Up to 7 days +20, to 30 +10, to 90 nothing, then -10."""
    assert heat(UseCounts(5, 5, 5), day, 0.5) == pytest.approx(15 + 5 + 2.5 + 7.5 + bonus)


def test_heat_stays_within_its_scale() -> None:
    """All caps at once make 100; nothing is below 0."""
    assert heat(UseCounts(99, 99, 99), 0, 1.0) == 100.0
    assert heat(UseCounts(), 400, 0.0) == 0.0


@given(counts, counts, counts, days, shares)
def test_more_use_is_never_colder(a: int, b: int, c: int, since: float, importance: float) -> None:
    """One use more, a day less or more importance never lowers the heat."""
    cool = heat(UseCounts(a, b, c), since, importance)
    assert 0 <= cool <= 100
    assert heat(UseCounts(a + 1, b + 1, c + 1), since, importance) >= cool
    assert heat(UseCounts(a, b, c), since - 1, importance) >= cool
    assert heat(UseCounts(a, b, c), since, min(1.0, importance + 0.1)) >= cool


@each_row(
    ("value", "band"),
    [(100, "hot"), (70, "hot"), (69.99, "warm"), (40, "warm"), (39.99, "cold"), (20, "cold"),
     (19.99, "frozen"), (0, "frozen")],
)  # fmt: skip
def test_bands_begin_where_they_say(value: float, band: str) -> None:
    """At the number itself, not after it."""
    assert band_of(value) == band
    assert band in BANDS


@pytest.mark.parametrize(
    ("seen", "observed", "importance", "value", "pace"),
    [
        (ActivityCounts(1, 1, 1), 1, 0.5, 4.2714, "active"),
        (ActivityCounts(3, 6, 12), 30, 0.7, 7.9, "surging"),
    ],
)
def test_momentum_is_that_of_the_reference(
    seen: ActivityCounts, observed: float, importance: float, value: float, pace: str
) -> None:
    """Values from running the original."""
    assert momentum(seen, observed, importance) == pytest.approx(value, abs=5e-5)
    assert pace_of(momentum(seen, observed, importance)) == pace


@each_row(
    ("seen", "velocity"),
    [((0, 0), 0), ((0, 1), 2), ((0, 2), 2), ((0, 3), 4), ((1, 1), 7), ((2, 9), 7), ((3, 3), 10)],
)
def test_velocity_goes_by_the_last_day_then_the_last_week(
    seen: tuple[int, int], velocity: float
) -> None:
    """3 in a day 10, one 7, 3 in a week 4, one 2, none 0."""
    # Ever so many before: the last week counts for next to nothing against the usual.
    value = momentum(ActivityCounts(*seen, 10**9), 365, 0.0)
    assert value == pytest.approx(0.3 * velocity, abs=1e-4)


@each_row(
    ("week", "ever", "part"),
    [(30, 10, 10), (29.9, 10, 7), (20, 10, 7), (19.9, 10, 4), (10, 10, 4), (5, 10, 2), (0, 10, 0),
     (1, 0, 5), (0, 0, 0)],
)  # fmt: skip
def test_a_week_is_held_against_an_average_one(week: float, ever: int, part: float) -> None:
    """Three times as much 10, twice 7, as much 4, less in proportion; without a past 5."""
    seen = ActivityCounts(0, week, ever)  # type: ignore[arg-type]
    speed = {True: 4, False: 2 if week else 0}[week >= 3]

    assert momentum(seen, 7, 0.0) == pytest.approx(0.3 * part + 0.3 * speed)


@given(counts, counts, counts, st.floats(-5, 4_000), shares)
def test_momentum_stays_within_its_scale(
    day: int, week: int, ever: int, observed: float, importance: float
) -> None:
    """0 to 10, whatever happened; a stranger is observed for a day at least."""
    value = momentum(ActivityCounts(day, week, ever), observed, importance)
    assert 0 <= value <= 10
    if observed < 1:
        assert value == momentum(ActivityCounts(day, week, ever), 1, importance)


@each_row(
    ("value", "pace"),
    [(10, "surging"), (7, "surging"), (6.99, "active"), (4, "active"), (3.99, "quiet"),
     (1.5, "quiet"), (1.49, "dormant"), (0, "dormant")],
)  # fmt: skip
def test_paces_begin_where_they_say(value: float, pace: str) -> None:
    """At the number itself, not after it."""
    assert pace_of(value) == pace


def test_forgetting_risk_is_that_of_the_reference() -> None:
    """30 days, importance 0.5, heat 17.5: 24.75; nothing for what is kept."""
    assert forgetting_risk(17.5, 0.5, 30) == pytest.approx(24.75)
    assert forgetting_risk(17.5, 0.5, 30, exempt=True) == 0.0


@pytest.mark.parametrize(("warmth", "importance", "since"), [(100, 0, 99), (0, 1, 99), (0, 0, 0)])
def test_nothing_hot_important_or_new_is_ripe(
    warmth: float, importance: float, since: float
) -> None:
    """Each alone is enough to keep a memory; a date in the future is no age."""
    assert forgetting_risk(warmth, importance, since) == 0.0
    assert forgetting_risk(warmth, importance, -since) == 0.0
