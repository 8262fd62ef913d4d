"""A moment from what a caller gives: a datetime, ISO 8601, or plain words."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time

from recollect.dates.find import find_times
from recollect.dates.names import word_set
from recollect.dates.span import TimeSpan

# What may stand around a time without saying anything else.
_AROUND = word_set(
    "the on in at of from since over am im um den dem der die das seit vom el la los las en desde"
    " le les l du à au depuis 在 从 自 的"
)
_WORD = re.compile(r"\w+")


def moment_of(value: object, now: datetime) -> datetime:
    """The moment meant, in UTC. What has no zone is taken as UTC, a day as its start.

    Raises ValueError with a sentence where nothing can be made of it.
    """
    if isinstance(value, datetime):
        return _aware(value)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    if isinstance(value, str):
        return _read(value.strip(), now)
    raise ValueError(f"{value!r} is no moment in time")


def _read(text: str, now: datetime) -> datetime:
    try:
        return _aware(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        spans = find_times(text, now, lean="past", vague=True)
    if len(spans) == 1 and spans[0].bound in ("", "since") and _is_all(text, spans[0]):
        return _aware(spans[0].start)
    raise ValueError(
        f"{text!r} is no moment in time; write 2026-03-01, 2026-03-01T14:30 or 'last Friday'"
    )


def _is_all(text: str, span: TimeSpan) -> bool:
    """Whether a text says nothing but this time."""
    rest = f"{text[: span.at]} {text[span.at + len(span.text) :]}"
    return _AROUND.issuperset(_WORD.findall(rest.lower()))


def _aware(moment: datetime) -> datetime:
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{moment} lies outside the years 1 to 9999") from error
