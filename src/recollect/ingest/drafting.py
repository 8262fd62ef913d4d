"""Makes a draft of what a caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.errors import Refused
from recollect.model import Draft


def make_draft(given: Draft | Mapping[str, Any] | str) -> Draft:
    """A draft from what a caller gives: text alone, a mapping, or a draft."""
    if isinstance(given, Draft):
        return given
    if isinstance(given, str):
        return Draft(given)
    known = set(Draft._fields)
    for name in given:
        if name not in known:
            raise Refused(
                f"there is no field {name!r}", remedy=f"allowed: {', '.join(sorted(known))}"
            )
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    if "text" not in values:
        raise Refused("a memory needs a text")
    return Draft(**values)
