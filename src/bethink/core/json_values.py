"""Strict JSON values: UTC times, finite numbers, and a strict parser."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from bethink.core.lazy import lazy_pattern
from bethink.errors import BadText, TooLarge

Json = dict[str, Any]
JsonObjects = Iterable[Mapping[str, object]]


def iso(moment: datetime | None) -> str | None:
    """A datetime as ISO 8601 in UTC with milliseconds, or None."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_moment(moment: datetime) -> str:
    """Format a time to the minute, in UTC; a midnight, which dates have, as a date."""
    moment = moment.astimezone(UTC)
    has_time = (moment.hour, moment.minute, moment.second) != (0, 0, 0)
    return f"{moment:%Y-%m-%d %H:%M}" if has_time else f"{moment:%Y-%m-%d}"


def finite_or_none(value: float | None) -> float | None:
    """The number, or None where JSON cannot represent it."""
    return value if value is not None and math.isfinite(value) else None


MAX_JSON_DEPTH = 64
_MAX_INTEGER_DIGITS = 20  # digits; 64 bits need no more
# An unterminated string extends to the end of the text: retrying from every quote inside
# it would be quadratic.
_STRING = lazy_pattern(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_BRACKET = lazy_pattern(r"[\[\]{}]")


def parse_strict_json(text: str) -> Any:
    """Parse JSON strictly: no NaN, no duplicate keys; raise BadText or TooLarge."""
    _check_depth(text)
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_parse_finite,
            parse_int=_parse_bounded_int,
        )
    except json.JSONDecodeError as error:
        what = error.msg.lower().removesuffix(" at").removesuffix(" starting")
        raise BadText(f"not JSON: {what} at column {error.colno}") from error


def _check_depth(text: str) -> None:
    """Check the nesting before parsing, because the parser recurses per bracket."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > MAX_JSON_DEPTH:
            raise TooLarge("the JSON", limit=MAX_JSON_DEPTH, actual=depth, unit="levels deep")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise BadText(f"unsupported JSON: the key {repeated!r:.80} occurs twice")
    return unique


def _refuse_constant(name: str) -> None:
    raise BadText(f"not JSON: {name} is not a number")


def _parse_finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise BadText(f"unsupported JSON: the number {digits:.40} is too large")
    return value


def _parse_bounded_int(digits: str) -> int:
    if len(digits.lstrip("-")) > _MAX_INTEGER_DIGITS:
        raise BadText(f"unsupported JSON: a number of {len(digits):,} digits")
    return int(digits)
