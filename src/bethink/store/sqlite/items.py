"""Items of a space: look them up, list them, put, end, restore and erase them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from bethink.errors import NotFound
from bethink.model import Item, Status
from bethink.ports import EraseReceipt, PutResult, Record, Scope
from bethink.store.sqlite import erase, revisions
from bethink.store.sqlite.db.connection import Connections, select
from bethink.store.sqlite.db.rows import SELECT_ITEM, item_selection, to_item
from bethink.store.sqlite.db.sql_functions import to_ms, to_ms_or_none
from bethink.store.sqlite.revisions import put_records, to_json_ids
from bethink.store.sqlite.search.scope import Predicate, compile_scope
from bethink.store.sqlite.search.vectors import VectorIndex

_FROM_ITEMS = " FROM item AS i LEFT JOIN usage AS u ON u.id = i.id"
_FROM_IDS = """
    FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.id = wanted.value
    LEFT JOIN usage AS u ON u.id = i.id
"""
_GET_LATEST = f"{_FROM_IDS} WHERE i.rev = (SELECT max(rev) FROM item WHERE id = wanted.value)"
_GET_AS_OF = f"""
    {_FROM_IDS} WHERE i.rev = (
        SELECT max(rev) FROM item WHERE id = wanted.value AND live_from <= ?)
"""
_SELECT_REVISIONS = f"SELECT {SELECT_ITEM} {_FROM_ITEMS} WHERE i.id = ? ORDER BY i.rev"
_RESOLVE_ID = """
    SELECT DISTINCT id FROM item
    WHERE substr(id, 1, length(?1)) = ?1 OR substr(id, -length(?1)) = ?1
    ORDER BY id <> ?1, id LIMIT 10
"""
# Of a band with many rows only the newest are read: they are copies of a template.
_ROWS_OF_BAND = "SELECT rid FROM (SELECT rid FROM sketch WHERE band = ? ORDER BY rid DESC LIMIT 64)"
_ROWS_OF_FINGERPRINT = "SELECT rid FROM item WHERE fingerprint = ? AND live_to IS NULL"
_SELECT_DUPLICATES = f"""
    SELECT {SELECT_ITEM}
    FROM json_each(?) AS w CROSS JOIN item AS i ON i.rid = w.value
    LEFT JOIN usage AS u ON u.id = i.id
    WHERE i.live_to IS NULL AND PREDICATE
    ORDER BY w.key, i.id LIMIT 64
"""


def get_items(db: apsw.Connection, ids: Sequence[str], as_of: datetime | None) -> dict[str, Item]:
    """Return items by id, in the given order, as they are or were."""
    as_of_ms = to_ms_or_none(as_of)
    start, values = item_selection(as_of_ms)
    if as_of_ms is None:
        rows = select(db, start + _GET_LATEST, (*values, to_json_ids(ids)))
    else:
        rows = select(db, start + _GET_AS_OF, (*values, to_json_ids(ids), as_of_ms))
    return {row[1]: to_item(row) for row in rows}


def resolve_id(db: apsw.Connection, part: str) -> list[str]:
    """Return ids that begin or end with a part; the id itself on an exact match."""
    if not part:
        return []
    found = [row[0] for row in select(db, _RESOLVE_ID, (part,))]
    return found[:1] if found[:1] == [part] else found


def revisions_of(db: apsw.Connection, item_id: str) -> list[Item]:
    """Return all revisions, oldest first."""
    return [to_item(row) for row in select(db, _SELECT_REVISIONS, (item_id,))]


def find_duplicates(
    db: apsw.Connection, fingerprint: str, sketch: Sequence[int], scope: Scope
) -> list[Item]:
    """Return live items with the same words first, then those sharing most of the sketch."""
    # Most memories have no duplicate, which two cheap look-ups show.
    bands = " UNION ALL ".join([_ROWS_OF_BAND] * len(sketch))
    shared = Counter(rid for (rid,) in select(db, bands, tuple(sketch))) if sketch else Counter()
    exact = [rid for (rid,) in select(db, _ROWS_OF_FINGERPRINT, (fingerprint,))]
    most_similar = sorted(shared, key=lambda rid: (-shared[rid], rid))
    rids = list(dict.fromkeys((*exact, *most_similar)))
    if not rids:
        return []
    predicate = compile_scope(scope)
    sql = _SELECT_DUPLICATES.replace("PREDICATE", predicate.sql)
    return [to_item(row) for row in select(db, sql, (json.dumps(rids), *predicate.values))]


_FROM_SOURCE = """
    SELECT id FROM item WHERE source = ?1
    UNION
    SELECT item FROM event
    WHERE kind IN ('stored', 'imported') AND actor = ?1 AND instr(?1, ':')
        AND item IN (SELECT id FROM item)
    ORDER BY 1
