"""Look items up: by id or prefix, by time, by neighbourhood, by shared entities."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from bethink.errors import NotFound
from bethink.model import Item
from bethink.ports import Match, Scope, SearchResult, SharedEntities, Sibling
from bethink.store.sqlite.db.connection import select
from bethink.store.sqlite.db.history import AS_OF_CTE, MENTION_COUNT, MENTION_LINK
from bethink.store.sqlite.db.rows import SELECT_ITEM, item_selection, to_item
from bethink.store.sqlite.db.sql_functions import ceil_ms, from_ms, to_ms, to_ms_or_none
from bethink.store.sqlite.lifecycle import to_json_ids
from bethink.store.sqlite.search.lexical import ItemLoader, as_table
from bethink.store.sqlite.search.scope import Predicate, compile_scope

# Entities called special (the user, the agent itself) are in everything and say nothing.
_ENTITIES_OF_ITEMS = """
    SELECT l.src, e.id, e.mentions FROM carray(?1) AS w
    CROSS JOIN link AS l ON l.src = w.value AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity' AND l.confidence >= ?2
    CROSS JOIN entity AS e ON e.id = l.dst AND e.kind <> 'special'
    ORDER BY l.src, e.id
"""
_ITEMS_OF_ENTITIES = """
    SELECT l.dst, l.src, l.confidence FROM carray(?1) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity' AND l.confidence >= ?2
    ORDER BY l.dst, l.src
"""
# What was spoken of then, or is now: the caller knows what its revisions speak of.
_ENTITIES_OF_ITEMS_AS_OF = f"""
    {AS_OF_CTE} SELECT l.src, e.id, {MENTION_COUNT} FROM carray(?) AS w
    CROSS JOIN link AS l ON l.src = w.value AND {MENTION_LINK} AND l.confidence >= ?
    CROSS JOIN entity AS e ON e.id = l.dst AND e.kind <> 'special'
    ORDER BY l.src, e.id
"""
_ITEMS_OF_ENTITIES_AS_OF = f"""
    SELECT l.dst, l.src, l.confidence FROM carray(?1) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND {MENTION_LINK} AND l.confidence >= ?2
    ORDER BY l.dst, l.src
"""


class SiblingLimits(NamedTuple):
    """Which entities count: mentioned by at most so many memories, with this confidence."""

    most: int
    min_confidence: float


def find_siblings(
    db: apsw.Connection, ids: Sequence[str], limits: SiblingLimits, as_of_ms: int | None = None
) -> SharedEntities:
    """Return items that share entities with these items, confidently enough.

    Entities that more than ``most`` memories mention are hubs and are left out. As of a
    moment in the past it may return too much: entities an item only mentions since.
    """
    if not ids:
        return SharedEntities()
    most, min_confidence = limits
    asked = as_table(tuple(dict.fromkeys(ids)))
    if as_of_ms is None:
        rows = select(db, _ENTITIES_OF_ITEMS, (asked, min_confidence))
    else:
        rows = select(db, _ENTITIES_OF_ITEMS_AS_OF, (as_of_ms, asked, min_confidence))
    hubs = sorted({entity for _, entity, mentions in rows if mentions > most})
    telling = sorted({entity for _, entity, mentions in rows if mentions <= most})
    if not telling:
        return SharedEntities((), tuple(hubs))
    mentions: dict[str, list[tuple[str, float]]] = {}
    sql = _ITEMS_OF_ENTITIES if as_of_ms is None else _ITEMS_OF_ENTITIES_AS_OF
    for entity, item, confidence in select(db, sql, (as_table(tuple(telling)), min_confidence)):
        mentions.setdefault(entity, []).append((item, confidence))
    found = tuple(
        Sibling(of, entity, item, confidence)
        for of, entity, _ in rows
        for item, confidence in mentions.get(entity, ())
        if item != of
    )
    return SharedEntities(found, tuple(hubs))


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
# Of a band that many share, the newest are enough: a template's copies are all alike.
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
    then = to_ms_or_none(as_of)
    start, values = item_selection(then)
    if then is None:
        rows = select(db, start + _GET_LATEST, (*values, to_json_ids(ids)))
    else:
        rows = select(db, start + _GET_AS_OF, (*values, to_json_ids(ids), then))
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
    # Most memories are like no other, which two cheap look-ups tell.
    bands = " UNION ALL ".join([_ROWS_OF_BAND] * len(sketch))
    shared = Counter(rid for (rid,) in select(db, bands, tuple(sketch))) if sketch else Counter()
    same = [rid for (rid,) in select(db, _ROWS_OF_FINGERPRINT, (fingerprint,))]
    likest = sorted(shared, key=lambda rid: (-shared[rid], rid))
    rids = list(dict.fromkeys((*same, *likest)))
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
    place = (to_ms(end.stored_at), end.id)
    order = "AND (i.stored_at, i.id) < (?, ?) ORDER BY i.stored_at DESC, i.id DESC"
    return _select_items(db, predicate, order, place, limit)


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
    place = f"(i.{key}, i.id)"
    earlier = f"{within} AND {place} < (?, ?) ORDER BY i.{key} DESC, i.id DESC"
    later = f"{within} AND {place} > (?, ?) ORDER BY i.{key}, i.id"
    before = _select_items(db, predicate, earlier, (*values, at, middle.id), window)
    after = _select_items(db, predicate, later, (*values, at, middle.id), window)
    return [*reversed(before), *after]


def _select_items(
    db: apsw.Connection, predicate: Predicate, rest: str, values: tuple[Any, ...], limit: int
) -> list[Item]:
    start, first = item_selection(predicate.then)
    sql = f"{start}{_FROM_ITEMS} WHERE {predicate.sql} {rest} LIMIT ?"
    return [to_item(row) for row in select(db, sql, (*first, *predicate.values, *values, limit))]


def _visible_revision(db: apsw.Connection, item_id: str, scope: Scope) -> Item:
    """Return the revision as of the scope's time or, where there is none, the last."""
    found = get_items(db, [item_id], scope.as_of) or get_items(db, [item_id], None)
    if item_id not in found:
        raise NotFound(f"there is no memory {item_id!r}")
    return found[item_id]


