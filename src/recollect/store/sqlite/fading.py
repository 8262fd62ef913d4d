"""Forgetting by being passed over: ticks, and what recalled memories regain.

A tick takes the same from every memory, so none is touched when one is written: how far
a memory has faded is what the ticks since its last recall add up to (`rows.FADED`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from recollect.ports import Fading
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.rows import FADED
from recollect.store.sqlite.terms import as_table

_NOW = f"""
    SELECT i.id, {FADED} FROM carray(?) AS w
    CROSS JOIN item AS i ON i.id = w.value
        AND i.rev = (SELECT max(rev) FROM item WHERE id = w.value)
    LEFT JOIN usage AS u ON u.id = i.id
"""
_SINCE = """
    SELECT i.id, coalesce(u.decay, 1.0), coalesce(u.decay_at, i.stored_at)
    FROM carray(?) AS w
    CROSS JOIN item AS i ON i.id = w.value
        AND i.rev = (SELECT max(rev) FROM item WHERE id = w.value)
    LEFT JOIN usage AS u ON u.id = i.id
"""
_SET = """
    INSERT INTO usage (id, decay, decay_at, regained)
        VALUES (?1, ?2, ?3, json_array(json_array(?4, ?2, ?3)))
    ON CONFLICT (id) DO UPDATE SET decay = ?2, decay_at = ?3, regained = json_insert(
        CASE WHEN json_array_length(regained) >= 20 THEN json_remove(regained, '$[0]')
        ELSE coalesce(regained, '[]') END, '$[#]', json_array(?4, ?2, ?3))
"""
_LAST = "SELECT number, at, total FROM tick ORDER BY number DESC LIMIT 1"
_TICK = "INSERT INTO tick (number, at, amount, total) VALUES (?, ?, ?, ?)"
_COUNT = """
    INSERT INTO meta (name, value) VALUES ('recalls', '1')
    ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value
"""


def fade(db: apsw.Connection, ids: Sequence[str], now: int, fading: Fading) -> None:
    """Counts one recall: what it returned regains, then, if it is time, all others fade."""
    number, last, total = next(iter(select(db, _LAST)), (0, now - 1, 0.0))
    _regain(db, ids, now, max(now + int(fading.grace_s * 1000), last + 1), fading)
    if fading.interval < 1:
        return
    count = int(db.execute(_COUNT).get)
    if count % fading.interval == 0:
        # Never before the last one, even if the clock went back.
        at = max(now, last + 1)
        db.execute(_TICK, (number + 1, at, fading.rate, total + fading.rate))


class Faded:
    """The ticks of another space, and what they left of the memories that came from it."""

    def __init__(self) -> None:
        self._ticks: list[tuple[int, float]] = []

    def take(self, tick: Sequence[Any]) -> None:
        """One tick: its number, moment, amount and total."""
        self._ticks.append((tick[1], tick[2]))

    def settle(self, db: apsw.Connection, ids: Sequence[str], now: int) -> None:
        """Writes down what is left of each; only the ticks from now on come off."""
        if not ids or not (self._ticks or select(db, _LAST)):
            return
        rows = select(db, _SINCE, (as_table(tuple(ids)),))
        db.executemany(
            _SET, [(item, self._left(left, since), now, now) for item, left, since in rows]
        )

    def _left(self, at_first: float, since: int) -> float:
        gone = sum(amount for at, amount in self._ticks if at >= since)
        return max(0.0, round(at_first - gone, 9))


def _regain(
    db: apsw.Connection, ids: Sequence[str], now: int, safe_until: int, fading: Fading
) -> None:
    if not ids:
        return
    rows = select(db, _NOW, (as_table(tuple(dict.fromkeys(ids))),))
    db.executemany(
        _SET,
        [
            (item, max(0.0, min(1.0, left + fading.gains.get(item, 0.0))), safe_until, now)
            for item, left in rows
        ],
    )
