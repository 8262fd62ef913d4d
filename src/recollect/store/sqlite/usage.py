"""How memories have been used, and what has been going on around entities."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import apsw

from recollect.ports import Activity, Usage
from recollect.store.sqlite.clock import DAY_MS, from_ms, from_ms_or_none, to_ms
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.past import MENTION, MOMENT, SPOKE, is_past
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
# The same of the past, by what the revisions of then spoke of.
_ACTIVITY_THEN = f"""
    {MOMENT} SELECT e.id, e.created_at, l.created_at, i.importance,
        i.live_to IS NULL OR i.live_to > m.at
    FROM m CROSS JOIN carray(?) AS w
    CROSS JOIN entity AS e ON e.id = w.value AND e.created_at <= m.at
    CROSS JOIN link AS l ON l.dst = e.id AND {MENTION}
    CROSS JOIN item AS i ON i.id = l.src AND i.rev = (
        SELECT max(r.rev) FROM item AS r WHERE r.id = l.src AND r.live_from <= m.at)
    WHERE {SPOKE} ORDER BY e.id, l.created_at DESC
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
    at, asked = to_ms(now), as_table(tuple(dict.fromkeys(entities)))
    if is_past(db, at):
        rows = select(db, _ACTIVITY_THEN, (at, asked))
        return {
            entity: _activity_then([_Seen(*row) for row in seen], at)
            for entity, seen in groupby(rows, itemgetter(0))
        }
    return {
        entity: Activity(day, week, max(count, week), from_ms(first), 0.5 if mean is None else mean)
        for entity, first, day, week, count, mean in select(db, _ACTIVITY, (at, asked))
    }


class _Seen(NamedTuple):
    """One memory that spoke of an entity, at a moment in the past; the latest come first."""

    entity: str
    first_at: int
    at: int
    importance: float
    was_there: int


def _activity_then(seen: Sequence[_Seen], at: int) -> Activity:
    week = [one for one in seen if at - 7 * DAY_MS < one.at <= at]
    day = sum(one.at > at - DAY_MS for one in week)
    judged = [one.importance for one in week if one.was_there][:MOST_JUDGED]
    mean = math.fsum(judged) / len(judged) if judged else 0.5
    there = sum(one.was_there for one in seen)
    return Activity(day, len(week), max(there, len(week)), from_ms(seen[0].first_at), mean)
