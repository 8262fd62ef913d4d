"""What happened when: memories by their times."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import apsw

from recollect.ports import Found, Match
from recollect.store.sqlite.clock import ceil_ms, from_ms
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.scope import Predicate

_WHEN = "coalesce(i.occurred_at, i.stored_at)"
# By the index on lengths: how far before a window something may have begun that reaches it.
_LONGEST = """
    SELECT max(occurred_end - coalesce(occurred_at, stored_at)) FROM item
    WHERE occurred_end IS NOT NULL
"""


class Window(NamedTuple):
    """A stretch of time, and whether what began before and went on into it counts."""

    start: datetime
    end: datetime
    overlapping: bool = False


def search_time(
    db: apsw.Connection, within: Window, depth: int, predicate: Predicate, hydrate: Hydrate
) -> Found:
    """Items that happened in [start, end), nearest to its middle first, ties by id.

    The middle scores 1, the edges one half; an item counts where it began.
    """
    start, end, overlapping = within
    first, last = ceil_ms(start), ceil_ms(end)
    if first >= last or depth < 1:
        return Found((), "the window is empty")
    middle, half = (first + last) / 2, (last - first) / 2
    rows = [
        *_in_order(db, (first, middle), "DESC", depth, predicate),
        *_in_order(db, (middle, last), "ASC", depth, predicate),
    ]
    if overlapping:
        rows += _reaching(db, first, depth, predicate)
    ranked = sorted((abs(at - middle), item, rid, at) for rid, item, at in rows)[:depth]
    items = hydrate(db, [rid for _, _, rid, _ in ranked])
    matches = []
    for distance, _, rid, at in ranked:
        item = items.get(rid)
        if item is not None:
            verb = "happened" if item.occurred_at else "stored"
            why = f"{verb} {from_ms(at):%Y-%m-%d}"
            matches.append(Match(item, max(0.0, 1.0 - 0.5 * distance / half), why))
    return Found(tuple(matches), f"from {start:%Y-%m-%d} to {end:%Y-%m-%d}", 1.0)


def _in_order(
    db: apsw.Connection,
    window: tuple[float, float],
    direction: str,
    depth: int,
    predicate: Predicate,
) -> list[tuple[Any, ...]]:
    """The first ``depth`` rows in scope from one end of a window, by the index on times."""
    return select(
        db,
        f"SELECT i.rid, i.id, {_WHEN} AS at FROM item AS i"
        f" WHERE {_WHEN} >= ? AND {_WHEN} < ? AND ({predicate.sql})"
        f" ORDER BY {_WHEN} {direction}, i.id LIMIT ?",
        (*window, *predicate.values, depth),
    )


def _reaching(
    db: apsw.Connection, first: int, depth: int, predicate: Predicate
) -> list[tuple[Any, ...]]:
    """What began before a moment and had not ended by then, the last begun first."""
    longest = db.execute(_LONGEST).get
    if not longest or longest <= 0:
        return []
    return select(
        db,
        f"SELECT i.rid, i.id, {_WHEN} AS at FROM item AS i"
        f" WHERE {_WHEN} >= ? AND {_WHEN} < ? AND i.occurred_end > ? AND ({predicate.sql})"
        f" ORDER BY {_WHEN} DESC, i.id LIMIT ?",
        (first - longest, first, first, *predicate.values, depth),
    )
