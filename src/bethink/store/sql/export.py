"""Export a space: the records that there are with the type of each field, of one snapshot.

Rows that rot has changed are exported as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from bethink.core.characters import find_unstorable
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.toml import parse_toml
from bethink.model import LIFECYCLES, ROLES, THREAD_EVENT_KINDS, THREAD_KINDS, THREAD_STATES
from bethink.model.fields import ITEM_FIELDS
from bethink.store.sql import history
from bethink.store.sql.connection import Connections, Database, Row
from bethink.store.sql.damage import REPLACEMENT, VALUE_ERRORS
from bethink.store.sql.items import raw_columns, salvage_rids
from bethink.store.sql.rows import CONTENT, STRICT_ENCODER, matches_hash, plain_zero, to_json
from bethink.store.sql.sql_functions import from_ms, state_hash, to_ms


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


def _read_tables(place: str) -> dict[str, tuple[str, Layout]]:
    """Return each kind of record with its table and fields, in an order that `load` accepts."""
    return {kind: (one["rows"], _layout(one["fields"])) for kind, one in _RECORDS[place].items()}


_RECORDS = parse_toml(Path(__file__).with_name("export.toml").read_text("utf-8"))
TABLES_BEFORE_ITEMS = _read_tables("before_items")
TABLES_AFTER_ITEMS = _read_tables("after_items")


EXPORT_FORMAT = 1
EXPORT_TYPES = ("bethink", "recollect")  # of the first record; the second up to 0.2.0
ExportRecord = Json  # a JSON object
END = "end"  # the type of the last record, which says how many there are between it and the first
DAMAGED = "damaged"  # the type of a record for a row that rot has changed; never imported

# Below a ceiling: erased ids have no classification. Nor can the journal's chain be cut.
_ABOUT_HIDDEN = frozenset({"tombstone", "erased_key"})
# A headline may come from any member, one that was classified higher since, too.
_NONE_HIDDEN = """
    AS t WHERE t.classification <= {ceiling} AND NOT EXISTS (
        SELECT 1 FROM main.thread_member AS m WHERE m.thread = t.{thread}
        AND m.classification = t.classification
        AND m.item IN (SELECT id FROM temp.hidden_item))
"""
_THREAD_KEYS = {"thread": "id", "thread_member": "thread", "thread_event": "thread"}
# Items keep their order of storing, that of their first revisions.
_SELECT_ITEMS = f"""
    SELECT {", ".join(f"i.{name}" for name in CONTENT)},
        i.live_to, i.ended_by, i.status, i.content_hash, i.state_hash,
        (SELECT json_group_array(band ORDER BY band) FROM sketch WHERE rid = i.rid), i.rid
    FROM item AS first JOIN item AS i ON i.id = first.id
    WHERE first.rid = (SELECT min(rid) FROM item WHERE id = first.id)
    ORDER BY first.rid, i.rev
"""

_SELECT_ITEM = f"""
    SELECT {", ".join(CONTENT)}, live_to, ended_by, status, content_hash, state_hash, '[]', rid
    FROM item WHERE rid = ?
