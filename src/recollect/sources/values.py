"""Reads what others wrote: a value is taken as what it should be, or not at all."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from recollect.ingest.extract import ENTITY_KINDS
from recollect.sources.said.wrappers import keepable
from recollect.text import shorten

MOST_WORDS = 32  # tags or entities of one entry
_TAG_CHARACTERS = 100
_NAME_CHARACTERS = 150
_META_CHARACTERS = 500
_META_KEYS = 24
_FURTHEST = 100_000_000_000  # seconds: the year 5138
_EARLIEST = -62_000_000_000
_KINDS = {
    "people": "person", "human": "person", "user": "person", "team member": "person",
    "technology": "tool", "software": "tool", "library": "tool", "framework": "tool",
    "database": "tool", "service": "tool", "repository": "project", "repo": "project",
    "codebase": "project", "product": "project", "path": "file", "document": "file",
    "component": "module", "package": "module", "method": "function", "type": "class",
    "issue": "ticket", "bug": "ticket", "server": "host", "idea": "concept",
}  # fmt: skip
_BLANKS = re.compile(r"\s+")


def text_of(value: object) -> str:
    """A text without blanks around it; empty where there is none."""
    return value.strip() if isinstance(value, str) else ""


def line_of(value: object, limit: int = _NAME_CHARACTERS) -> str:
    """A text on one line, cut where it is longer than names are; what no store can keep is
    left out of it, for a memory is not refused because of its title."""
    return shorten(_BLANKS.sub(" ", keepable(text_of(value))).strip(), limit)


def mapping_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def words_of(value: object) -> tuple[str, ...]:
    """Tags, each once: of a list of texts, or of one text with commas."""
    parts = value.split(",") if isinstance(value, str) else list_of(value)
    tags = (line_of(part, _TAG_CHARACTERS).lstrip("#") for part in parts)
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:MOST_WORDS]


def number_of(value: object, least: float, most: float, otherwise: float) -> float:
    """A number in a range; what lies beyond is taken to its end."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return otherwise
    return max(least, min(most, float(value)))


def time_of(value: object) -> datetime | None:
    """A moment: of ISO words, or counted from 1970 in seconds or in smaller units."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, str):
        return _written(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for unit in (1, 1_000, 1_000_000):
        if _EARLIEST < value / unit < _FURTHEST:
            return datetime.fromtimestamp(value / unit, UTC)
    return None


def _written(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def entity_of(kind: object, name: object) -> str:
    """An entity as drafts name it, ``kind:name``; empty where it has no name."""
    told, called = line_of(kind).lower().replace("_", " "), line_of(name)
    ours = told if told in ENTITY_KINDS else _KINDS.get(told, "other")
    return f"{ours}:{called}" if called else ""


def details(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth keeping beside a memory: short values, and no more than a few."""
    kept: dict[str, Any] = {}
    for key, value in given.items():
        name = keepable(str(key))[:100]
        if isinstance(value, str) and (text := text_of(value)):
            kept[name] = shorten(keepable(text), _META_CHARACTERS)
        elif isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**53:
            kept[name] = value
        elif isinstance(value, list | tuple) and (words := words_of(list(value))):
            kept[name] = list(words)
        if len(kept) == _META_KEYS:
            break
    return kept
