"""Rate limiting: one token bucket per caller, refilled continuously."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable

from bethink.errors import BadSetting

DEFAULT_RATE = 1200  # requests a minute
MAX_CALLERS = 10_000  # callers tracked; the least recent one is dropped first
_RATE = re.compile(r"([0-9]{1,7})(?:/min)?")


def parse_rate(text: str) -> int:
    """Parse a rate such as ``600/min`` or ``600``; 0 means no limit."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise BadSetting(f"{text!r:.40} is not a rate", remedy="for example 600/min")
    return int(found[1])


class TokenBucketLimiter:
    """Token bucket per caller, with a capacity of one minute's requests. Not thread-safe."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def acquire(self, caller: str) -> int:
        """Take one token; return 0, or the seconds to wait if the bucket is empty."""
        if not self._per_minute:
            return 0
        now = self._clock()
        left, since = self._buckets.get(caller, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - since) * self._per_minute / 60)
        wait = 0 if left >= 1 else max(1, math.ceil((1 - left) * 60 / self._per_minute))
        self._buckets[caller] = (left if wait else left - 1, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        return wait
