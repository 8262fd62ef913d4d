"""Items of a space: look them up, list them, put, end, restore and erase them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from operator import itemgetter
from typing import TypeVar

import apsw

from bethink.errors import NotFound
from bethink.model import Item, Status
from bethink.ports import EraseReceipt, PutResult, Record, Scope
from bethink.ports.values import KindsOfDay, SessionSpan
from bethink.store.sql import history
from bethink.store.sql.connection import (
    HIGHEST,
    Bindings,
    Connections,
    Database,
    Row,
    read_ahead,
    select,
)
from bethink.store.sql.damage import select_readable
from bethink.store.sql.dialect import statement
from bethink.store.sql.rows import (
    SELECT_HASHED_ITEM,
    ItemSelection,
    is_intact,
    item_selection,
    readable_item,
    revision_of,
    to_item,
)
from bethink.store.sql.search.scope import Predicate, compile_scope, narrow_to_few, newest_window
from bethink.store.sql.sql_functions import (
    DAY_MS,
    FIRST_MS,
    LAST_MS,
    from_ms,
    to_json_ids,
    to_ms,
    to_ms_or_none,
)

Key = TypeVar("Key", int, str)

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
_SELECT_REVISIONS = f"SELECT {SELECT_HASHED_ITEM} {_FROM_ITEMS} WHERE i.id = ? ORDER BY i.rev"
_RESOLVE_ID = """
    SELECT id FROM item
    WHERE substr(id, 1, length(?1)) = ?1 OR substr(id, -length(?1)) = ?1
    GROUP BY id ORDER BY id <> ?1, id LIMIT 10
"""
# Of a band with many rows only the newest are read: they are copies of a template.
_ROWS_OF_BANDS = statement(
    """
    SELECT w.value, s.rid FROM json_each(?) AS w
    CROSS JOIN sketch AS s ON s.band = w.value AND s.rid >= coalesce((
        SELECT n.rid FROM sketch AS n WHERE n.band = w.value ORDER BY n.rid DESC LIMIT 1 OFFSET 63),
        0)
    """,
    """
    SELECT w.band, s.rid
    FROM (SELECT value::bigint AS band FROM jsonb_array_elements_text(?1::jsonb)) AS w
    CROSS JOIN LATERAL (
        SELECT n.rid FROM bethink.sketch AS n
        WHERE n.space_id = :space AND n.band = w.band ORDER BY n.rid DESC LIMIT 64) AS s
    """,
)
_ROWS_OF_FINGERPRINTS = """
    SELECT i.fingerprint, i.rid FROM json_each(?) AS w
    CROSS JOIN item AS i ON i.fingerprint = w.value AND i.live_to IS NULL
"""
_MAX_DUPLICATES = 64
_ROWS_AT_ONCE = 4_096
_SELECT_DUPLICATES = f"""
    SELECT {SELECT_HASHED_ITEM}
    FROM json_each(?) AS w CROSS JOIN item AS i ON i.rid = w.value
    LEFT JOIN usage AS u ON u.id = i.id
    WHERE i.live_to IS NULL AND PREDICATE
    ORDER BY w.key
