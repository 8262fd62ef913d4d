"""Which memories speak of the same as others do: by the entities they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw

from recollect.ports import Shared, Sibling
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.past import MENTION, MENTIONS, MOMENT
from recollect.store.sqlite.terms import as_table

# Entities called special (the user, the agent itself) are in everything and say nothing.
_ENTITIES = """
    SELECT l.src, e.id, e.mentions FROM carray(?1) AS w
    CROSS JOIN link AS l ON l.src = w.value AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity' AND l.confidence >= ?2
    CROSS JOIN entity AS e ON e.id = l.dst AND e.kind <> 'special'
    ORDER BY l.src, e.id
"""
_MENTIONS = """
    SELECT l.dst, l.src, l.confidence FROM carray(?1) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity' AND l.confidence >= ?2
    ORDER BY l.dst, l.src
"""
# What was spoken of then, or is now: the caller knows what its revisions speak of.
_ENTITIES_THEN = f"""
    {MOMENT} SELECT l.src, e.id, {MENTIONS} FROM carray(?) AS w
    CROSS JOIN link AS l ON l.src = w.value AND {MENTION} AND l.confidence >= ?
    CROSS JOIN entity AS e ON e.id = l.dst AND e.kind <> 'special'
    ORDER BY l.src, e.id
"""
_MENTIONS_THEN = f"""
    SELECT l.dst, l.src, l.confidence FROM carray(?1) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND {MENTION} AND l.confidence >= ?2
    ORDER BY l.dst, l.src
"""


class Sure(NamedTuple):
    """Of which entities, and how sure: those that at most so many memories mention."""

    most: int
    min_confidence: float


def siblings(
    db: apsw.Connection, ids: Sequence[str], sure: Sure, then: int | None = None
) -> Shared:
    """What else mentions the entities that these items mention, surely enough.

    Entities that more than ``most`` memories mention are hubs and are left out. Of a
    moment in the past it may tell too much: what an item only speaks of since.
    """
    if not ids:
        return Shared()
    most, min_confidence = sure
    asked = as_table(tuple(dict.fromkeys(ids)))
    if then is None:
        rows = select(db, _ENTITIES, (asked, min_confidence))
    else:
        rows = select(db, _ENTITIES_THEN, (then, asked, min_confidence))
    hubs = sorted({entity for _, entity, mentions in rows if mentions > most})
    telling = sorted({entity for _, entity, mentions in rows if mentions <= most})
    if not telling:
        return Shared((), tuple(hubs))
    mentions: dict[str, list[tuple[str, float]]] = {}
    sql = _MENTIONS if then is None else _MENTIONS_THEN
    for entity, item, confidence in select(db, sql, (as_table(tuple(telling)), min_confidence)):
        mentions.setdefault(entity, []).append((item, confidence))
    found = tuple(
        Sibling(of, entity, item, confidence)
        for of, entity, _ in rows
        for item, confidence in mentions.get(entity, ())
        if item != of
    )
    return Shared(found, tuple(hubs))
