"""Everything worth keeping, as records that JSON can hold and `load` takes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from recollect.store.sqlite import fields
from recollect.store.sqlite.connection import Connections, generation
from recollect.store.sqlite.fields import Field
from recollect.store.sqlite.rows import CONTENT
from recollect.store.sqlite.translate import translated

FORMAT = 1

# Each kind of record, its fields, and where they stand, in an order `load` accepts:
# what is pointed at comes before what points.
_TABLES: tuple[tuple[str, Sequence[Field], str], ...] = (
    ("entity", fields.ENTITY, "entity ORDER BY id"),
    ("alias", fields.ALIAS, "alias ORDER BY alias, entity"),
)
_TABLES_AFTER_ITEMS: tuple[tuple[str, Sequence[Field], str], ...] = (
    ("link", fields.LINK, "link ORDER BY src, type, dst, src_kind, dst_kind"),
    ("status_change", fields.STATUS_CHANGE, "status_change ORDER BY id, at"),
    ("thread", fields.THREAD, "thread ORDER BY id"),
    ("thread_member", fields.THREAD_MEMBER, "thread_member ORDER BY thread, item"),
    ("thread_event", fields.THREAD_EVENT, "thread_event ORDER BY thread, seq"),
    ("tick", fields.TICK, "tick ORDER BY number"),
    ("counter", fields.COUNTER, "meta WHERE name = 'recalls'"),
    ("usage", fields.USAGE, "usage ORDER BY id"),
    ("usage_day", fields.USAGE_DAY, "usage_day ORDER BY id, day"),
    ("file_edit", fields.FILE_EDIT, "file_edit ORDER BY number"),
    ("key", fields.KEY, "idempotency ORDER BY key"),
    ("tombstone", fields.TOMBSTONE, "tombstone ORDER BY id"),
    ("event", fields.EVENT, "event ORDER BY seq"),
)
# The order of storing is kept: the first revision of each item says where it stands.
_ITEMS = f"""
    SELECT {", ".join(f"i.{name}" for name in CONTENT)},
        i.live_to, i.ended_by, i.status, i.content_hash,
        (SELECT json_group_array(band ORDER BY band) FROM sketch WHERE rid = i.rid)
    FROM item AS first JOIN item AS i ON i.id = first.id
    WHERE first.rid = (SELECT min(rid) FROM item WHERE id = first.id)
    ORDER BY first.rid, i.rev
"""


def dump(connections: Connections, space: str) -> Iterator[dict[str, Any]]:
    """The records, one state of the store from first to last, whatever is written
    meanwhile."""
    with translated(connections.name), _snapshot(connections) as db:
        yield {"type": "recollect", "version": FORMAT, "space": space}
        for kind, layout, table in _TABLES:
            yield from _records(db, kind, layout, table)
        yield from _items(db)
        for kind, layout, table in _TABLES_AFTER_ITEMS:
            yield from _records(db, kind, layout, table)


@contextmanager
def _snapshot(connections: Connections) -> Iterator[apsw.Connection]:
    """A connection of its own: the caller may write while reading the records."""
    if connections.path is None:
        copy = apsw.Connection(":memory:")
        with connections.reading() as db, copy.backup("main", db, "main") as work:
            work.step()
        try:
            yield copy
        finally:
            copy.close()
        return
    db = connections.connect()
    try:
        db.execute("BEGIN")
        # The moment that is shown is that of the first look, which is now.
        with connections.undisturbed(db):
            generation(db)
            yield db
    finally:
        connections.disconnect(db)


def _records(
    db: apsw.Connection, kind: str, layout: Sequence[Field], table: str
) -> Iterator[dict[str, Any]]:
    columns = ", ".join(field.column or field.name for field in layout)
    for row in db.execute(f"SELECT {columns} FROM {table}"):
        yield _record(kind, layout, row)


def _items(db: apsw.Connection) -> Iterator[dict[str, Any]]:
    layout = (*fields.ITEM, *fields.ITEM_STATE)
    for *row, sketch in db.execute(_ITEMS):
        record = _record("item", layout, row)
        bands = json.loads(sketch)
        if bands:
            record["sketch"] = bands
        yield record


def _record(kind: str, layout: Sequence[Field], row: Sequence[Any]) -> dict[str, Any]:
    record = {"type": kind}
    for field, value in zip(layout, row, strict=True):
        if value is not None:
            record[field.name] = field.kind.write(value)
    return record
