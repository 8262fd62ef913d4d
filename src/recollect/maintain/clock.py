"""Whether the clock can be believed: a jump ahead makes everything look old at once."""

from __future__ import annotations

from datetime import datetime, timedelta

from recollect.maintain.journal import last_write
from recollect.ports import Store

MOST_AHEAD = timedelta(days=1)


def days_ahead(store: Store, now: datetime) -> float | None:
    """How many days the clock is ahead of the last thing anybody wrote, where that is more
    than a day. Either nobody wrote for so long, or the clock has jumped: who reads the
    number can tell. Nothing written at all gives None."""
    last = last_write(store)
    if last is None or now - last <= MOST_AHEAD:
        return None
    return (now - last).total_seconds() / 86_400
