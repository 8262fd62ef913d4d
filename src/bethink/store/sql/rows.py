"""Rows of the item table, the Items they map to, and the fields of export records."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from bethink.core.characters import find_unstorable
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.model import (
    LIFECYCLES,
    NO_METADATA,
    ROLES,
    THREAD_EVENT_KINDS,
    THREAD_KINDS,
    THREAD_STATES,
    Item,
)
from bethink.model.fields import ITEM_FIELDS, RESERVED_CONTENT, FieldKind, ItemField, field_names
from bethink.ports import Record
from bethink.store.sql.connection import Database, Row, read_ahead
from bethink.store.sql.damage import select_readable
from bethink.store.sql.history import STATUS_AT
from bethink.store.sql.sql_functions import (
    DAY_MS,
    DECAY,
    DECAY_AS_OF,
    EPOCH,
    USED_IN_ALL,
    USED_LAST,
    from_ms,
    state_hash,
    to_ms,
    to_ms_or_none,
)

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_STRICT_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class FieldType(NamedTuple):
    """A field's type: its description, conversion to JSON, and checked conversion back.

    ``read`` raises ValueError or TypeError for an invalid value.
    """

    description: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


class Field(NamedTuple):
    """A field of a record; ``column`` is its SQL name where that differs."""

    name: str
    kind: FieldType
    needed: bool = True
    column: str = ""


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
    moment = datetime.fromisoformat(TEXT.read(value))
    if moment.tzinfo is None:
        raise ValueError
    return to_ms(moment)


def _format_time(ms: int) -> str:
    return from_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _normalise_zero(value: float) -> float:
    # SQLite keeps no negative zero, and the hash is over what it keeps.
    return float(value) + 0.0


def _list_of(name: str, kind: FieldType) -> FieldType:
    return _type(
        f"a list of {name}",
        _is_list,
        lambda value: to_json([kind.read(part) for part in value]),
        lambda stored: [kind.write(part) for part in json.loads(stored)],
    )


def _parse_regained(value: Any) -> str:
    return to_json(
        [[_parse_time(at), REAL.read(left), _parse_time(since)] for at, left, since in value]
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
    )


def _is_number_as_text(value: Any) -> bool:
    return _is_text(value) and value.isascii() and value.isdigit() and len(value) < 16


_DIGITS = _type("a whole number as a text", _is_number_as_text)
TEXT = _type("a text", _is_text)
NAME = _type("a text that is not empty", lambda value: value != "" and _is_text(value))
WHOLE = _type("a whole number", _is_whole)
COUNT = _type("a whole number from 1 up", lambda value: _is_whole(value, 1))
REAL = _type("a number", _is_real, _normalise_zero)
FLAG = _type("true or false", lambda value: isinstance(value, bool), int, bool)
TIME = FieldType("a time with a time zone, like 2026-01-31T08:00:00Z", _format_time, _parse_time)
TEXTS = _list_of("texts", TEXT)
TIMES = _list_of("times", TIME)
REGAINED = _type("a list of [time, number, time]", _is_list, _parse_regained, _format_regained)
WHOLES = _type(
    "a list of whole numbers",
    lambda value: _is_list(value) and all(map(_is_whole, value)),
    write=json.loads,
)
OBJECT = _type(
    "an object",
    lambda value: isinstance(value, Mapping),
    lambda value: TEXT.read(_STRICT_ENCODER.encode(dict(value))),
    json.loads,
)


def _field_type(field: ItemField) -> FieldType:
    """Return the export type of an item's field."""
    if field.kind == "choice":
        return _one_of(*field.choices)
    if field.kind == "scale":
        return _range(int(field.low), int(field.high))
    if field.kind == "whole" and field.low == 1:
        return COUNT
    return _TYPES[field.kind]


def _export_field(field: ItemField) -> Field:
    # An export from before there were hashes has none; the loader computes it.
    optional = field.nullable or field.name == "content_hash"
    kind = _field_type(field)
    return Field(field.name, _or_null(kind) if optional else kind, needed=not optional)


