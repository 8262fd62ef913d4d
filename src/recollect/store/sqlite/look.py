"""Looking items up: by id, by part of an id, by time, by what surrounds them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from recollect.errors import NotFound
from recollect.model import Item
from recollect.ports import Scope
from recollect.store.sqlite.clock import to_ms, to_ms_or_none
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.lifecycle import id_list
from recollect.store.sqlite.rows import SELECT_ITEM, selection, to_item
from recollect.store.sqlite.scope import Predicate, compile_scope

_FROM = " FROM item AS i LEFT JOIN usage AS u ON u.id = i.id"
_WANTED = """
    FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.id = wanted.value
    LEFT JOIN usage AS u ON u.id = i.id
"""
_GET = f"{_WANTED} WHERE i.rev = (SELECT max(rev) FROM item WHERE id = wanted.value)"
_GET_AS_OF = f"""
    {_WANTED} WHERE i.rev = (
        SELECT max(rev) FROM item WHERE id = wanted.value AND live_from <= ?)
"""
_HISTORY = f"SELECT {SELECT_ITEM} {_FROM} WHERE i.id = ? ORDER BY i.rev"
_RESOLVE = """
    SELECT DISTINCT id FROM item
    WHERE substr(id, 1, length(?1)) = ?1 OR substr(id, -length(?1)) = ?1
    ORDER BY id <> ?1, id LIMIT 10
"""
# Of a band that many share, the newest are enough: a template's copies are all alike.
_OF_BAND = "SELECT rid FROM (SELECT rid FROM sketch WHERE band = ? ORDER BY rid DESC LIMIT 64)"
_SAME_WORDS = "SELECT rid FROM item WHERE fingerprint = ? AND live_to IS NULL"
_ALIKE = f"""
    SELECT {SELECT_ITEM}
    FROM json_each(?) AS w CROSS JOIN item AS i ON i.rid = w.value
    LEFT JOIN usage AS u ON u.id = i.id
    WHERE i.live_to IS NULL AND PREDICATE
    ORDER BY w.key, i.id LIMIT 64
"""


def get(db: apsw.Connection, ids: Sequence[str], as_of: datetime | None) -> dict[str, Item]:
    """Items by id, in the order asked for, as they are or were."""
    then = to_ms_or_none(as_of)
    start, values = selection(then)
    if then is None:
        rows = select(db, start + _GET, (*values, id_list(ids)))
    else:
        rows = select(db, start + _GET_AS_OF, (*values, id_list(ids), then))
    return {row[1]: to_item(row) for row in rows}


def resolve(db: apsw.Connection, part: str) -> list[str]:
    """Ids that begin or end with a part; the id itself where the part is whole."""
    if not part:
        return []
    found = [row[0] for row in select(db, _RESOLVE, (part,))]
    return found[:1] if found[:1] == [part] else found


def history(db: apsw.Connection, item_id: str) -> list[Item]:
    """All revisions, oldest first."""
    return [to_item(row) for row in select(db, _HISTORY, (item_id,))]


def find_duplicates(
    db: apsw.Connection, fingerprint: str, sketch: Sequence[int], scope: Scope
) -> list[Item]:
    """Live items with the same words first, then those sharing most of the sketch."""
    # Most memories are like no other, which two cheap look-ups tell.
    bands = " UNION ALL ".join([_OF_BAND] * len(sketch))
    shared = Counter(rid for (rid,) in select(db, bands, tuple(sketch))) if sketch else Counter()
    same = [rid for (rid,) in select(db, _SAME_WORDS, (fingerprint,))]
    likest = sorted(shared, key=lambda rid: (-shared[rid], rid))
    rids = list(dict.fromkeys((*same, *likest)))
    if not rids:
        return []
    predicate = compile_scope(scope)
    sql = _ALIKE.replace("PREDICATE", predicate.sql)
    return [to_item(row) for row in select(db, sql, (json.dumps(rids), *predicate.values))]


_FROM_SOURCE = """
    SELECT id FROM item WHERE source = ?1
    UNION
    SELECT item FROM event
    WHERE kind IN ('stored', 'imported') AND actor = ?1 AND instr(?1, ':')
        AND item IN (SELECT id FROM item)
    ORDER BY 1
"""


def from_source(db: apsw.Connection, source: str) -> list[str]:
    """Ids of all that ever came from a source.

    Who came over a network can say what they like of their sources: what is told by the
    journal's name for them (``http:laptop``) is all that they brought.
    """
    return [row[0] for row in select(db, _FROM_SOURCE, (source,))]


def find_key(db: apsw.Connection, key: str) -> tuple[str, str] | None:
    """The item an idempotency key stands for, and its fingerprint."""
    rows = select(db, "SELECT id, fingerprint FROM idempotency WHERE key = ?", (key,))
    return rows[0] if rows else None


def browse(db: apsw.Connection, scope: Scope, limit: int, after: str | None) -> list[Item]:
    """Newest first; a page starts behind the item that ended the last one."""
    predicate = compile_scope(scope)
    if after is None:
        return _select(db, predicate, "ORDER BY i.stored_at DESC, i.id DESC", (), limit)
    end = _visible(db, after, scope)
    place = (to_ms(end.stored_at), end.id)
    order = "AND (i.stored_at, i.id) < (?, ?) ORDER BY i.stored_at DESC, i.id DESC"
    return _select(db, predicate, order, place, limit)


def around(db: apsw.Connection, item_id: str, window: int, scope: Scope) -> list[Item]:
    """Neighbours in the same conversation or, outside of one, in the order of storing."""
    middle = _visible(db, item_id, scope)
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
    before = _select(db, predicate, earlier, (*values, at, middle.id), window)
    after = _select(db, predicate, later, (*values, at, middle.id), window)
    return [*reversed(before), *after]


def _select(
    db: apsw.Connection, predicate: Predicate, rest: str, values: tuple[Any, ...], limit: int
) -> list[Item]:
    start, first = selection(predicate.then)
    sql = f"{start}{_FROM} WHERE {predicate.sql} {rest} LIMIT ?"
    return [to_item(row) for row in select(db, sql, (*first, *predicate.values, *values, limit))]


def _visible(db: apsw.Connection, item_id: str, scope: Scope) -> Item:
    """The revision that stands at the scope's time or, where there is none, the last."""
    found = get(db, [item_id], scope.as_of) or get(db, [item_id], None)
    if item_id not in found:
        raise NotFound(f"there is no memory {item_id!r}")
    return found[item_id]
