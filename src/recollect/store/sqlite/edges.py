"""Edges between entities: who works with whom, what depends on what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import apsw

from recollect.model import Link
from recollect.store.sqlite.clock import to_ms
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.graph import LINK_COLUMNS, to_link

# An entity is at the end of a link from every memory that mentions it; the index on
# (dst, type) holds all that is asked here, so those are passed over without a look-up.
_OF_ENTITY = f"""
    SELECT {LINK_COLUMNS} FROM (
        SELECT * FROM link WHERE src = ?1 AND src_kind = 'entity' AND dst_kind = 'entity'
        UNION
        SELECT * FROM link WHERE dst = ?1 AND src_kind = 'entity' AND dst_kind = 'entity'
    ) AS l
    WHERE l.created_at <= ?2
    ORDER BY l.created_at DESC, l.src, l.type, l.dst LIMIT ?3
"""


def edges(
    db: apsw.Connection, entities: Sequence[str], each: int, until: datetime
) -> dict[str, list[Link]]:
    """For every entity the edges that lead from or to it, newest first."""
    at = to_ms(until)
    return {
        entity: [to_link(row) for row in select(db, _OF_ENTITY, (entity, at, max(each, 0)))]
        for entity in dict.fromkeys(entities)
    }
