"""Which memories speak of the same as others do: by the entities they share."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from recollect.ports import Shared, Sibling
from recollect.store.sqlite.connection import select
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


def siblings(
    db: apsw.Connection, ids: Sequence[str], *, most: int, min_confidence: float
) -> Shared:
    """What else mentions the entities that these items mention, surely enough.

    Entities that more than ``most`` memories mention are hubs and are left out.
    """
    if not ids:
        return Shared()
    asked = as_table(tuple(dict.fromkeys(ids)))
    rows = select(db, _ENTITIES, (asked, min_confidence))
    hubs = sorted({entity for _, entity, mentions in rows if mentions > most})
    telling = sorted({entity for _, entity, mentions in rows if mentions <= most})
    if not telling:
        return Shared((), tuple(hubs))
    mentions: dict[str, list[tuple[str, float]]] = {}
    for entity, item, confidence in select(
        db, _MENTIONS, (as_table(tuple(telling)), min_confidence)
    ):
        mentions.setdefault(entity, []).append((item, confidence))
    found = tuple(
        Sibling(of, entity, item, confidence)
        for of, entity, _ in rows
        for item, confidence in mentions.get(entity, ())
        if item != of
    )
    return Shared(found, tuple(hubs))