_TYPES: dict[FieldKind, FieldType] = {
    "id": NAME,
    "text": TEXT,
    "word": TEXT,
    "words": TEXTS,
    "whole": WHOLE,
    "number": REAL,
    "flag": FLAG,
    "time": TIME,
    "object": OBJECT,
}
# What a revision says besides the item's fields: words to find it by, and its fingerprint.
_RESERVED_TYPES = {"about": TEXT, "fingerprint": NAME}
_CONTENT_FIELDS = {
    number: Field(name, _RESERVED_TYPES[name]) for number, name in RESERVED_CONTENT.items()
} | {field.content: _export_field(field) for field in ITEM_FIELDS if field.content is not None}

ITEM = tuple(_CONTENT_FIELDS[place] for place in sorted(_CONTENT_FIELDS))
"""An item's content, in the order of its hash."""

ITEM_STATE = tuple(
    _export_field(next(field for field in ITEM_FIELDS if field.name == name))
    for name in ("live_to", "ended_by", "status", "content_hash")
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
ALIAS = (
    Field("alias", NAME),
    Field("entity", NAME),
    Field("classification", _range(0, 3), needed=False),
)
LINK = (
    Field("src_kind", _one_of("item", "entity", "file", "thread")),
    Field("src", NAME),
    Field("relation", NAME, column="type"),
    Field("dst_kind", _one_of("item", "entity", "file", "thread")),
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
    Field("classification", _range(0, 3), needed=False),
)
THREAD_MEMBER = (
    Field("thread", NAME),
    Field("item", NAME),
    Field("role", _one_of(*ROLES)),
    Field("weight", REAL),
    Field("added_at", TIME),
    Field("classification", _range(0, 3), needed=False),
)
THREAD_EVENT = (
    Field("thread", NAME),
    Field("seq", WHOLE),
    Field("kind", _one_of(*THREAD_EVENT_KINDS)),
    Field("item", _or_null(NAME), needed=False),
    Field("at", TIME),
    Field("meaningful", FLAG),
    Field("classification", _range(0, 3), needed=False),
)
USAGE = (
    Field("id", NAME),
    Field("recalls", _range(0, 2**63 - 1)),
    Field("last_at", _or_null(TIME), needed=False),
    Field("stamps", TIMES),
    Field("decay", REAL),
    Field("decay_at", _or_null(TIME), needed=False),
    Field("regained", _or_null(REGAINED), needed=False),
)
TICK = (Field("number", COUNT), Field("at", TIME), Field("amount", REAL), Field("total", REAL))
COUNTER = (Field("name", _one_of("recalls")), Field("value", _DIGITS))
USAGE_DAY = (Field("id", NAME), Field("day", _range(-719162, 2932896)), USAGE[1])
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

# Content of a revision: these columns never change, and the content hash covers them.
CONTENT = tuple(field.name for field in ITEM)
_FIRST_CONTENT_COLUMNS = 43  # those of schema 1
WORDS_SLICE = slice(CONTENT.index("text"), CONTENT.index("original") + 1)
ENTITIES_INDEX = CONTENT.index("entities")
# Columns of a revision that may change or are computed.
STATE_COLUMNS = ("rid", "live_to", "ended_by", "status", "length", "content_hash", "state_hash")

INSERT_ITEM = (
    f"INSERT INTO item ({', '.join((*CONTENT, *STATE_COLUMNS))})"
    f" VALUES ({', '.join('?' * (len(CONTENT) + len(STATE_COLUMNS)))})"
)
SELECT_CONTENT = ", ".join(CONTENT)

# Fields that are computed from use; all others are columns. As of a moment the status is, too.
_COMPUTED = {"decay": DECAY, "recalls": "coalesce(u.recalls, 0)", "last_recalled_at": "u.last_at"}
_COMPUTED_AS_OF = {
    "decay": DECAY_AS_OF,
    "recalls": f"(SELECT {USED_IN_ALL} FROM m)",
    "last_recalled_at": f"(SELECT {USED_LAST} FROM m)",
    "status": f"(SELECT {STATUS_AT.replace('MOMENT', 'm.at')} FROM m)",
}


def _select_columns(computed: Mapping[str, str]) -> str:
    """List the row id and the fields in the order of Item, so that a row is nearly an Item."""
    return ", ".join(("i.rid", *(computed.get(name, f"i.{name}") for name in Item._fields)))


SELECT_ITEM = _select_columns(_COMPUTED)
_SELECT_ITEM_AS_OF = _select_columns(_COMPUTED_AS_OF)
# With the columns of the hashes that are no fields of an item, or not as of a moment.
_ONLY_HASHED = ", i.about, i.fingerprint, i.status, i.state_hash"
SELECT_HASHED_ITEM = SELECT_ITEM + _ONLY_HASHED
_PLACES = ("rid", *Item._fields, "about", "fingerprint", "status now", "state_hash")
_STATE = ("content_hash", "rid", "live_to", "status now", "ended_by")
revision_of = itemgetter(_PLACES.index("rev"))
_content_of = itemgetter(*(_PLACES.index(name) for name in CONTENT))
_state_of = itemgetter(*(_PLACES.index(name) for name in _STATE))


def _places(kind: FieldKind) -> tuple[int, ...]:
    return tuple(Item._fields.index(name) for name in field_names(ITEM_FIELDS, kind))


_TIME_PLACES, _LIST_PLACES, _FLAG_PLACES = _places("time"), _places("words"), _places("flag")
_OBJECT_PLACES = _places("object")
_COLUMN_TYPES = {"whole": int, "scale": int, "flag": int, "time": int, "number": float}
_TYPES_ALLOWED = (
    (int,),
    *(
        (_COLUMN_TYPES.get(field.kind, str), *((type(None),) if field.nullable else ()))
        for name in Item._fields
        for field in ITEM_FIELDS
        if field.name == name
    ),
    *((str,), (str,), (str,), (int,)),
)
_MAX_SOUND_TYPES = 4096
_SOUND_TYPES: set[tuple[type, ...]] = set()


def _has_sound_types(kinds: tuple[type, ...]) -> bool:
    """Whether a row has values of the types that are stored."""
    sound = all(kind in allowed for kind, allowed in zip(kinds, _TYPES_ALLOWED, strict=False))
    if sound and len(_SOUND_TYPES) < _MAX_SOUND_TYPES:
        _SOUND_TYPES.add(kinds)
    return sound


_FROM_ROW_IDS = (
    " FROM json_each(?) AS wanted CROSS JOIN item AS i ON i.rid = wanted.value"
    " LEFT JOIN usage AS u ON u.id = i.id"
)


ItemSelection = tuple[str, tuple[int, ...]]  # the start of a statement, and its first values


def item_selection(as_of_ms: int | None, *, hashed: bool = False) -> ItemSelection:
    """Select items as they are or, with a moment, as they were.

    Status, usage and decay are then those of the moment. With ``hashed`` `is_intact` can
    check the rows.
    """
    also = _ONLY_HASHED if hashed else ""
    if as_of_ms is None:
        return f"SELECT {SELECT_ITEM}{also}", ()
    sql = f"WITH m (at, day) AS (SELECT ?, ?) SELECT {_SELECT_ITEM_AS_OF}{also}"
    return sql, (as_of_ms, as_of_ms // DAY_MS)


class NewRow(NamedTuple):
    """A revision ready to be inserted."""

    rid: int
    content: Row
    live_to: int | None
    ended_by: str | None
    status: str
    length: int = 0

    def values(self) -> Row:
        """Return the values in the order of INSERT_ITEM."""
        hashed = content_hash(self.content)
        state = state_hash(hashed, self.rid, self.live_to, self.status, self.ended_by)
        ending = (self.live_to, self.ended_by, self.status, self.length, hashed, state)
        return (*self.content, self.rid, *ending)


def content_hash(content: Sequence[Any]) -> str:
    """Return the SHA-256 of the content columns, in their order, as one JSON array.

    Columns that came with later schemas count from the first revision that has a value, so
    that a migration leaves the hashes of what is stored as they are.
    """
    count = len(content)
    while count > _FIRST_CONTENT_COLUMNS and content[count - 1] is None:
        count -= 1
    return hashlib.sha256(to_json(content[:count]).encode()).hexdigest()


def to_content(record: Record, live_from: int) -> Row:
    """Return the content columns of a record, as stored in the file."""
    values = dict(zip(Item._fields, record.item, strict=True))
    values |= {"live_from": live_from, "entities": entity_ids(record)}
    values |= {"about": record.about, "fingerprint": record.fingerprint}
    return tuple(
        values[name] if encode is None else encode(values[name]) for name, encode in _ENCODERS
    )


def entity_ids(record: Record) -> tuple[str, ...]:
    """Return the entities of a record: those the item names and those mentioned."""
    mentioned = (mention.entity.id for mention in record.mentions)
    return tuple(dict.fromkeys((*record.item.entities, *mentioned)))


def to_json(values: Sequence[Any]) -> str:
    """Encode values as the file stores them, in canonical form."""
    return _ENCODER.encode(values) if values else "[]"


def metadata_json(metadata: Mapping[str, Any]) -> str:
    if not metadata:
        return "{}"
    try:
        return _STRICT_ENCODER.encode(dict(metadata))
    except (TypeError, ValueError) as error:
        raise Refused(f"the metadata cannot be written as JSON: {error}") from error


# How a column's value is made from a field's; as it is where there is nothing to do.
_ENCODE: dict[str, Callable[[Any], Any]] = {
    "number": _normalise_zero,
    "flag": int,
    "time": to_ms_or_none,
    "words": to_json,
    "object": metadata_json,
}
_KINDS = {field.name: field.kind for field in ITEM_FIELDS} | {"live_from": "whole"}
_ENCODERS = tuple(
    # A list of a later schema is NULL where it is empty.
    (name, (lambda values: to_json(values) if values else None))
    if name == "anchors"
    else (name, _ENCODE.get(_KINDS.get(name, "")))
    for name in CONTENT
)


def to_item(row: Row) -> Item:
    """Convert a row of SELECT_ITEM to an item.

    A row that rot has made unreadable becomes an item without content, so that one of them
    spoils no search.
    """
    found = readable_item(row)
    rev = row[_PLACES.index("rev")]
    return found or Item(str(row[1]), "", EPOCH, "", rev=rev if isinstance(rev, int) else 0)


def readable_item(row: Row) -> Item | None:
    """Convert a row of SELECT_ITEM to an item; None where rot has made it unreadable."""
    kinds = tuple(map(type, row))
    if kinds in _SOUND_TYPES or _has_sound_types(kinds):
        try:
            return _to_item(row)
        except (ValueError, TypeError, OverflowError):
            return None  # its times or lists are no such
    return None


def _to_item(row: Row) -> Item:
    values: list[Any] = list(row[1 : 1 + len(Item._fields)])
    for index in _TIME_PLACES:
        if values[index] is not None:
            values[index] = _cached_time(values[index])
    for index in _LIST_PLACES:
        texts = values[index]
        values[index] = () if texts is None or texts == "[]" else _cached_texts(texts)
    for index in _FLAG_PLACES:
        values[index] = values[index] == 1
    for index in _OBJECT_PLACES:
        metadata = values[index]
        values[index] = NO_METADATA if metadata == "{}" else MappingProxyType(json.loads(metadata))
    return tuple.__new__(Item, values)  # as Item(*values), in a third of the time


def is_intact(row: Row) -> bool:
    """Whether a row of SELECT_HASHED_ITEM still has the content and the state stored."""
    state = _state_of(row)
    return state_hash(*state) == row[-1] and matches_hash(_content_of(row), state[0])


def matches_hash(content: Sequence[Any], stored_hash: object) -> bool:
    """Whether content columns have the hash that was stored with them."""
    try:
        return content_hash(content) == stored_hash
    except (TypeError, ValueError):
        return False  # values of types that are never stored


# Items of one batch share times, and many share tags and entities.
_cached_time = lru_cache(maxsize=8192)(from_ms)


@lru_cache(maxsize=4096)
def _cached_texts(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored))


def read_items(
    db: Database, rids: Iterable[int], as_of_ms: int | None = None, *, intact: bool = False
) -> dict[int, Item]:
    """Return items by row id; unknown and, with ``intact``, damaged ones are left out."""
    start, values = item_selection(as_of_ms, hashed=intact)
    rows = select_readable(db, start + _FROM_ROW_IDS, list(rids), first=values, bind=json.dumps)
    return {row[0]: to_item(row) for row in rows if not intact or is_intact(row)}


def read_items_ahead(db: Database, rids: Sequence[int], as_of_ms: int | None) -> None:
    """Tell that items will be read by their row ids."""
    start, values = item_selection(as_of_ms)
    if rids:
        read_ahead(db, (start + _FROM_ROW_IDS, (*values, json.dumps(list(rids)))))
