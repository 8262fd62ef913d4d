"""What kind of question it is: for one thing or several, for a time, over what in between."""

from __future__ import annotations

import re

_SEVERAL = re.compile(
    r"\b(?:both|all|each|every|list|together|in common|(?:types?|kinds?|sorts?) of"
    r"|how many|how often|who (?:all|else)|what else)\b"
    # "What activities does ...", "which of her books ...", "what are ...": a list is wanted.
    r"|\b(?:what|which)(?: \w+){0,2}? \w+[^s\W]s\b"
    r"|\b(?:what|which|who) (?:are|were|have|do)\b"
    r"|\b(?:what|which|where|who)\b.*\b(?:has|have)\b",
    re.IGNORECASE,
)
_BRIDGE = re.compile(
    r"\b(?:who|whom|whose|which|that) \w+.*\b(?:who|whom|whose|which|that) \w+"
    r"|\w(?:'s|’s) \w+(?:'s|’s) \w|\b\w+(?:'s|’s) (?:\w+ )?(?:suggestion|recommendation|advice)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(r"\b(?:before|after|since|until|by the time|first|last|then)\b", re.IGNORECASE)
_WHEN = re.compile(r"\b(?:when|what (?:date|day|month|year|time)|how long)\b", re.IGNORECASE)
_PARTS = re.compile(
    r"\s*(?:[,;]?\s+and\s+(?=(?:what|who|when|where|which|why|how)\b)|[?;]\s+)", re.IGNORECASE
)


def asks_for_several(text: str) -> bool:
    """Whether one memory will hardly be the whole answer."""
    return _SEVERAL.search(text) is not None or len(parts(text)) > 1


def leads_over(text: str) -> bool:
    """Whether it names what it asks about by way of something else."""
    return _BRIDGE.search(text) is not None


def asks_order(text: str) -> bool:
    """Whether it asks when, or what came before or after something."""
    return _WHEN.search(text) is not None or _ORDER.search(text) is not None


def parts(text: str) -> tuple[str, ...]:
    """The questions that are joined in one."""
    found = [part.strip(" ?;,.") for part in _PARTS.split(text)]
    return tuple(part for part in found if len(part.split()) > 1) or (text,)
