"""Values as strict JSON has them: times in UTC, numbers that are numbers."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]


def iso(moment: datetime | None) -> str | None:
    """A moment as ISO 8601 in UTC with milliseconds, or nothing."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def number(value: float | None) -> float | None:
    """The number, unless JSON cannot say it."""
    return value if value is not None and math.isfinite(value) else None
