"""The numbers of a profile that can be turned, each with the range it is tried in."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from recollect.bounds import Bounds, bounds
from recollect.errors import Refused
from recollect.profile import SLOTS, Profile

# The gate trades recall for silence; a search that only sees recall would open it.
TURNED = tuple(slot for slot in SLOTS if slot != "gate")
REACH = 4.0
_FINEST = 3


@dataclass(frozen=True, slots=True)
class Knob:
    """One number: where it is, what it is called, and between what it may lie."""

    slot: str
    place: int
    field: str
    name: str
    low: float
    high: float
    whole: bool

    def read(self, profile: Profile) -> float:
        """Its value in a profile."""
        value: float = getattr(_part(profile, self), self.field)
        return value

    def turn(self, profile: Profile, value: float) -> Profile:
        """The profile with this one number changed, held within its range."""
        held = min(self.high, max(self.low, value))
        chosen: float = round(held) if self.whole else _short(held)
        part = dataclasses.replace(_part(profile, self), **{self.field: chosen})
        if self.slot == "fuse":
            return dataclasses.replace(profile, fuse=part)
        parts = list(getattr(profile, self.slot))
        parts[self.place] = part
        changes: dict[str, Any] = {self.slot: tuple(parts)}
        return dataclasses.replace(profile, **changes)

    def move(self, value: float, step: float, random: Random) -> float:
        """A value nearby: ``step`` of the way to either end of the range, about."""
        if self.low > 0:
            width = step * math.log(self.high / self.low)
            return value * math.exp(random.gauss(0.0, width / 2))
        return value + random.gauss(0.0, step * (self.high - self.low) / 2)


def knobs(profile: Profile, only: Sequence[str] = ()) -> list[Knob]:
    """Every knob of a profile, or those whose names fit one of the patterns.

    Of channels the fractions (weights and parameters of the score), of the fusion
    and the stages whole numbers too. A whole number of 0 means off and stays.
    """
    found = [
        *_of("channels", profile.channels, whole=False),
        *_of("fuse", (profile.fuse,), whole=True),
        *(knob for slot in TURNED for knob in _of(slot, profile.slot(slot), whole=True)),
    ]
    chosen = [
        knob
        for knob in found
        if not only or any(fnmatchcase(knob.name, pattern) for pattern in only)
    ]
    if not chosen:
        there = ", ".join(knob.name for knob in found) or "none"
        raise Refused("no setting fits", remedy=f"there are: {there}")
    return chosen


def _of(slot: str, parts: Sequence[Any], *, whole: bool) -> Iterator[Knob]:
    for place, part in enumerate(parts):
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            name = f"{slot}.{part.name}.{field.name}"
            allowed = bounds(slot, field.name)
            if isinstance(value, float):
                low, high = sorted((value / REACH, value * REACH)) if value else (0.0, 1.0)
                yield Knob(slot, place, field.name, name, *_within(low, high, allowed), whole=False)
            elif whole and isinstance(value, int) and not isinstance(value, bool) and value > 0:
                low, high = max(1.0, value // REACH), value * REACH
                yield Knob(slot, place, field.name, name, *_within(low, high, allowed), whole=True)


def _within(low: float, high: float, allowed: Bounds) -> tuple[float, float]:
    return max(low, allowed.low), min(high, allowed.high)


def _part(profile: Profile, knob: Knob) -> Any:
    return profile.fuse if knob.slot == "fuse" else getattr(profile, knob.slot)[knob.place]


def _short(value: float) -> float:
    """Three significant digits: more would only pretend to be known."""
    return float(f"{value:.{_FINEST}g}")
