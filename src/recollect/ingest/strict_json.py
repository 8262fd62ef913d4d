"""JSON by the letter: no NaN, no key twice, no depth or number that hurts."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from recollect.errors import BadText, TooLarge

DEPTH = 64
_LONGEST_NUMBER = 20  # digits; 64 bits need no more
# A string without an end is taken to the end of the text: trying again from every quote
# inside it would take forever.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def strict_json(text: str) -> Any:
    """The value of a JSON text. Raises BadText or TooLarge with a sentence."""
    _check_depth(text)
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_short,
        )
    except json.JSONDecodeError as error:
        raise BadText(f"not JSON: {error.msg.lower()} at column {error.colno}") from error


def _check_depth(text: str) -> None:
    """Before parsing, because the parser goes down one call for every bracket."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > DEPTH:
            raise TooLarge("the JSON", limit=DEPTH, actual=depth, unit="levels deep")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise BadText(f"not JSON we take: the key {twice!r:.80} stands there twice")
    return made


def _refuse_constant(name: str) -> None:
    raise BadText(f"not JSON: {name} is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise BadText(f"not JSON we take: {digits:.40} is beyond any number we can keep")
    return value


def _short(digits: str) -> int:
    if len(digits.lstrip("-")) > _LONGEST_NUMBER:
        raise BadText(f"not JSON we take: a number of {len(digits):,} digits")
    return int(digits)
