"""Times as the file keeps them: whole milliseconds since 1970, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recollect.errors import Refused

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS = 86_400_000
_MS = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """The millisecond a moment falls into."""
    if moment.tzinfo is None:
        raise Refused(
            f"the time {moment.isoformat()} has no time zone",
            remedy="say which, for example +00:00",
        )
    return (moment - EPOCH) // _MS


def ceil_ms(moment: datetime) -> int:
    """The first whole millisecond at or after a moment: what `>=` and `<` compare with."""
    return -((EPOCH - moment) // _MS) if moment.tzinfo is not None else to_ms(moment)


def to_ms_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_ms(moment)


def from_ms(ms: int) -> datetime:
    # Through timedelta, not a float of seconds: exact up to the year 9999.
    return EPOCH + timedelta(milliseconds=ms)


def from_ms_or_none(ms: int | None) -> datetime | None:
    return None if ms is None else EPOCH + timedelta(milliseconds=ms)
