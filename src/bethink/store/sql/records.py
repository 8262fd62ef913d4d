"""The records of an export: which there are, their fields, and the type of each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from bethink.core.characters import find_unstorable
from bethink.core.named_tuple import NamedTuple
from bethink.model import LIFECYCLES, ROLES, THREAD_EVENT_KINDS, THREAD_KINDS, THREAD_STATES
from bethink.model.fields import ITEM_FIELDS
from bethink.store.sql.rows import CONTENT, STRICT_ENCODER, plain_zero, to_json
from bethink.store.sql.sql_functions import from_ms, to_ms


class FieldType(NamedTuple):
    """A field's type: its description, conversion to JSON, and checked conversion back.

    ``read`` raises ValueError or TypeError for an invalid value.
    """

    description: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    needed: bool = True


Layout = Mapping[str, FieldType]  # the fields of a record, in the order of the columns


def _identity(value: Any) -> Any:
    return value


def _type(
    description: str,
    is_right: Callable[[Any], bool],
    read: Callable[[Any], Any] = _identity,
    write: Callable[[Any], Any] = _identity,
) -> FieldType:
    """Return the type of values that pass a test."""

    def checked(value: Any) -> Any:
        if not is_right(value):
            raise ValueError
        return read(value)

    return FieldType(description, write, checked)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not find_unstorable(value)


def _is_whole(value: Any, low: int = -(2**63), high: int = 2**63 - 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _parse_time(value: Any) -> int:
    moment = datetime.fromisoformat(_TEXT.read(value))
    if moment.tzinfo is None:
        raise ValueError
    return to_ms(moment)


def _format_time(ms: int) -> str:
    return from_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _list_of(name: str, kind: FieldType) -> FieldType:
    return _type(
        f"a list of {name}",
        _is_list,
        lambda value: to_json([kind.read(part) for part in value]),
        lambda stored: [kind.write(part) for part in json.loads(stored)],
    )


def _parse_regained(value: Any) -> str:
    return to_json(
        [[_parse_time(at), _REAL.read(left), _parse_time(since)] for at, left, since in value]
    )


def _format_regained(stored: str) -> list[list[Any]]:
    entries = json.loads(stored)
    return [[_format_time(at), left, _format_time(since)] for at, left, since in entries]


def _range(low: int, high: int) -> FieldType:
    allowed = f"a whole number from {low} to {high}"
    return _type(allowed, lambda value: _is_whole(value, low, high))


def _one_of(*allowed: str) -> FieldType:
    return _type(f"one of {', '.join(allowed)}", allowed.__contains__)


def _or_null(kind: FieldType) -> FieldType:
    return FieldType(
        f"{kind.description} or null",
        lambda value: None if value is None else kind.write(value),
        lambda value: None if value is None else kind.read(value),
        needed=False,
    )


def _is_number_as_text(value: Any) -> bool:
    return _is_text(value) and value.isascii() and value.isdigit() and len(value) < 16


_TEXT = _type("a text", _is_text)
_REAL = _type("a number", _is_real, plain_zero)
_TIME = FieldType("a time with a time zone, like 2026-01-31T08:00:00Z", _format_time, _parse_time)
_TYPES = {
    "count": _type("a whole number from 1 up", lambda value: _is_whole(value, 1)),
    "day": _range(-719162, 2932896),
    "digits": _type("a whole number as a text", _is_number_as_text),
    "event": _one_of(*THREAD_EVENT_KINDS),
    "flag": _type("true or false", lambda value: isinstance(value, bool), int, bool),
    "id": _type("a text that is not empty", lambda value: value != "" and _is_text(value)),
    "level": _range(0, 3),
    "lifecycle": _one_of(*LIFECYCLES),
    "node": _one_of("item", "entity", "file", "thread"),
    "number": _REAL,
    "object": _type(
        "an object",
        lambda value: isinstance(value, Mapping),
        lambda value: _TEXT.read(STRICT_ENCODER.encode(dict(value))),
        json.loads,
    ),
    "recalls": _one_of("recalls"),
    "regained": _type(
        "a list of [time, number, time]", _is_list, _parse_regained, _format_regained
    ),
    "role": _one_of(*ROLES),
    "sketch": _type(
        "a list of whole numbers",
        lambda value: _is_list(value) and all(map(_is_whole, value)),
        write=json.loads,
    ),
    "state": _one_of(*THREAD_STATES),
    "status": _one_of("active", "superseded", "quarantined"),
    "text": _TEXT,
    "thread": _one_of(*THREAD_KINDS),
    "time": _TIME,
    "times": _list_of("times", _TIME),
    "uses": _range(0, 2**63 - 1),
    "whole": _type("a whole number", _is_whole),
    "word": _TEXT,
    "words": _list_of("texts", _TEXT),
}
_ITEM_FIELDS = {field.name: field for field in ITEM_FIELDS}


def _layout(fields: str) -> Layout:
    """Return the layout of ``name:type`` after ``name:type``.

    What ends with ``?`` may be missing or null, with ``*`` only missing.
    """
    found = {}
    for name, _, said in (field.partition(":") for field in fields.split()):
        kind = _TYPES[said.rstrip("?*")]
        found[name] = _or_null(kind) if said.endswith("?") else kind
        if said.endswith("*"):
            found[name] = kind._replace(needed=False)
    return found


def _item_field(name: str) -> FieldType:
    """Return the type of an item's field."""
    field = _ITEM_FIELDS.get(name)
    if field is None:  # words to find it by, and its fingerprint
        return _TYPES["text" if name == "about" else "id"]
    if field.kind == "choice":
        kind = _one_of(*field.choices)
    elif field.kind == "scale":
        kind = _range(int(field.low), int(field.high))
    else:
        kind = _TYPES["count" if field.kind == "whole" and field.low == 1 else field.kind]
    # An export from before there were hashes has none; the loader computes it.
    return _or_null(kind) if field.nullable or name == "content_hash" else kind


