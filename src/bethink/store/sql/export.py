"""Export a space: JSON records of one snapshot; rows that rot has changed as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import apsw

from bethink.core.json_values import Json
from bethink.store.sql import history
from bethink.store.sql.connection import Connections, Database, Row
from bethink.store.sql.damage import REPLACEMENT, VALUE_ERRORS
from bethink.store.sql.items import raw_columns, salvage_rids
from bethink.store.sql.records import (
    EVENT,
    ITEM,
    ITEM_STATE,
    TABLES_AFTER_ITEMS,
    TABLES_BEFORE_ITEMS,
    Layout,
    column_of,
)
from bethink.store.sql.rows import CONTENT, matches_hash
from bethink.store.sql.sql_functions import state_hash

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
