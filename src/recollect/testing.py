"""Parts for tests: clocks that stand still. Never used behind a default."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(slots=True)
class FixedClock:
    """A clock that stands still until told otherwise."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        """Moves on by so many ``days``, ``hours``, ``seconds``."""
        self.now += timedelta(**by)
