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
from recollect.store.sqlite.warmth import USED_IN_30, USED_IN_90, USED_IN_ALL, USED_LAST

MOST_JUDGED = 200

_USAGE = f"""
    SELECT u.id, {USED_IN_ALL}, {USED_LAST}, u.stamps, {USED_IN_30}, {USED_IN_90}
    FROM (SELECT ? AS at, ? AS day) AS m
    CROSS JOIN carray(?) AS w CROSS JOIN usage AS u ON u.id = w.value
"""
# Seen are mentions, whether or not the memory is still there; a live one says how
# important it was. Of a flood the newest tell enough.
_SEEN = """
    l.dst = w.value AND l.type = 'mentions' AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    AND l.created_at <= m.at
"""
_ACTIVITY = f"""
    SELECT e.id, e.created_at,
        (SELECT count(*) FROM link AS l WHERE {_SEEN} AND l.created_at > m.at - {DAY_MS}),
        (SELECT count(*) FROM link AS l WHERE {_SEEN} AND l.created_at > m.at - {7 * DAY_MS}),
        e.mentions - (SELECT count(*) FROM link AS l
            WHERE l.dst = w.value AND l.type = 'mentions' AND l.created_at > m.at),
        (SELECT avg(importance) FROM (SELECT i.importance FROM link AS l
            CROSS JOIN item AS i ON i.id = l.src AND i.live_to IS NULL
            WHERE {_SEEN} AND l.created_at > m.at - {7 * DAY_MS}
            ORDER BY l.created_at DESC LIMIT {MOST_JUDGED}))
    FROM (SELECT ? AS at) AS m
    CROSS JOIN carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value
    WHERE e.created_at <= m.at
"""


def usage(db: apsw.Connection, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
    """How items have been used; those never used are left out."""
    if not ids:
        return {}
    at = to_ms(now)
    rows = select(db, _USAGE, (at, at // DAY_MS, as_table(tuple(dict.fromkeys(ids)))))
    return {
        item: Usage(
            recalls,
            from_ms_or_none(last),
            tuple(from_ms(stamp) for stamp in json.loads(stamps) if stamp <= at),
            lately,
            quarter,
        )
        for item, recalls, last, stamps, lately, quarter in rows
        if recalls
    }


def activity(db: apsw.Connection, entities: Sequence[str], now: datetime) -> dict[str, Activity]:
    """How many memories were stored about each entity, and when.

    Costs as much as the last week holds: what came before is counted already.
    """
    if not entities:
        return {}
    rows = select(db, _ACTIVITY, (to_ms(now), as_table(tuple(dict.fromkeys(entities)))))
    return {
        entity: Activity(day, week, max(count, week), from_ms(first), 0.5 if mean is None else mean)
        for entity, first, day, week, count, mean in rows
    }
