"""A log of what may happen many times a second: one line a minute."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_S = 60.0


class SparseLog:
    """Passes on at most one message a minute, with the number of those it left out."""

    def __init__(
        self, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._next = 0.0
        self._left_out = 0

    def __call__(self, message: str) -> None:
        if self._clock() < self._next:
            self._left_out += 1
            return
        more = f" ({self._left_out:,} more such events before)" if self._left_out else ""
        self._next, self._left_out = self._clock() + _EVERY_S, 0
        self._write(message + more)