"""


def intact_items(rows: Iterable[Row]) -> list[Item]:
    """Convert rows of SELECT_HASHED_ITEM, leaving out those that do not match their hash.

    Each of those is reported once, in the log of the process.
    """
    items = []
    for row in rows:
        item = readable_item(row) if is_intact(row) else None
        if item is not None:
            items.append(item)
        else:
            damaged = to_item(row)
            _report_damaged(damaged.id, damaged.rev)
    return items


@lru_cache(maxsize=1024)  # each once, in the log of the process
def _report_damaged(item: str, rev: int) -> None:
    import logging  # start-up time: files are rarely damaged

    logging.getLogger("bethink").warning(
        "the memory %r (revision %d) is damaged and left out; see bethink doctor", item, rev
    )


# Indexes that have every row; where the table itself is broken, they still know its rows.
_WHOLE_INDEXES = ("item_stored", "item_occurred", "item_source", "sqlite_autoindex_item_1")


def salvage_rids(db: Database) -> list[int]:
    """Return the row ids of all revisions that any index still knows, in order."""
    found: set[int] = set()
    sources = [f"item INDEXED BY {name}" for name in _WHOLE_INDEXES]
    for source in (*sources, "item ORDER BY rid", "item ORDER BY rid DESC"):
        try:
            for (rid,) in db.execute(f"SELECT rid FROM {source}"):
                found.add(rid)
        except (apsw.CorruptError, apsw.SQLError):
            continue  # it has reported what it could, or is a view without that index
    return sorted(found)


def raw_columns(db: Database, names: Mapping[str, str], table: str) -> dict[str, object]:
    """Return the columns of a row as they are, by name; what is no text as base64."""
    parts = (f"iif(typeof({c}) = 'text', CAST({c} AS BLOB), {c}) AS {c}" for c in names.values())
    row = db.execute(f"SELECT {', '.join(parts)} FROM {table}").fetchall()[0]
    found = zip(names, row, strict=True)
    return {name: _to_text(value) for name, value in found if value is not None}


def _to_text(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def get_items(db: Database, ids: Sequence[str], as_of: datetime | None) -> dict[str, Item]:
    """Return items by id, in the given order, as they are or were; damaged ones are left out."""
    return {item.id: item for item in intact_items(_rows_of(db, ids, as_of))}


def items_ahead(db: Database, ids: Sequence[str]) -> None:
    """Tell that `get_items` will be asked for these items, as they are."""
    start, values = item_selection(None, hashed=True)
    read_ahead(db, (start + _GET_LATEST, (*values, to_json_ids(ids))))


def _is_sound(row: Row) -> bool:
    return is_intact(row) and readable_item(row) is not None


def _rows_of(db: Database, ids: Sequence[str], as_of: datetime | None) -> list[Row]:
    as_of_ms = to_ms_or_none(as_of)
    start, values = item_selection(as_of_ms, hashed=True)
    try:
        if as_of_ms is None:
            return select(db, start + _GET_LATEST, (*values, to_json_ids(ids)))
        return select(db, start + _GET_AS_OF, (*values, to_json_ids(ids), as_of_ms))
    except apsw.CorruptError:
        until = "1" if as_of_ms is None else f"i.live_from <= {as_of_ms:d}"
        found = _salvage(db, item_selection(as_of_ms, hashed=True), until)
        latest = {row[1]: row for row in sorted(found, key=revision_of)}
        return [latest[item] for item in dict.fromkeys(ids) if item in latest]


def _salvage(
    db: Database, selection: ItemSelection, condition: str, values: Bindings = ()
) -> list[Row]:
    """Return the rows for which a condition holds, of a table that has broken pages."""
    start, first = selection
    sql = f"{start}{_FROM_ITEMS} WHERE i.rid = ? AND {condition}"
    rows: list[Row] = []
    for rid in salvage_rids(db):
        rows += select_readable(db, sql, (rid,), values, bind=itemgetter(0), first=first)
    return rows


def _rows_by(db: Database, sql: str, values: Collection[Key]) -> dict[Key, list[int]]:
    """Return the rows of each value; those that have none are left out."""
    found: dict[Key, list[int]] = {}
    for value, rid in select(db, sql, (json.dumps(sorted(values)),)) if values else ():
        found.setdefault(value, []).append(rid)
    return found


def _similar_rows(
    exact: Sequence[int], sketch: Iterable[int], bands: Mapping[int, Sequence[int]]
) -> list[int]:
    shared = Counter(rid for band in sketch for rid in bands.get(band, ()))
    most_similar = sorted(shared, key=lambda rid: (-shared[rid], rid))
    return list(dict.fromkeys((*sorted(exact), *most_similar)))


def _read_duplicates(db: Database, rids: Sequence[int], scope: Scope) -> dict[int, list[Item]]:
    """Return the item of each row that is in scope, as a list: empty where it is damaged."""
    predicate = compile_scope(scope)
    sql = _SELECT_DUPLICATES.replace("PREDICATE", predicate.sql)
    found = {}
    for start in range(0, len(rids), _ROWS_AT_ONCE):
        part = json.dumps(rids[start : start + _ROWS_AT_ONCE])
        for row in select(db, sql, (part, *predicate.values)):
            found[row[0]] = intact_items([row])
    return found


_FROM_SOURCE = """
    SELECT id FROM item WHERE source = ?1
    UNION
    SELECT item FROM event
    WHERE kind IN ('stored', 'imported') AND actor = ?1 AND instr(?1, ':') > 0
        AND item IN (SELECT id FROM item)
    ORDER BY 1
