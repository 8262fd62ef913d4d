"""Entities as they were at a moment in the past, as SQL: the moment is ``m.at``.

What an item spoke of then, the revision of then knows; a link knows only of the live one.
"""

from __future__ import annotations

import apsw

from recollect.store.sqlite.connection import select

MOMENT = "WITH m (at) AS (SELECT ?)"
MENTION = """
    l.type IN ('mentions', 'mentioned') AND l.src_kind = 'item' AND l.dst_kind = 'entity'
"""
SPOKE = """
    CASE WHEN i.live_to IS NULL THEN l.type = 'mentions'
    ELSE instr(i.entities, json_quote(l.dst)) > 0 END
"""
# How many memories that were there mentioned `entity AS e`.
MENTIONS = f"""
    (SELECT count(DISTINCT i.id) FROM m CROSS JOIN link AS l ON l.dst = e.id AND {MENTION}
    CROSS JOIN item AS i ON i.id = l.src
        AND i.live_from <= m.at AND (i.live_to IS NULL OR i.live_to > m.at)
    WHERE {SPOKE})
"""
LAST_SEEN = f"""
    (SELECT max(i.live_from) FROM m CROSS JOIN link AS l ON l.dst = e.id AND {MENTION}
    CROSS JOIN item AS i ON i.id = l.src AND i.live_from <= m.at
    WHERE {SPOKE})
"""
_LAST_CHANGE = "SELECT at FROM event ORDER BY seq DESC LIMIT 1"
_STRANGERS = "SELECT id FROM entity WHERE created_at > ?"


def columns_then(columns: str) -> str:
    """The columns of an entity with its mentions as of then, which are called ``held``."""
    return columns.replace("e.mentions", f"{MENTIONS} AS held")


def is_past(db: apsw.Connection, at: int) -> bool:
    """Whether anything was stored or forgotten after a moment."""
    return any(changed > at for (changed,) in select(db, _LAST_CHANGE))


def not_yet_known(db: apsw.Connection, then: int | None) -> set[str]:
    """Entities that nobody had spoken of at a moment; without one there are none."""
    return set() if then is None else {row[0] for row in select(db, _STRANGERS, (then,))}
