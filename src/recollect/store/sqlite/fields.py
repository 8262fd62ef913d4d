"""The fields of an export's records: how each is written, read back and checked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from recollect.model import HAPPENINGS, LEVELS, LIFECYCLES, ROLES, THREAD_KINDS, THREAD_STATES
from recollect.store.sqlite.clock import from_ms, to_ms
from recollect.text import unkeepable


class Kind(NamedTuple):
    """What a field holds: in words, from the file to JSON, and back with a check.

    ``read`` raises ValueError or TypeError for what does not belong there.
    """

    words: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


class Field(NamedTuple):
    """A field of a record; ``column`` is its name in the file where that differs."""

    name: str
    kind: Kind
    needed: bool = True
    column: str = ""


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or unkeepable(value):
        raise ValueError
    return value


def _name(value: Any) -> str:
    if not _text(value):
        raise ValueError
    return str(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    if not math.isfinite(value):
        raise ValueError
    return float(value) + 0.0


def _flag(value: Any) -> int:
    if not isinstance(value, bool):
        raise TypeError
    return int(value)


def _time(value: Any) -> int:
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError
    return to_ms(moment)


def _write_time(ms: int) -> str:
    return from_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _texts(value: Any) -> str:
    if not isinstance(value, list):
        raise TypeError
    return _compact([_text(part) for part in value])


def _times(value: Any) -> str:
    if not isinstance(value, list):
        raise TypeError
    return _compact([_time(part) for part in value])


def _write_times(stored: str) -> list[str]:
    return [_write_time(ms) for ms in json.loads(stored)]


def _regained(value: Any) -> str:
    if not isinstance(value, list):
        raise TypeError
    return _compact([[_time(at), _real(left), _time(since)] for at, left, since in value])


def _write_regained(stored: str) -> list[list[Any]]:
    told = json.loads(stored)
    return [[_write_time(at), left, _write_time(since)] for at, left, since in told]


def _wholes(value: Any) -> list[int]:
    if not isinstance(value, list):
        raise TypeError
    return [_whole(part) for part in value]


def _object(value: Any) -> str:
    if not isinstance(value, Mapping):
        raise TypeError
    written = json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _text(written)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _range(low: int, high: int) -> Kind:
    def read(value: Any) -> int:
        if not low <= _whole(value) <= high:
            raise ValueError
        return int(value)

    return Kind(f"a whole number from {low} to {high}", _same, read)


def _one_of(*allowed: str) -> Kind:
    def read(value: Any) -> str:
        if value not in allowed:
            raise ValueError
        return str(value)

    return Kind(f"one of {', '.join(allowed)}", _same, read)


def _or_null(kind: Kind) -> Kind:
    return Kind(
        f"{kind.words} or null",
        lambda value: None if value is None else kind.write(value),
        lambda value: None if value is None else kind.read(value),
    )


def _digits(value: Any) -> str:
    if not (_text(value).isascii() and value.isdigit() and len(value) < 16):
        raise ValueError
    return str(value)


_DIGITS = Kind("a whole number as a text", _same, _digits)
TEXT = Kind("a text", _same, _text)
NAME = Kind("a text that is not empty", _same, _name)
WHOLE = Kind("a whole number", _same, _whole)
COUNT = Kind("a whole number from 1 up", _same, _range(1, 2**63 - 1).read)
REAL = Kind("a number", _same, _real)
FLAG = Kind("true or false", bool, _flag)
TIME = Kind("a time with its zone, like 2026-01-31T08:00:00Z", _write_time, _time)
TEXTS = Kind("a list of texts", json.loads, _texts)
TIMES = Kind("a list of times", _write_times, _times)
REGAINED = Kind("a list of [time, number, time]", _write_regained, _regained)
WHOLES = Kind("a list of whole numbers", json.loads, _wholes)
OBJECT = Kind("an object", json.loads, _object)

ITEM = (
    Field("id", NAME),
    Field("rev", COUNT),
    Field("level", _one_of(*LEVELS)),
    Field("kind", TEXT),
    Field("layer", _or_null(TEXT), needed=False),
    Field("topic", _or_null(TEXT), needed=False),
    Field("tier", TEXT),
    Field("text", TEXT),
    Field("about", TEXT),
    Field("original", _or_null(TEXT), needed=False),
    Field("caption", _or_null(TEXT), needed=False),
    Field("language", _or_null(TEXT), needed=False),
    Field("speaker", _or_null(TEXT), needed=False),
    Field("session", _or_null(TEXT), needed=False),
    Field("seq", _or_null(WHOLE), needed=False),
    Field("parent", _or_null(NAME), needed=False),
    Field("subject", _or_null(TEXT), needed=False),
    Field("attribute", _or_null(TEXT), needed=False),
    Field("source", TEXT),
    Field("source_class", TEXT),
    Field("writer", TEXT),
    Field("trust", _range(0, 3)),
    Field("integrity", _range(0, 4)),
    Field("credibility", _range(0, 6)),
    Field("classification", _range(0, 3)),
    Field("emotion", REAL),
    Field("importance", REAL),
    Field("confidence", REAL),
    Field("relevance", REAL),
    Field("pinned", FLAG),
    Field("protected", FLAG),
    Field("occurred_at", _or_null(TIME), needed=False),
    Field("occurred_end", _or_null(TIME), needed=False),
    Field("stored_at", TIME),
    Field("valid_from", _or_null(TIME), needed=False),
    Field("valid_to", _or_null(TIME), needed=False),
    Field("live_from", TIME),
    Field("tokens", WHOLE),
    Field("tags", TEXTS),
    Field("entities", TEXTS),
    Field("flags", TEXTS),
    Field("metadata", OBJECT),
    Field("fingerprint", NAME),
)
"""An item's content, in the order of ``rows.CONTENT``."""