ITEM: Layout = {name: _item_field(name) for name in CONTENT}
"""An item's content, in the order of its hash."""

ITEM_STATE: Layout = {
    name: _item_field(name) for name in ("live_to", "ended_by", "status", "content_hash")
}
SKETCH = _layout("sketch:sketch*")
EVENT = _layout("seq:count at:time kind:id item:id? actor:text detail:text chain:id")
_COLUMNS = {"relation": "type"}  # where a column has another name than the field


def column_of(field: str) -> str:
    """Return the name of the column that a field has."""
    return _COLUMNS.get(field, field)


# Each kind of record with its table and fields, in an order that `load` accepts: the target of
# a reference comes first. Earlier exports do not have some classifications.
TABLES_BEFORE_ITEMS = {
    "entity": (
        "entity ORDER BY id",
        _layout(
            "id:id kind:text name:text momentum:number momentum_at:time? created_at:time"
            " last_seen_at:time?"
        ),
    ),
    "alias": (
        "alias ORDER BY alias, entity",
        _layout("alias:id entity:id classification:level*"),
    ),
}
TABLES_AFTER_ITEMS = {
    "link": (
        "link ORDER BY src, type, dst, src_kind, dst_kind, stated_by",
        _layout(
            "src_kind:node src:id relation:id dst_kind:node dst:id weight:number"
            " confidence:number context:text? source:text created_at:time"
        ),
    ),
    "status_change": ("status_change ORDER BY id, at", _layout("id:id at:time status:status")),
    "thread": (
        "thread ORDER BY id, classification",
        _layout(
            "id:id kind:thread anchor:text? headline:text lifecycle:lifecycle state:state"
            " created_at:time updated_at:time classification:level*"
        ),
    ),
    "thread_member": (
        "thread_member ORDER BY thread, classification, item",
        _layout("thread:id item:id role:role weight:number added_at:time classification:level*"),
    ),
    "thread_event": (
        "thread_event ORDER BY thread, classification, seq",
        _layout(
            "thread:id seq:whole kind:event item:id? at:time meaningful:flag classification:level*"
        ),
    ),
    "tick": ("tick ORDER BY number", _layout("number:count at:time amount:number total:number")),
    "counter": ("meta WHERE name = 'recalls'", _layout("name:recalls value:digits")),
    "usage": (
        "usage ORDER BY id",
        _layout(
            "id:id recalls:uses last_at:time? stamps:times decay:number decay_at:time?"
            " regained:regained?"
        ),
    ),
    "usage_day": ("usage_day ORDER BY id, day", _layout("id:id day:day recalls:uses")),
    "file_edit": (
        # Not by number: one that was told of above the ceiling first has an earlier one.
        "file_edit ORDER BY path, operation, at, intent, session, turn",
        _layout("path:id operation:id at:time intent:text session:text turn:text item:id?"),
    ),
    "key": ("idempotency ORDER BY key, id", _layout("key:id id:id fingerprint:id at:time")),
    "tombstone": ("tombstone ORDER BY id", _layout("id:id at:time actor:text")),
    "erased_key": (
        "erased_key ORDER BY key_hash, id",
        _layout("key_hash:id id:id content_hash:id classification:level at:time"),
    ),
}
