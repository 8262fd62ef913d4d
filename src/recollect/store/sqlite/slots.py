"""Facts by what they are about: one subject, one attribute, and who holds that slot."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from recollect.model import Item
from recollect.ports import Kept, Record, Scope
from recollect.store.sqlite import journal, lifecycle
from recollect.store.sqlite.connection import Connections, select
from recollect.store.sqlite.rows import SELECT_ITEM, to_item
from recollect.store.sqlite.scope import compile_scope

RULES = "rules"  # who judged, for the journal: nobody said that the older one is out of date
_MOST = 64  # of one slot: the newest
_OTHER_NAMES = """
    SELECT DISTINCT a.alias, b.alias FROM json_each(?) AS wanted
    CROSS JOIN alias AS a ON a.alias = wanted.value
    CROSS JOIN alias AS b ON b.entity = a.entity
    ORDER BY a.alias, b.alias
"""
_HOLDING = f"""
    SELECT {SELECT_ITEM}
    FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.subject = wanted.value ->> 0 AND i.attribute = wanted.value ->> 1
    LEFT JOIN usage AS u ON u.id = i.id
    WHERE i.live_to IS NULL AND PREDICATE
    ORDER BY i.stored_at DESC, i.id LIMIT ?
"""


class Slotted:
    """One part of a `Store`; what it works with is the whole one's."""

    _connections: Connections

    def other_names(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        asked = json.dumps(list(dict.fromkeys(names)), ensure_ascii=False)
        found: dict[str, list[str]] = {}
        with self._connections.reading() as db:
            for name, other in select(db, _OTHER_NAMES, (asked,)):
                found.setdefault(name, []).append(other)
        return {name: tuple(others) for name, others in found.items()}

    def slots(self, wanted: Sequence[tuple[str, str]], scope: Scope) -> list[Item]:
        if not wanted:
            return []
        predicate = compile_scope(scope)
        sql = _HOLDING.replace("PREDICATE", predicate.sql)
        asked = json.dumps([list(pair) for pair in dict.fromkeys(wanted)], ensure_ascii=False)
        with self._connections.reading() as db:
            rows = select(db, sql, (asked, *predicate.values, _MOST * len(wanted)))
        return [to_item(row) for row in rows]


def settle(db: apsw.Connection, records: Sequence[Record], kept: Sequence[Kept], now: int) -> None:
    """Takes out of recall what the stored records supersede, in the caller's transaction.

    What has changed since it was looked at is left alone, and so is everything that a
    record would have superseded which was not stored after all.
    """
    revisions: dict[str, int] = {}
    born: list[str] = []
    for record, outcome in zip(records, kept, strict=True):
        if outcome.outcome == "stored":
            revisions.update(record.supersedes)
            if record.item.rev == 1 and record.item.status == "superseded":
                born.append(record.item.id)
    if revisions:
        still = lifecycle.unchanged(db, list(revisions), revisions)
        lifecycle.set_status(db, still, "superseded", actor=RULES, now=now)
    if born:
        # Stored so already; the line lets the standing be undone like any other.
        lines = [journal.Line("status", item, "superseded") for item in born]
        journal.write(db, lines, actor=RULES, at=now)
