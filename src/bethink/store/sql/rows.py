"""Rows of the item table, the Items they map to, and the fields of export records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.model import NO_METADATA, Item
from bethink.model.fields import ITEM_FIELDS, RESERVED_CONTENT, FieldKind, field_names
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
    to_ms_or_none,
)

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
STRICT_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


# Content of a revision: these columns never change, and the content hash covers them in the
# order of their numbers.
_NUMBERED = RESERVED_CONTENT | {
    field.content: field.name for field in ITEM_FIELDS if field.content is not None
}
CONTENT = tuple(name for _, name in sorted(_NUMBERED.items()))
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


@lru_cache(maxsize=4096)
def _has_sound_types(kinds: tuple[type, ...]) -> bool:
    """Whether a row has values of the types that are stored."""
    return all(kind in allowed for kind, allowed in zip(kinds, _TYPES_ALLOWED, strict=False))


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


def plain_zero(value: float) -> float:
    """Return a number as it is kept: SQLite keeps no negative zero, and the hash is over that."""
    return float(value) + 0.0


def entity_ids(record: Record) -> tuple[str, ...]:
    """Return the entities of a record: those the item names and those mentioned."""
    mentioned = (mention.entity.id for mention in record.mentions)
    return tuple(dict.fromkeys((*record.item.entities, *mentioned)))


def to_json(values: Sequence[Any]) -> str:
    """Encode values as the file stores them, in canonical form."""
    return _ENCODER.encode(values) if values else "[]"


def metadata_json(metadata: Mapping[str, object]) -> str:
    if not metadata:
        return "{}"
    try:
        return STRICT_ENCODER.encode(dict(metadata))
    except (TypeError, ValueError) as error:
        raise Refused(f"the metadata cannot be written as JSON: {error}") from error


# How a column's value is made from a field's; as it is where there is nothing to do.
_ENCODE: dict[str, Callable[[Any], Any]] = {
    "number": plain_zero,
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
    if _has_sound_types(tuple(map(type, row))):
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
