"""Heat of a memory, momentum of an entity, and forgetting risk: the formulas."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from bethink.core.named_tuple import NamedTuple

Band = Literal["hot", "warm", "cold", "frozen"]
Pace = Literal["surging", "active", "quiet", "dormant"]

BANDS: tuple[Band, ...] = ("hot", "warm", "cold", "frozen")
# Out of reach without any use: freshness and importance make 35 at most.
BANDS_NEEDING_USE = frozenset(("hot", "warm"))
QUIET_AFTER = timedelta(days=7)
UNKNOWN_IMPORTANCE = 0.5
COMPRESS_FROM, DROP_FROM = 50.0, 200.0

BAND_THRESHOLDS: tuple[tuple[float, Band], ...] = ((70.0, "hot"), (40.0, "warm"), (20.0, "cold"))
_PACE_THRESHOLDS: tuple[tuple[float, Pace], ...] = (
    (7.0, "surging"),
    (4.0, "active"),
    (1.5, "quiet"),
)
FRESHNESS = ((7.0, 20.0), (30.0, 10.0), (90.0, 0.0))
STALENESS = -10.0


class UseCounts(NamedTuple):
    """Use counts of a memory: in the last 30 days, in the last 90 days, in total."""

    in_30_days: int = 0
    in_90_days: int = 0
    in_all: int = 0


class ActivityCounts(NamedTuple):
    """Counts of new memories about an entity: in a day, in a week, in total."""

    in_1_day: int = 0
    in_7_days: int = 0
    in_all: int = 0


def heat(uses: UseCounts, days_since: float, importance: float = UNKNOWN_IMPORTANCE) -> float:
    """Heat from 0 to 100, by recent use, total use, days since the last use and importance.

    A memory that was never used counts from the day it was stored.
    """
    fresh = next((bonus for days, bonus in FRESHNESS if days_since <= days), STALENESS)
    recent = min(3.0 * uses.in_30_days, 30.0) + min(float(uses.in_90_days), 20.0)
    weight = 15.0 * min(1.0, max(0.0, importance))
    return min(100.0, max(0.0, recent + fresh + min(0.5 * uses.in_all, 15.0) + weight))


def band_of(value: float) -> Band:
    """The heat band: hot from 70, warm from 40, cold from 20, else frozen."""
    return next((band for minimum, band in BAND_THRESHOLDS if value >= minimum), "frozen")


def momentum(
    seen: ActivityCounts, days_observed: float, mean_importance: float = UNKNOWN_IMPORTANCE
) -> float:
    """Momentum from 0 to 10: 0.4 × recent importance + 0.3 × velocity + 0.3 × trend.

    ``mean_importance`` is that of the last week's memories; a new entity counts as observed
    for at least one day.
    """
    quality = min(10.0, 10.0 * mean_importance)
    return 0.4 * quality + 0.3 * _velocity(seen) + 0.3 * _trend(seen, days_observed)


def _velocity(seen: ActivityCounts) -> float:
    if seen.in_1_day >= 1:
        return 10.0 if seen.in_1_day >= 3 else 7.0
    if seen.in_7_days >= 1:
        return 4.0 if seen.in_7_days >= 3 else 2.0
    return 0.0


def _trend(seen: ActivityCounts, days_observed: float) -> float:
    """The last week compared with an average one."""
    usual = seen.in_all / max(1.0, days_observed) * 7.0
    if usual <= 0:
        return 5.0 if seen.in_7_days else 0.0
    ratio = seen.in_7_days / usual
    if ratio >= 3:
        return 10.0
    if ratio >= 2:
        return 7.0
    return 4.0 if ratio >= 1 else 4.0 * ratio


def pace_of(value: float) -> Pace:
    """The pace: surging from 7, active from 4, quiet from 1.5, else dormant."""
    return next((pace for minimum, pace in _PACE_THRESHOLDS if value >= minimum), "dormant")


def forgetting_risk(
    heat_value: float, importance: float, days_since: float, *, exempt: bool = False
) -> float:
    """Forgetting risk: compress a memory from 50, drop it from 200.

    It grows with the square of the days since the last use. An ``exempt`` memory (protected,
    or a goal) has no risk.
    """
    if exempt:
        return 0.0
    days = max(0.0, days_since)
    return (1 - heat_value / 100) * (1 - importance) * days * (1 + days / 30)