"""


_SELECT_KEYS = """
    SELECT k.key, k.id, k.fingerprint FROM json_each(?) AS w
    CROSS JOIN idempotency AS k ON k.key = w.value ORDER BY k.at, k.id
"""


_HAPPENED = "coalesce(i.occurred_at, i.stored_at)"
_IS_DATED = f"{_HAPPENED} BETWEEN {FIRST_MS} AND {LAST_MS}"  # a damaged row may hold anything
# Division cuts towards zero: days before 1970 need the rest of a day.
_DAY_HAPPENED = f"({_HAPPENED} - iif({_HAPPENED} < 0, {DAY_MS - 1}, 0)) / {DAY_MS}"
_COUNT_DAYS = f"""
    SELECT {_DAY_HAPPENED}, i.kind, count(*) {_FROM_ITEMS}
    WHERE PREDICATE AND {_IS_DATED} GROUP BY 1, 2 ORDER BY 1, 2
"""
_SELECT_SESSIONS = f"""
    SELECT i.session, min({_HAPPENED}), max({_HAPPENED}), count(*) {_FROM_ITEMS}
    WHERE PREDICATE AND {_IS_DATED} AND i.session IS NOT NULL GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT ?
"""
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def count_days(db: Database, scope: Scope) -> list[KindsOfDay]:
    """Return how many items of which kind happened on which day, oldest first."""
    predicate = compile_scope(scope)
    try:
        rows = select(db, _COUNT_DAYS.replace("PREDICATE", predicate.sql), predicate.values)
    except apsw.CorruptError:
        found = _select_salvaged(db, predicate, "ORDER BY i.stored_at", ())
        counts = Counter((item.when.date(), item.kind) for item in found)
        return [KindsOfDay(*day, count) for day, count in sorted(counts.items())]
    return [
        KindsOfDay(date.fromordinal(_EPOCH_DAY + int(day)), str(kind), count)
        for day, kind, count in rows
    ]


def session_spans(db: Database, scope: Scope, limit: int) -> list[SessionSpan]:
    """Return the conversations, the one with the latest item first."""
    if not limit:
        return []
    predicate = compile_scope(scope)
    sql = _SELECT_SESSIONS.replace("PREDICATE", predicate.sql)
    try:
        rows = select(db, sql, (*predicate.values, limit))
    except apsw.CorruptError:
        return _salvaged_spans(db, predicate)[:limit]
    return [
        SessionSpan(str(name), from_ms(int(first)), from_ms(int(last)), count)
        for name, first, last, count in rows
    ]


def _salvaged_spans(db: Database, predicate: Predicate) -> list[SessionSpan]:
    moments: dict[str, list[datetime]] = {}
    for item in _select_salvaged(db, predicate, "ORDER BY i.stored_at", ()):
        if item.session is not None:
            moments.setdefault(item.session, []).append(item.when)
    spans = [SessionSpan(name, min(at), max(at), len(at)) for name, at in sorted(moments.items())]
    return sorted(spans, key=lambda span: span.last, reverse=True)


def _select_items(
    db: Database, predicate: Predicate, rest: str, values: Row, limit: int, *, offset: int = 0
) -> list[Item]:
    """Return the first items that are intact; damaged ones count only in the offset."""
    start, first = item_selection(predicate.as_of_ms, hashed=True)
    skipped = f" OFFSET {offset:d}" if offset else ""
    sql = f"{start}{_FROM_ITEMS} WHERE {predicate.sql} {rest} LIMIT ?{skipped}"
    wanted = limit
    while True:
        try:
            rows = select(db, sql, (*first, *predicate.values, *values, wanted))
        except apsw.CorruptError:
            return _select_salvaged(db, predicate, rest, values)[offset : offset + limit]
        items = intact_items(rows)
        if len(items) >= limit or len(rows) < wanted:
            return items[:limit]
        wanted = 2 * wanted - len(items)


def _select_salvaged(db: Database, predicate: Predicate, rest: str, values: Row) -> list[Item]:
    """Return the items that can still be read, in the order that a statement asks for."""
    further, _, order = rest.partition("ORDER BY ")
    selection = item_selection(predicate.as_of_ms, hashed=True)
    found = _salvage(db, selection, f"{predicate.sql} {further}", (*predicate.values, *values))
    by_seq = "i.seq" in order

    def place(item: Item) -> tuple[float, str]:
        return (item.seq or 0) if by_seq else item.stored_at.timestamp(), item.id

    return sorted(intact_items(found), key=place, reverse="DESC" in order)


def _visible_revision(db: Database, item_id: str, scope: Scope) -> Item:
    """Return the revision as of the scope's time or, where there is none, the last."""
    found = get_items(db, [item_id], scope.as_of) or get_items(db, [item_id], None)
    if item_id not in found:
        raise NotFound(f"there is no memory {item_id!r}")
    return found[item_id]