"""


def ids_from_source(db: apsw.Connection, source: str) -> list[str]:
    """Return ids of all items that ever came from a source.

    A network client can claim any source, so the journal's name for it (``http:laptop``)
    selects everything that it stored.
    """
    return [row[0] for row in select(db, _FROM_SOURCE, (source,))]


def find_idempotency_key(db: apsw.Connection, key: str) -> tuple[str, str] | None:
    """Return the item of an idempotency key, and its fingerprint."""
    rows = select(db, "SELECT id, fingerprint FROM idempotency WHERE key = ?", (key,))
    return rows[0] if rows else None


def browse_items(db: apsw.Connection, scope: Scope, limit: int, after: str | None) -> list[Item]:
    """Return items newest first; a page starts after the item that ended the last one."""
    predicate = compile_scope(scope)
    if after is None:
        return _select_items(db, predicate, "ORDER BY i.stored_at DESC, i.id DESC", (), limit)
    end = _visible_revision(db, after, scope)
    position = (to_ms(end.stored_at), end.id)
    order = "AND (i.stored_at, i.id) < (?, ?) ORDER BY i.stored_at DESC, i.id DESC"
    return _select_items(db, predicate, order, position, limit)


def neighbours_of(db: apsw.Connection, item_id: str, window: int, scope: Scope) -> list[Item]:
    """Return neighbours in the same conversation or, outside of one, in stored order."""
    middle = _visible_revision(db, item_id, scope)
    predicate = compile_scope(scope)
    within, key = "", "stored_at"
    values: tuple[str, ...] = ()
    if middle.session is not None:
        within, values = "AND i.session = ?", (middle.session,)
        key = "stored_at" if middle.seq is None else "seq"
    at = to_ms(middle.stored_at) if key == "stored_at" else middle.seq
    columns = f"(i.{key}, i.id)"
    earlier = f"{within} AND {columns} < (?, ?) ORDER BY i.{key} DESC, i.id DESC"
    later = f"{within} AND {columns} > (?, ?) ORDER BY i.{key}, i.id"
    before = _select_items(db, predicate, earlier, (*values, at, middle.id), window)
    after = _select_items(db, predicate, later, (*values, at, middle.id), window)
    return [*reversed(before), *after]


def _select_items(
    db: apsw.Connection, predicate: Predicate, rest: str, values: tuple[Any, ...], limit: int
) -> list[Item]:
    start, first = item_selection(predicate.as_of_ms)
    sql = f"{start}{_FROM_ITEMS} WHERE {predicate.sql} {rest} LIMIT ?"
    return [to_item(row) for row in select(db, sql, (*first, *predicate.values, *values, limit))]


def _visible_revision(db: apsw.Connection, item_id: str, scope: Scope) -> Item:
    """Return the revision as of the scope's time or, where there is none, the last."""
    found = get_items(db, [item_id], scope.as_of) or get_items(db, [item_id], None)
    if item_id not in found:
        raise NotFound(f"there is no memory {item_id!r}")
    return found[item_id]


