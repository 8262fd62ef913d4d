"""How warm a memory is, how much is going on around an entity, how ripe for forgetting."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

Band = Literal["hot", "warm", "cold", "frozen"]
Pace = Literal["surging", "active", "quiet", "dormant"]

BANDS: tuple[Band, ...] = ("hot", "warm", "cold", "frozen")
# Out of reach without any use: freshness and importance make 35 at most.
BANDS_OF_USE = frozenset(("hot", "warm"))
STALE_AFTER = timedelta(hours=1)
QUIET_AFTER = timedelta(days=7)
UNKNOWN_IMPORTANCE = 0.5
COMPRESS_FROM, DROP_FROM = 50.0, 200.0

_BAND_FROM: tuple[tuple[float, Band], ...] = ((70.0, "hot"), (40.0, "warm"), (20.0, "cold"))
_PACE_FROM: tuple[tuple[float, Pace], ...] = ((7.0, "surging"), (4.0, "active"), (1.5, "quiet"))
_FRESHNESS = ((7.0, 20.0), (30.0, 10.0), (90.0, 0.0))
_STALENESS = -10.0


class Uses(NamedTuple):
    """How often a memory was used: in the last 30 days, in the last 90, ever."""

    in_30_days: int = 0
    in_90_days: int = 0
    in_all: int = 0


class Happenings(NamedTuple):
    """How often something new came up about an entity: in a day, in a week, ever."""

    in_1_day: int = 0
    in_7_days: int = 0
    in_all: int = 0


def heat(uses: Uses, days_since: float, importance: float = UNKNOWN_IMPORTANCE) -> float:
    """0 to 100, from use lately, use ever, the days since the last and the importance.

    A memory that was never used counts from the day it was stored.
    """
    fresh = next((bonus for days, bonus in _FRESHNESS if days_since <= days), _STALENESS)
    lately = min(3.0 * uses.in_30_days, 30.0) + min(float(uses.in_90_days), 20.0)
    weight = 15.0 * min(1.0, max(0.0, importance))
    return min(100.0, max(0.0, lately + fresh + min(0.5 * uses.in_all, 15.0) + weight))


def band_of(value: float) -> Band:
    """Hot from 70, warm from 40, cold from 20, else frozen."""
    return next((band for least, band in _BAND_FROM if value >= least), "frozen")


def momentum(
    seen: Happenings, days_observed: float, mean_importance: float = UNKNOWN_IMPORTANCE
) -> float:
    """0 to 10: 0.4 × how important lately, 0.3 × how often lately, 0.3 × against the usual.

    ``mean_importance`` is that of the last week's memories; a stranger is observed for
    one day at least.
    """
    quality = min(10.0, 10.0 * mean_importance)
    return 0.4 * quality + 0.3 * _velocity(seen) + 0.3 * _against_usual(seen, days_observed)


def _velocity(seen: Happenings) -> float:
    if seen.in_1_day >= 1:
        return 10.0 if seen.in_1_day >= 3 else 7.0
    if seen.in_7_days >= 1:
        return 4.0 if seen.in_7_days >= 3 else 2.0
    return 0.0


def _against_usual(seen: Happenings, days_observed: float) -> float:
    """The last week against an average one."""
    usual = seen.in_all / max(1.0, days_observed) * 7.0
    if usual <= 0:
        return 5.0 if seen.in_7_days else 0.0
    ratio = seen.in_7_days / usual
    if ratio >= 3:
        return 10.0
    if ratio >= 2:
        return 7.0
    return 4.0 if ratio >= 1 else 4.0 * ratio


def is_stale(worked_out: datetime | None, last_seen: datetime | None, now: datetime) -> bool:
    """Whether a momentum must be worked out anew: after an hour, or once something new came
    up; and whatever was worked out later than the moment asked for says nothing about it."""
    if worked_out is None or not timedelta(0) <= now - worked_out <= STALE_AFTER:
        return True
    return last_seen is not None and last_seen > worked_out


def pace_of(value: float) -> Pace:
    """Surging from 7, active from 4, quiet from 1.5, else dormant."""
    return next((pace for least, pace in _PACE_FROM if value >= least), "dormant")


def forgetting_risk(
    warmth: float, importance: float, days_since: float, *, kept: bool = False
) -> float:
    """How ripe a memory is for forgetting: from 50 to be compressed, from 200 to be dropped.

    Grows with the square of the days since its last use. What is ``kept`` (protected,
    or a goal) is never ripe.
    """
    if kept:
        return 0.0
    days = max(0.0, days_since)
    return (1 - warmth / 100) * (1 - importance) * days * (1 + days / 30)
