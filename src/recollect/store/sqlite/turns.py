"""Conversations keep their order: a number for every turn, and a link to the turn before.

Both are settled inside the write transaction, so that several writers to one session
never give the same number, and a turn that comes late is put in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import apsw

from recollect.errors import Refused
from recollect.model import Item
from recollect.ports import Record
from recollect.store.sqlite.connection import select

_LAST = 2**63 - 1  # the largest number a column holds
_HIGHEST = "SELECT max(seq) FROM item WHERE session = ? AND live_to IS NULL"
_BESIDE = """
    SELECT id FROM item
    WHERE session = ? AND live_to IS NULL AND (seq, id) {side} (?, ?) AND id <> ?
    ORDER BY seq {order}, id {order} LIMIT 1
"""
_BEFORE = _BESIDE.format(side="<", order="DESC")
_AFTER = _BESIDE.format(side=">", order="ASC")
_FOLLOW = """
    INSERT INTO link (src_kind, src, type, dst_kind, dst, source, created_at)
    VALUES ('item', ?, 'follows', 'item', ?, 'rule', ?) ON CONFLICT DO NOTHING
"""
_UNFOLLOW = """
    DELETE FROM link WHERE src = ? AND type = 'follows' AND src_kind = 'item'
    AND dst_kind = 'item'
"""


def numbered(db: apsw.Connection, records: Sequence[Record]) -> list[Record]:
    """The records, those of a session without a number after the last of it."""
    highest: dict[str, int] = {}
    done = []
    for record in records:
        item = record.item
        if item.session is None or item.rev > 1:
            done.append(record)
            continue
        if item.session not in highest:
            found = db.execute(_HIGHEST, (item.session,)).get
            highest[item.session] = -1 if found is None else int(found)
        place = highest[item.session] + 1 if item.seq is None else item.seq
        if place > _LAST:
            raise Refused(f"the session {item.session!r} has no number left for another turn")
        highest[item.session] = max(highest[item.session], place)
        same = item.seq == place
        done.append(record if same else replace(record, item=item._replace(seq=place)))
    return done


def link_turns(db: apsw.Connection, stored: Iterable[Item], now: int) -> None:
    """Links each new turn to the one before it, and the one after to it."""
    turns = [item for item in stored if item.session is not None and item.rev == 1]
    new = {item.id for item in turns}
    for item in turns:
        here = (item.session, item.seq, item.id, item.id)
        for (before,) in select(db, _BEFORE, here):
            db.execute(_FOLLOW, (item.id, before, now))
        for (after,) in select(db, _AFTER, here):
            if after not in new:  # a new one links itself
                db.execute(_UNFOLLOW, (after,))
                db.execute(_FOLLOW, (after, item.id, now))