_EVENT_TIME = "coalesce(i.occurred_at, i.stored_at)"
# By the index on lengths: how far before a window something may have begun that reaches it.
_LONGEST_DURATION = """
    SELECT max(occurred_end - coalesce(occurred_at, stored_at)) FROM item
    WHERE occurred_end IS NOT NULL
"""


class TimeWindow(NamedTuple):
    """A time range, and whether events that began before it and reach into it count."""

    start: datetime
    end: datetime
    overlapping: bool = False


def search_time(
    db: apsw.Connection, window: TimeWindow, depth: int, predicate: Predicate, hydrate: ItemLoader
) -> SearchResult:
    """Return items that happened in [start, end), nearest to its middle first, ties by id.

    The middle scores 1, the edges one half; an item counts where it began.
    """
    start, end, overlapping = window
    first, last = ceil_ms(start), ceil_ms(end)
    if first >= last or depth < 1:
        return SearchResult((), "the window is empty")
    middle, half = (first + last) / 2, (last - first) / 2
    rows = [
        *_rows_in_window(db, (first, middle), "DESC", depth, predicate),
        *_rows_in_window(db, (middle, last), "ASC", depth, predicate),
    ]
    if overlapping:
        rows += _rows_reaching(db, first, depth, predicate)
    ranked = sorted((abs(at - middle), item, rid, at) for rid, item, at in rows)[:depth]
    items = hydrate(db, [rid for _, _, rid, _ in ranked])
    matches = []
    for distance, _, rid, at in ranked:
        item = items.get(rid)
        if item is not None:
            verb = "happened" if item.occurred_at else "stored"
            why = f"{verb} {from_ms(at):%Y-%m-%d}"
            matches.append(Match(item, max(0.0, 1.0 - 0.5 * distance / half), why))
    return SearchResult(tuple(matches), f"from {start:%Y-%m-%d} to {end:%Y-%m-%d}", 1.0)


def _rows_in_window(
    db: apsw.Connection,
    window: tuple[float, float],
    direction: str,
    depth: int,
    predicate: Predicate,
) -> list[tuple[Any, ...]]:
    """Return the first ``depth`` rows in scope from one end of a window, by the time index."""
    return select(
        db,
        f"SELECT i.rid, i.id, {_EVENT_TIME} AS at FROM item AS i"
        f" WHERE {_EVENT_TIME} >= ? AND {_EVENT_TIME} < ? AND ({predicate.sql})"
        f" ORDER BY {_EVENT_TIME} {direction}, i.id LIMIT ?",
        (*window, *predicate.values, depth),
    )


def _rows_reaching(
    db: apsw.Connection, first: int, depth: int, predicate: Predicate
) -> list[tuple[Any, ...]]:
    """Return items that began before a moment and had not ended by then, latest first."""
    longest = db.execute(_LONGEST_DURATION).get
    if not longest or longest <= 0:
        return []
    return select(
        db,
        f"SELECT i.rid, i.id, {_EVENT_TIME} AS at FROM item AS i"
        f" WHERE {_EVENT_TIME} >= ? AND {_EVENT_TIME} < ? AND i.occurred_end > ? AND ({predicate.sql})"
        f" ORDER BY {_EVENT_TIME} DESC, i.id LIMIT ?",
        (first - longest, first, first, *predicate.values, depth),
    )
