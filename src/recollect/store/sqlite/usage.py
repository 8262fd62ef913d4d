"""How memories have been used, and what has been going on around entities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import apsw

from recollect.ports import Activity, Usage
from recollect.store.sqlite.clock import DAY_MS, from_ms, from_ms_or_none, to_ms
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.terms import as_table

_USAGE = """
    SELECT u.id, u.recalls, u.last_at, u.stamps,
        coalesce((SELECT sum(d.recalls) FROM usage_day AS d
            WHERE d.id = u.id AND d.day > ?2 - 30 AND d.day <= ?2), 0),
        coalesce((SELECT sum(d.recalls) FROM usage_day AS d
            WHERE d.id = u.id AND d.day > ?2 - 90 AND d.day <= ?2), 0)
    FROM carray(?1) AS w CROSS JOIN usage AS u ON u.id = w.value
"""
_ACTIVITY = """
    SELECT l.dst, sum(i.stored_at > ?2 - 86400000), sum(i.stored_at > ?2 - 7 * 86400000), count(*),
        min(i.stored_at), avg(CASE WHEN i.stored_at > ?2 - 7 * 86400000 THEN i.importance END)
    FROM carray(?1) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    CROSS JOIN item AS i ON i.id = l.src AND i.live_to IS NULL
    WHERE i.stored_at <= ?2 GROUP BY l.dst
"""


def usage(db: apsw.Connection, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
    """How items have been used; those never used are left out."""
    if not ids:
        return {}
    at = to_ms(now)
    rows = select(db, _USAGE, (as_table(tuple(dict.fromkeys(ids))), at // DAY_MS))
    return {
        item: Usage(
            recalls,
            from_ms_or_none(last),
            tuple(from_ms(stamp) for stamp in json.loads(stamps)),
            lately,
            quarter,
        )
        for item, recalls, last, stamps, lately, quarter in rows
    }


def activity(db: apsw.Connection, entities: Sequence[str], now: datetime) -> dict[str, Activity]:
    """How many memories were stored about each entity, and when."""
    if not entities:
        return {}
    rows = select(db, _ACTIVITY, (as_table(tuple(dict.fromkeys(entities))), to_ms(now)))
    return {
        entity: Activity(day, week, count, from_ms(first), 0.5 if mean is None else mean)
        for entity, day, week, count, first, mean in rows
    }