_MAX_PER_SLOT = 64  # of one slot: the newest
_SELECT_SLOT_ITEMS = f"""
    SELECT {SELECT_ITEM}
    FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.subject = wanted.value ->> 0 AND i.attribute = wanted.value ->> 1
    LEFT JOIN usage AS u ON u.id = i.id
    WHERE i.live_to IS NULL AND PREDICATE
    ORDER BY i.stored_at DESC, i.id LIMIT ?
"""


class SqliteItems:
    """The items of a space: `ItemStore` in SQLite."""

    def __init__(self, connections: Connections, vectors: VectorIndex) -> None:
        self._connections = connections
        self._vectors = vectors

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[PutResult]:
        with self._connections.write_transaction() as db:
            results = put_records(db, self._vectors, records, actor=actor, now=to_ms(now))
            revisions.apply_supersessions(db, records, results, to_ms(now))
            return results

    def get(self, ids: Sequence[str], *, as_of: datetime | None = None) -> dict[str, Item]:
        with self._connections.read_transaction() as db:
            return get_items(db, ids, as_of)

    def resolve(self, part: str) -> list[str]:
        with self._connections.read_transaction() as db:
            return resolve_id(db, part)

    def history(self, item_id: str) -> list[Item]:
        with self._connections.read_transaction() as db:
            return revisions_of(db, item_id)

    def browse(self, scope: Scope, *, limit: int, after: str | None = None) -> list[Item]:
        with self._connections.read_transaction() as db:
            return browse_items(db, scope, limit, after)

    def around(self, item_id: str, *, window: int, scope: Scope) -> list[Item]:
        with self._connections.read_transaction() as db:
            return neighbours_of(db, item_id, window, scope)

    def from_source(self, source: str) -> list[str]:
        with self._connections.read_transaction() as db:
            return ids_from_source(db, source)

    def find_key(self, key: str) -> tuple[str, str] | None:
        with self._connections.read_transaction() as db:
            return find_idempotency_key(db, key)

    def find_duplicates(self, fingerprint: str, sketch: Sequence[int], scope: Scope) -> list[Item]:
        with self._connections.read_transaction() as db:
            return find_duplicates(db, fingerprint, sketch, scope)

    def slots(self, pairs: Sequence[tuple[str, str]], scope: Scope) -> list[Item]:
        if not pairs:
            return []
        predicate = compile_scope(scope)
        sql = _SELECT_SLOT_ITEMS.replace("PREDICATE", predicate.sql)
        encoded = json.dumps([list(pair) for pair in dict.fromkeys(pairs)], ensure_ascii=False)
        with self._connections.read_transaction() as db:
            rows = select(db, sql, (encoded, *predicate.values, _MAX_PER_SLOT * len(pairs)))
        return [to_item(row) for row in rows]

    def end(
        self,
        ids: Sequence[str],
        *,
        how: str,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> list[str]:
        with self._connections.write_transaction() as db:
            unchanged = ids if only is None else revisions.filter_unchanged(db, ids, only)
            return revisions.end_items(db, unchanged, how=how, actor=actor, now=to_ms(now))

    def restore(self, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]:
        with self._connections.write_transaction() as db:
            return revisions.restore_items(db, self._vectors, ids, actor=actor, now=to_ms(now))

    def set_status(
        self,
        ids: Sequence[str],
        status: Status,
        *,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> None:
        with self._connections.write_transaction() as db:
            unchanged = ids if only is None else revisions.filter_unchanged(db, ids, only)
            revisions.set_status(db, unchanged, status, actor=actor, now=to_ms(now))

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> EraseReceipt:
        with self._connections.write_transaction() as db:
            receipt = erase.erase_items(db, self._vectors, ids, actor=actor, now=to_ms(now))
        if not receipt.ids:
            return receipt
        remaining = erase.scrub(self._connections)
        return receipt._replace(out_of_reach=(*receipt.out_of_reach, *remaining))