"""


def dump_records(connections: Connections, space: str) -> Iterator[ExportRecord]:
    """Yield the records of one snapshot of the store, unaffected by concurrent writes."""
    with connections.open_snapshot() as db:
        header = {"type": EXPORT_TYPES[0], "version": EXPORT_FORMAT, "space": space, "end": True}
        is_below = connections.is_view
        # A copy without what is above the ceiling must not pass for a complete one.
        yield header | ({"max_classification": connections.ceiling} if is_below else {})
        count = 0
        for record in _snapshot_records(db, connections.ceiling, is_below=is_below):
            count += 1
            # A classification may be what rot has changed: nothing of such a row is exported.
            is_told = not is_below or record["type"] != DAMAGED
            yield record if is_told else {"type": DAMAGED, "of": record["of"], "columns": {}}
        yield {"type": END, "records": count}


def _snapshot_records(db: Database, ceiling: int, *, is_below: bool) -> Iterator[ExportRecord]:
    for kind, (table, layout) in TABLES_BEFORE_ITEMS.items():
        yield from _table_records(db, kind, layout, table)
    yield from _item_records(db)
    for kind, (table, layout) in TABLES_AFTER_ITEMS.items():
        if not is_below:
            yield from _table_records(db, kind, layout, table)
        elif kind not in _ABOUT_HIDDEN:
            yield from _table_records(db, kind, layout, _visible(kind, table, ceiling))
    if not is_below:
        yield from _event_records(db)


def _visible(kind: str, table: str, ceiling: int) -> str:
    """Leave out the threads that hold what is above the ceiling."""
    if kind not in _THREAD_KEYS:
        return table
    condition = _NONE_HIDDEN.format(ceiling=int(ceiling), thread=_THREAD_KEYS[kind])
    return table.replace(" ORDER", f" {condition} ORDER")


def _table_records(db: Database, kind: str, layout: Layout, table: str) -> Iterator[ExportRecord]:
    columns = ", ".join(map(column_of, layout))
    try:
        for number, row in enumerate(db.execute(f"SELECT {columns} FROM {table}")):
            if any(isinstance(value, str) and REPLACEMENT in value for value in row):
                damaged = _damaged_record(db, kind, layout, f"{table} LIMIT 1 OFFSET {number}")
                if any(isinstance(value, dict) for value in damaged["columns"].values()):
                    yield damaged
                    continue
            try:
                record = _to_record(kind, layout, row)
                _require_importable(layout, record)
            except (TypeError, ValueError, OverflowError):
                record = _damaged_record(db, kind, layout, f"{table} LIMIT 1 OFFSET {number}")
            yield record
    except apsw.CorruptError as error:
        yield {"type": DAMAGED, "of": kind, "columns": {}, "reason": str(error)}


def _event_records(db: Database) -> Iterator[ExportRecord]:
    try:
        for line in history.exported_lines(db):
            try:
                record = _to_record("event", EVENT, line)
                _require_importable(EVENT, record)
            except VALUE_ERRORS:
                record = _damaged_record(db, "event", EVENT, f"event WHERE seq = {line.seq:d}")
            yield record
    except (apsw.CorruptError, *VALUE_ERRORS) as error:
        yield {"type": DAMAGED, "of": "event", "columns": {}, "reason": str(error)}


def _item_records(db: Database) -> Iterator[ExportRecord]:
    done: set[str] = set()
    try:
        for row in db.execute(_SELECT_ITEMS):
            done.add(row[0])
            yield _item_record(db, row)
    except apsw.CorruptError:
        yield from _salvaged_records(db, done)


def _item_record(db: Database, row: Row) -> ExportRecord:
    *columns, stored_state, sketch, rid = row
    layout = {**ITEM, **ITEM_STATE}
    live_to, ended_by, status, stored_hash = columns[len(CONTENT) :]
    state = state_hash(stored_hash, rid, live_to, status, ended_by)
    if state != stored_state or not matches_hash(columns[: len(CONTENT)], stored_hash):
        return _damaged_record(db, "item", layout, f"item WHERE rid = {rid:d}")
    try:
        record = _to_record("item", layout, columns)
    except (TypeError, ValueError, OverflowError):
        return _damaged_record(db, "item", layout, f"item WHERE rid = {rid:d}")
    bands = [band for band in json.loads(sketch) if isinstance(band, int)]
    return record | ({"sketch": bands} if bands else {})


def _salvaged_records(db: Database, done: set[str]) -> Iterator[ExportRecord]:
    """Yield what can still be read of a broken table, one row at a time.

    Of a memory in ``done`` the export has a part, and its revisions must be adjacent: the
    rest is given as damaged.
    """
    by_id: dict[str, list[ExportRecord]] = {}
    for rid in salvage_rids(db):
        try:
            (row,) = db.execute(_SELECT_ITEM, (rid,)).fetchall()
            record = _item_record(db, row)
        except (apsw.CorruptError, ValueError):
            yield {"type": DAMAGED, "of": "item", "columns": {"rid": rid}}
            continue
        item = str(row[0])
        if item not in done:
            by_id.setdefault(item, []).append(record)
        elif record["type"] == DAMAGED or record["rev"] > 1:
            yield {"type": DAMAGED, "of": "item", "columns": record.get("columns", record)}
    for records in by_id.values():
        yield from sorted(records, key=lambda one: (one["type"], one.get("rev", 0)))


def _damaged_record(db: Database, kind: str, layout: Layout, table: str) -> ExportRecord:
    """Return a row that is not what was stored, as it is."""
    names = {name: column_of(name) for name in layout}
    return {"type": DAMAGED, "of": kind, "columns": raw_columns(db, names, table)}


def _require_importable(layout: Layout, record: ExportRecord) -> None:
    """Raise ValueError or TypeError for a record that an import would refuse."""
    for name, kind in layout.items():
        if kind.needed or name in record:
            kind.read(record.get(name))


def _to_record(kind: str, layout: Layout, row: Sequence[object]) -> ExportRecord:
    record = {"type": kind}
    for (name, field), value in zip(layout.items(), row, strict=True):
        if value is not None:
            record[name] = field.write(value)
    return record
