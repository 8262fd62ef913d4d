"""How memories stood when: every change of a status, and the status at a moment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import apsw

from recollect.store.sqlite.connection import select

# Of `item AS i` at the moment that is bound or, in other statements, put in its place. What
# is in quarantine now is so for every moment: its poison is no better for being older.
STATUS_AT = """
    CASE coalesce((SELECT n.status FROM status_change AS n WHERE n.id = i.id
        ORDER BY n.at DESC LIMIT 1), 'active')
    WHEN 'quarantined' THEN 'quarantined'
    ELSE coalesce((SELECT s.status FROM status_change AS s WHERE s.id = i.id AND s.at <= MOMENT
        ORDER BY s.at DESC LIMIT 1), 'active') END
"""
EVER = 2**62  # later than any moment
# The ids of what had a status at a moment; of several changes the latest tells.
STANDING_AT = """
    SELECT id FROM (SELECT id, status, max(at) FROM status_change WHERE at <= ? GROUP BY id)
    WHERE status = ?
"""
_LAST = "SELECT at, status FROM status_change WHERE id = ? ORDER BY at DESC LIMIT 1"
_ADD = "INSERT OR REPLACE INTO status_change (id, at, status) VALUES (?, ?, ?)"
# The history should end with what holds. Where it does not, the last revision has stood
# so since it began, or since the last change that is known.
_UNTOLD = """
    SELECT i.id, max(i.live_from, coalesce(max(s.at), i.live_from)), i.status
    FROM item AS i LEFT JOIN status_change AS s ON s.id = i.id
    WHERE i.rev = (SELECT max(rev) FROM item WHERE id = i.id) AND WANTED
    GROUP BY i.id
    HAVING i.status <> coalesce((SELECT l.status FROM status_change AS l WHERE l.id = i.id
        ORDER BY l.at DESC LIMIT 1), 'active')
    ORDER BY i.id
"""
_STRANGERS = """
    SELECT DISTINCT id FROM status_change
    WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.id = status_change.id) ORDER BY id
"""


class Change(NamedTuple):
    """An item's status from a moment on."""

    id: str
    at: int
    status: str


def note(db: apsw.Connection, changes: Iterable[Change]) -> None:
    """Adds those that change anything, in the caller's transaction."""
    for change in changes:
        last, status = next(iter(select(db, _LAST, (change.id,))), (change.at, "active"))
        if status != change.status:
            # Never before the last one, even if the clock went back.
            db.execute(_ADD, change._replace(at=max(change.at, last)))


def complete(db: apsw.Connection, ids: Sequence[str]) -> None:
    """Adds for these items what their rows say and their history does not."""
    wanted = "i.id IN (SELECT value FROM json_each(?))"
    rows = select(db, _UNTOLD.replace("WANTED", wanted), (json.dumps(list(ids)),))
    db.executemany(_ADD, rows)


def verify(db: apsw.Connection) -> str:
    """What is wrong with the history, in words; empty when nothing is."""
    untold = [row[0] for row in select(db, _UNTOLD.replace("WANTED", "1"))]
    strangers = [row[0] for row in select(db, _STRANGERS)]
    problems = []
    if untold:
        problems.append(f"{len(untold):,} end otherwise than they stand: {untold[0]} and others")
    if strangers:
        problems.append(f"{len(strangers):,} are of no memory: {strangers[0]} and others")
    return "; ".join(problems)


def mend(db: apsw.Connection) -> None:
    """Ends every history with what holds, and drops those of nobody."""
    db.executemany(_ADD, select(db, _UNTOLD.replace("WANTED", "1")))
    db.executemany("DELETE FROM status_change WHERE id = ?", select(db, _STRANGERS))