_MAX_PER_SLOT = 64  # of one slot: the newest
_SELECT_SLOT_ITEMS = f"""
    SELECT {SELECT_HASHED_ITEM}
    FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.subject = wanted.value ->> 0 AND i.attribute = wanted.value ->> 1
    LEFT JOIN usage AS u ON u.id = i.id
    WHERE i.live_to IS NULL AND PREDICATE
    ORDER BY i.stored_at DESC, i.id LIMIT ?
"""


class SqlItems:
    """The items of a space: `ItemStore` in SQLite."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def put(self, records: Sequence[Record], *, actor: str, now: datetime) -> list[PutResult]:
        from bethink.store.sql import revisions  # start-up time: reading does without

        with self._connections.write_transaction() as db:
            return revisions.put_records(
                db, records, actor=actor, now=to_ms(now), ceiling=self._connections.ceiling
            )

    def _visible(self, ids: Sequence[str]) -> Sequence[str]:
        """Return the ids without those of memories above the ceiling, which cannot change."""
        if self._connections.ceiling == HIGHEST:
            return ids
        with self._connections.read_transaction() as db:
            hidden = {item for (item,) in select(db, "SELECT id FROM temp.hidden_item")}
        return [item for item in ids if item not in hidden]

    def get(self, ids: Sequence[str], *, as_of: datetime | None = None) -> dict[str, Item]:
        with self._connections.read_transaction() as db:
            return get_items(db, ids, as_of)

    def resolve(self, part: str) -> list[str]:
        with self._connections.read_transaction() as db:
            if not part:
                return []
            found = [row[0] for row in select(db, _RESOLVE_ID, (part,))]
            return found[:1] if found[:1] == [part] else found

    def history(self, item_id: str) -> list[Item]:
        with self._connections.read_transaction() as db:
            return intact_items(select(db, _SELECT_REVISIONS, (item_id,)))

    def browse(
        self, scope: Scope, *, limit: int, after: str | None = None, offset: int = 0
    ) -> list[Item]:
        with self._connections.read_transaction() as db:
            predicate = compile_scope(scope)
            order = "ORDER BY i.stored_at DESC, i.id DESC"
            rest, position = "", Row()
            if after is not None:
                end = _visible_revision(db, after, scope)
                rest, position = "AND (i.stored_at, i.id) < (?, ?)", (to_ms(end.stored_at), end.id)
            # The rows of a topic or a speaker have an index in this order.
            if predicate.indexed and not (scope.filters.topics or scope.filters.speakers):
                few = narrow_to_few(db, predicate)
                window = None if few else newest_window(db, rest, position, offset + limit)
                if window is not None:
                    by_row = predicate._replace(sql=predicate.sql_row_by_row)
                    near, values = f"{rest} {window.sql} {order}", (*position, *window.values)
                    found = _select_items(db, by_row, near, values, limit, offset=offset)
                    if len(found) == limit or not window.values:
                        return found
                predicate = few or predicate
            return _select_items(db, predicate, f"{rest} {order}", position, limit, offset=offset)

    def around(self, item_id: str, *, window: int, scope: Scope) -> list[Item]:
        with self._connections.read_transaction() as db:
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

    def from_source(self, source: str) -> list[str]:
        """Return all ids that ever came from a source.

        A network client can claim any source, so the journal's name for it (``http:laptop``)
        selects everything that it stored.
        """
        with self._connections.read_transaction() as db:
            return [row[0] for row in select(db, _FROM_SOURCE, (source,))]

    def find_keys(self, keys: tuple[str, ...]) -> dict[str, tuple[str, str]]:
        with self._connections.read_transaction() as db:
            rows = select(db, _SELECT_KEYS, (json.dumps(keys, ensure_ascii=False),))
            erased = history.find_erased_keys(db, keys, self._connections.ceiling)
            # Of a key that was used again the last item is that of the key.
            return erased | {key: (item, fingerprint) for key, item, fingerprint in rows}

    def find_duplicates(
        self, texts: Sequence[tuple[str, Sequence[int]]], scope: Scope
    ) -> list[list[Item]]:
        with self._connections.read_transaction() as db:
            # Most memories have no duplicate, which two cheap look-ups show.
            marks = {fingerprint for fingerprint, _ in texts}
            read_ahead(db, (_ROWS_OF_FINGERPRINTS, (json.dumps(sorted(marks)),)))
            bands = _rows_by(db, _ROWS_OF_BANDS, {band for _, sketch in texts for band in sketch})
            exact = _rows_by(db, _ROWS_OF_FINGERPRINTS, marks)
            wanted = [_similar_rows(exact.get(mark, ()), sketch, bands) for mark, sketch in texts]
            first = dict.fromkeys(rid for rids in wanted for rid in rids[:_MAX_DUPLICATES])
            known = _read_duplicates(db, list(first), scope)
            found = []
            for rids in wanted:
                kept = [rid for rid in rids[:_MAX_DUPLICATES] if rid in known]
                if len(kept) < min(_MAX_DUPLICATES, len(rids)):
                    # Some are not in scope: those after them take their place.
                    more = [rid for rid in rids[_MAX_DUPLICATES:] if rid not in known]
                    known |= _read_duplicates(db, more, scope)
                    kept = [rid for rid in rids if rid in known][:_MAX_DUPLICATES]
                found.append([item for rid in kept for item in known[rid]])
            return found

    def slots(self, pairs: Sequence[tuple[str, str]], scope: Scope) -> list[Item]:
        if not pairs:
            return []
        predicate = compile_scope(scope)
        sql = _SELECT_SLOT_ITEMS.replace("PREDICATE", predicate.sql)
        encoded = json.dumps([list(pair) for pair in dict.fromkeys(pairs)], ensure_ascii=False)
        with self._connections.read_transaction() as db:
            rows = select(db, sql, (encoded, *predicate.values, _MAX_PER_SLOT * len(pairs)))
        return intact_items(rows)

    def damaged(self, ids: Sequence[str], *, as_of: datetime | None = None) -> list[str]:
        """One whose number or beginning is damaged is not found as the last, or as of then."""
        with self._connections.read_transaction() as db:
            rows = {row[1]: row for row in _rows_of(db, ids, as_of)}
            lost = [item for item in ids if item not in rows]
            damaged = [item for item, row in rows.items() if not _is_sound(row)]
            revisions = {
                item: select(db, _SELECT_REVISIONS, (item,)) for item in dict.fromkeys(lost)
            }
            return damaged + [
                item for item, all_ in revisions.items() if not all(map(_is_sound, all_))
            ]

    def end(
        self,
        ids: Sequence[str],
        *,
        how: str,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> list[str]:
        from bethink.store.sql import revisions  # start-up time: reading does without

        ids = self._visible(ids)
        with self._connections.write_transaction() as db:
            unchanged = ids if only is None else revisions.filter_unchanged(db, ids, only)
            return revisions.end_items(db, unchanged, how=how, actor=actor, now=to_ms(now))

    def restore(self, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]:
        from bethink.store.sql import revisions  # start-up time: reading does without

        ids = self._visible(ids)
        with self._connections.write_transaction() as db:
            return revisions.restore_items(db, ids, actor=actor, now=to_ms(now))

    def set_status(
        self,
        ids: Sequence[str],
        status: Status,
        *,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> None:
        from bethink.store.sql import revisions  # start-up time: reading does without

        ids = self._visible(ids)
        with self._connections.write_transaction() as db:
            unchanged = ids if only is None else revisions.filter_unchanged(db, ids, only)
            revisions.set_status(db, unchanged, status, actor=actor, now=to_ms(now))

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> EraseReceipt:
        from bethink.store.sql import erase  # start-up time: reading does without

        ids = self._visible(ids)
        with self._connections.write_transaction() as db:
            receipt = erase.erase_items(db, ids, actor=actor, now=to_ms(now))
        if not receipt.ids:
            return receipt
        remaining = self._connections.base.scrub()
        if self._connections.ceiling < HIGHEST:
            # What else went, or is kept, may be above the ceiling.
            counts = {"memories": len(receipt.ids)}
            return receipt._replace(removed=counts, out_of_reach=remaining)
        return receipt._replace(out_of_reach=(*receipt.out_of_reach, *remaining))
