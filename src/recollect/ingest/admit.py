"""The rules a draft must keep before any work is done on it, and its fields in one shape.

A text is stored as it came or refused by name; nothing is cut short or repaired.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.dates import moment_of
from recollect.errors import BadText, Refused, TooLarge
from recollect.ids import is_valid_id
from recollect.model import LEVELS, Draft, layer_named, layers_in_words
from recollect.text import has_substance, unkeepable

TEXT_BYTES = 64 * 1024
METADATA_BYTES = 32 * 1024
METADATA_DEPTH = 8
TAGS = 64
PARENTS = 1_000
TAG_CHARACTERS = 200
FIELD_CHARACTERS = 1_000
KEY_CHARACTERS = 200
BATCH_DRAFTS = 1_000

# Made by maintenance from other memories, whose trust is its limit; nobody else may say so.
DERIVED = "derived"
# The most trust a class of source can claim; users and owners may claim any.
TRUST_CEILING = {
    "owner": 3,
    "user": 2,
    "agent": 2,
    "tool": 1,
    "import": 1,
    "web": 0,
    "unknown": 0,
    DERIVED: 3,
}
SELF_SPEAKING = frozenset({"owner", "user"})

_FIELDS = (
    *("kind", "layer", "topic", "tier", "caption", "language", "speaker", "session", "parent"),
)
_RANGES: tuple[tuple[str, float, float, bool], ...] = (
    ("trust", 0, 3, True),
    ("integrity", 0, 4, True),
    ("credibility", 0, 6, True),
    ("classification", 0, 3, True),
    ("seq", 0, 2**53, True),
    ("emotion", -5, 5, False),
    ("importance", 0, 1, False),
    ("confidence", 0, 1, False),
)
_TIMES = ("occurred_at", "occurred_end", "valid_from", "valid_to")


def admit(draft: Draft, now: datetime) -> Draft:
    """The draft with its fields in one shape; raises Refused where it breaks a rule."""
    _check_text(draft)
    _check_names(draft)
    _check_numbers(draft)
    if draft.metadata:
        check_metadata(draft.metadata)
    return _in_shape(draft, now)


def _check_text(draft: Draft) -> None:
    _check_string("text", draft.text)
    _check_bytes("text", draft.text)
    if not has_substance(draft.text):
        raise Refused("there is nothing to remember: no letter, digit or symbol in the text")
    if draft.original is not None:
        _check_string("original", draft.original)
        _check_bytes("original", draft.original)


def _check_string(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise Refused(f"{name} must be text, not {type(value).__name__}")
    found = unkeepable(value)
    if found:
        position, character = found
        raise BadText(
            f"{name} holds a {character} at character {position + 1}",
            remedy="remove it; it cannot be stored",
        )


def _check_bytes(name: str, value: str) -> None:
    # Counting bytes costs a copy, so only texts that could be too long are counted.
    if len(value) * 4 > TEXT_BYTES:
        size = len(value.encode())
        if size > TEXT_BYTES:
            raise TooLarge(name, limit=TEXT_BYTES, actual=size)


def _check_names(draft: Draft) -> None:
    for name in _FIELDS:
        value = getattr(draft, name)
        if value is not None:
            _check_short(name, value, FIELD_CHARACTERS)
    _check_short("source", draft.source, FIELD_CHARACTERS)
    _check_short("source_class", draft.source_class, FIELD_CHARACTERS)
    _check_list("tags", draft.tags)
    _check_list("entities", draft.entities)
    if draft.key is not None:
        _check_short("key", draft.key, KEY_CHARACTERS)
    if draft.id is not None and not (isinstance(draft.id, str) and is_valid_id(draft.id)):
        raise Refused(
            "id is not one that can be taken over",
            remedy="use up to 64 letters, digits and _ . : - or leave it out",
        )
    if draft.derives_from:
        _check_parents(draft.derives_from)
    if draft.level not in LEVELS:
        raise Refused(f"there is no level {draft.level!r}", remedy=f"one of {', '.join(LEVELS)}")
    if not draft.source.strip():
        raise Refused("source must say where the memory comes from")
    if draft.source_class not in TRUST_CEILING:
        raise Refused(
            f"there is no source class {draft.source_class!r}",
            remedy=f"one of {', '.join(TRUST_CEILING)}",
        )


def _check_parents(values: object) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise Refused(f"derives_from must be a list of ids, not {type(values).__name__}")
    if len(values) > PARENTS:
        raise TooLarge("derives_from", limit=PARENTS, actual=len(values), unit="entries")
    for value in values:
        if not isinstance(value, str) or not is_valid_id(value):
            raise Refused(f"derives_from names memories by their ids, not by {value!r:.40}")


def _check_short(name: str, value: object, limit: int) -> None:
    _check_string(name, value)
    if isinstance(value, str) and len(value) > limit:
        raise TooLarge(name, limit=limit, actual=len(value), unit="characters")


def _check_list(name: str, values: object) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise Refused(f"{name} must be a list of texts, not {type(values).__name__}")
    if len(values) > TAGS:
        raise TooLarge(name, limit=TAGS, actual=len(values), unit="entries")
    for value in values:
        _check_short(f"one of the {name}", value, TAG_CHARACTERS)
        if not value.strip():
            raise Refused(f"one of the {name} is empty")


def _check_numbers(draft: Draft) -> None:
    for name, least, most, whole in _RANGES:
        value = getattr(draft, name)
        if value is None and name in ("trust", "seq"):
            continue
        allowed = int if whole else int | float
        good = isinstance(value, allowed) and not isinstance(value, bool)
        if not good or not least <= value <= most:
            kind = "a whole number" if whole else "a number"
            raise Refused(f"{name} must be {kind} from {least:g} to {most:g}, not {value!r:.40}")
    for name in ("pinned", "force"):
        if not isinstance(getattr(draft, name), bool):
            raise Refused(f"{name} must be true or false, not {getattr(draft, name)!r:.40}")


def check_metadata(metadata: object) -> None:
    """Refuses what is not strict JSON, or too deep, or too large."""
    if not isinstance(metadata, Mapping):
        raise Refused(f"metadata must be a JSON object, not {type(metadata).__name__}")
    if _check_json(metadata, 1, 0) > METADATA_BYTES:
        raise TooLarge("metadata", limit=METADATA_BYTES, actual=METADATA_BYTES + 1)
    size = len(json.dumps(plain(metadata), ensure_ascii=False, allow_nan=False).encode())
    if size > METADATA_BYTES:
        raise TooLarge("metadata", limit=METADATA_BYTES, actual=size)


def _check_json(value: Any, depth: int, seen: int) -> int:
    """Counts the values inside; stops where they are more than could be kept."""
    if seen > METADATA_BYTES:
        return seen
    if isinstance(value, str):
        _check_string("metadata", value)
    elif isinstance(value, Mapping | list | tuple):
        if depth > METADATA_DEPTH:
            raise TooLarge("metadata", limit=METADATA_DEPTH, actual=depth, unit="levels deep")
        if isinstance(value, Mapping):
            for key in value:
                _check_string("a key of metadata", key)
            value = value.values()
        for inner in value:
            seen = _check_json(inner, depth + 1, seen)
    else:
        _check_scalar(value)
    return seen + 1


def _check_scalar(value: object) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Refused(f"metadata holds {value}, which is no JSON number")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise Refused("metadata holds a whole number of more than 64 bits")
    else:
        raise Refused(f"metadata holds a {type(value).__name__}, which is not JSON")


def plain(value: Any) -> Any:
    """Mappings as dicts and tuples as lists, so that JSON can be written."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def _in_shape(draft: Draft, now: datetime) -> Draft:
    changes: dict[str, Any] = {}
    for name in ("kind", "layer", "topic", "tier", "caption", "speaker", "session"):
        value = getattr(draft, name)
        if value is not None and value != (stripped := value.strip() or None):
            changes[name] = stripped
    for name in _TIMES:
        value = getattr(draft, name)
        if value is not None:
            changes[name] = _moment(name, value, now)
    if draft.layer is not None:
        changes["layer"] = layer_of(draft.layer)
    if type(draft.derives_from) is not tuple:
        changes["derives_from"] = tuple(draft.derives_from or ())
    if type(draft.tags) is not tuple or type(draft.entities) is not tuple:
        changes |= {"tags": tuple(draft.tags), "entities": tuple(draft.entities)}
    shaped = draft._replace(**changes) if changes else draft
    _check_order(shaped.occurred_at, shaped.occurred_end, "occurred_end", "occurred_at")
    _check_order(shaped.valid_from, shaped.valid_to, "valid_to", "valid_from")
    return shaped


def _moment(name: str, value: object, now: datetime) -> datetime:
    try:
        return moment_of(value, now)
    except ValueError as error:
        raise Refused(f"{name}: {error}") from error


def _check_order(start: datetime | None, end: datetime | None, later: str, earlier: str) -> None:
    if start is not None and end is not None and end < start:
        raise Refused(f"{later} lies before {earlier}")


def layer_of(name: str) -> str | None:
    """The layer a name or one of its aliases stands for."""
    if not name.strip():
        return None
    layer = layer_named(name)
    if layer is None:
        raise Refused(f"there is no layer {name!r}", remedy=f"one of {layers_in_words()}")
    return layer


def trust_of(draft: Draft) -> int:
    """The trust a draft gets: what its class allows; only people may claim more."""
    ceiling = TRUST_CEILING[draft.source_class]
    if draft.trust is None:
        return ceiling
    return draft.trust if draft.source_class in SELF_SPEAKING else min(draft.trust, ceiling)