ITEM_STATE = (
    Field("live_to", _or_null(TIME), needed=False),
    Field("ended_by", _or_null(TEXT), needed=False),
    Field("status", _one_of("active", "superseded", "quarantined")),
    Field("content_hash", _or_null(NAME), needed=False),
)
SKETCH = Field("sketch", WHOLES)
ENTITY = (
    Field("id", NAME),
    Field("kind", TEXT),
    Field("name", TEXT),
    Field("momentum", REAL),
    Field("momentum_at", _or_null(TIME), needed=False),
    Field("created_at", TIME),
    Field("last_seen_at", _or_null(TIME), needed=False),
)
ALIAS = (Field("alias", NAME), Field("entity", NAME))
LINK = (
    Field("src_kind", NAME),
    Field("src", NAME),
    Field("relation", NAME, column="type"),
    Field("dst_kind", NAME),
    Field("dst", NAME),
    Field("weight", REAL),
    Field("confidence", REAL),
    Field("context", _or_null(TEXT), needed=False),
    Field("source", TEXT),
    Field("created_at", TIME),
)
STATUS_CHANGE = (
    Field("id", NAME),
    Field("at", TIME),
    Field("status", _one_of("active", "superseded", "quarantined")),
)
THREAD = (
    Field("id", NAME),
    Field("kind", _one_of(*THREAD_KINDS)),
    Field("anchor", _or_null(TEXT), needed=False),
    Field("headline", TEXT),
    Field("lifecycle", _one_of(*LIFECYCLES)),
    Field("state", _one_of(*THREAD_STATES)),
    Field("created_at", TIME),
    Field("updated_at", TIME),
)
THREAD_MEMBER = (
    Field("thread", NAME),
    Field("item", NAME),
    Field("role", _one_of(*ROLES)),
    Field("weight", REAL),
    Field("added_at", TIME),
)
THREAD_EVENT = (
    Field("thread", NAME),
    Field("seq", WHOLE),
    Field("kind", _one_of(*HAPPENINGS)),
    Field("item", _or_null(NAME), needed=False),
    Field("at", TIME),
    Field("meaningful", FLAG),
)
USAGE = (
    Field("id", NAME),
    Field("recalls", WHOLE),
    Field("last_at", _or_null(TIME), needed=False),
    Field("stamps", TIMES),
    Field("decay", REAL),
    Field("decay_at", _or_null(TIME), needed=False),
    Field("regained", _or_null(REGAINED), needed=False),
)
TICK = (
    Field("number", COUNT),
    Field("at", TIME),
    Field("amount", REAL),
    Field("total", REAL),
)
COUNTER = (Field("name", _one_of("recalls")), Field("value", _DIGITS))
USAGE_DAY = (Field("id", NAME), Field("day", WHOLE), Field("recalls", WHOLE))
FILE_EDIT = (
    Field("path", NAME),
    Field("operation", NAME),
    Field("at", TIME),
    Field("intent", TEXT),
    Field("session", TEXT),
    Field("turn", TEXT),
    Field("item", _or_null(NAME), needed=False),
)
KEY = (Field("key", NAME), Field("id", NAME), Field("fingerprint", NAME), Field("at", TIME))
TOMBSTONE = (Field("id", NAME), Field("at", TIME), Field("actor", TEXT))
EVENT = (
    Field("seq", COUNT),
    Field("at", TIME),
    Field("kind", NAME),
    Field("item", _or_null(NAME), needed=False),
    Field("actor", TEXT),
    Field("detail", TEXT),
    Field("chain", NAME),
)
