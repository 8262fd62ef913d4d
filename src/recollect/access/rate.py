"""How often somebody may ask: a bucket of tries each, filled again as time goes by."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable

from recollect.errors import BadSetting

USUAL = 1200  # requests a minute
MOST_KEPT = 10_000  # callers remembered; the one longest away is forgotten first
_RATE = re.compile(r"([0-9]{1,7})(?:/min)?")


def read_rate(written: str) -> int:
    """``600/min`` or ``600``; 0 sets no limit."""
    found = _RATE.fullmatch(written)
    if found is None:
        raise BadSetting(f"{written!r:.40} is no rate", remedy="for example 600/min")
    return int(found[1])


class Buckets:
    """A bucket for each caller, which holds a minute's tries. Used from one thread."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = a_minute
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> int:
        """Takes one try. Gives the seconds to wait where none is left, else 0."""
        if not self._most:
            return 0
        now = self._clock()
        left, since = self._left.get(caller, (float(self._most), now))
        left = min(self._most, left + (now - since) * self._most / 60)
        wait = 0 if left >= 1 else max(1, math.ceil((1 - left) * 60 / self._most))
        self._left[caller] = (left if wait else left - 1, now)
        self._left.move_to_end(caller)
        if len(self._left) > MOST_KEPT:
            self._left.popitem(last=False)
        return wait
