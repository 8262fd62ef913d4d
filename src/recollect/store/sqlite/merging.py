"""Two entities that are one: their names and memories brought together, and apart again.

The entity that goes keeps its row and, marked, its links; a link ``same_as`` says where
everything went. The journal only says that it happened: a name is content.
"""

from __future__ import annotations

import json
from datetime import datetime

import apsw

from recollect.errors import NotFound, Refused
from recollect.store.sqlite import journal
from recollect.store.sqlite.clock import to_ms
from recollect.store.sqlite.connection import Connections, select
from recollect.store.sqlite.entity_index import changed

_KNOWN = "SELECT id FROM entity WHERE id IN (?, ?)"
_NAMES = "SELECT alias FROM alias WHERE entity = ? ORDER BY alias"
_ADD_NAME = "INSERT OR IGNORE INTO alias (alias, entity) VALUES (?, ?)"
_DROP_NAME = "DELETE FROM alias WHERE alias = ? AND entity = ?"
_DROP_NAMES = "DELETE FROM alias WHERE entity = ?"
_DROP_VECTOR = "DELETE FROM entity_vector WHERE entity = ?"
_ADD_SAME = """
    INSERT OR REPLACE INTO link (src_kind, src, type, dst_kind, dst, context, source, created_at)
    VALUES ('entity', ?, 'same_as', 'entity', ?, ?, 'caller', ?)
"""
_SAME = "SELECT context FROM link WHERE src = ? AND type = 'same_as' AND dst = ?"
_INTO = "SELECT dst, context FROM link WHERE src = ? AND type = 'same_as' AND src_kind = 'entity'"
_GONE_ON = "SELECT 1 FROM link WHERE src = ? AND type = 'same_as' AND src_kind = 'entity'"
_DROP_SAME = "DELETE FROM link WHERE src = ? AND type = 'same_as' AND dst = ?"
_COPY_MENTIONS = """
    INSERT OR IGNORE INTO link
        (src_kind, src, type, dst_kind, dst, weight, confidence, source, created_at)
    SELECT src_kind, src, type, dst_kind, ?2, weight, confidence, 'same_as:' || ?1, created_at
    FROM link WHERE dst = ?1 AND type = 'mentions' AND src_kind = 'item' AND dst_kind = 'entity'
"""
_MARK_MENTIONS = """
    UPDATE OR REPLACE link SET type = 'mentioned', context = 'same_as'
    WHERE dst = ? AND type = 'mentions' AND src_kind = 'item' AND dst_kind = 'entity'
"""
_UNMARK_MENTIONS = """
    UPDATE OR REPLACE link SET type = 'mentions', context = NULL
    WHERE dst = ? AND type = 'mentioned' AND context = 'same_as' AND src_kind = 'item'
"""
_COPY_EDGES = """
    INSERT OR IGNORE INTO link
        (src_kind, src, type, dst_kind, dst, weight, confidence, context, source, created_at)
    SELECT 'entity', iif(src = ?1, ?2, src), type, 'entity', iif(dst = ?1, ?2, dst),
        weight, confidence, context, 'same_as:' || ?1, created_at
    FROM link WHERE (src = ?1 OR dst = ?1) AND src_kind = 'entity' AND dst_kind = 'entity'
    AND type <> 'same_as' AND src <> ?2 AND dst <> ?2
"""
_DROP_COPIES = "DELETE FROM link WHERE (src = ?2 OR dst = ?2) AND source = 'same_as:' || ?1"
_COUNT = """
    UPDATE entity SET mentions = (
        SELECT count(*) FROM link AS l JOIN item AS i ON i.id = l.src AND i.live_to IS NULL
        WHERE l.dst = entity.id AND l.type = 'mentions' AND l.src_kind = 'item'
        AND l.dst_kind = 'entity')
    WHERE id IN (?, ?)
"""


class Merging:
    """One part of a `Store`; what it works with is the whole one's."""

    _connections: Connections

    def merge_entities(self, kept: str, gone: str, *, actor: str, now: datetime) -> None:
        with self._connections.writing() as db:
            _merge(db, kept, gone, to_ms(now))
            line = journal.Line("merged", None, "two entities")
            journal.write(db, [line], actor=actor, at=to_ms(now))

    def split_entities(self, kept: str, gone: str, *, actor: str, now: datetime) -> None:
        with self._connections.writing() as db:
            _split(db, kept, gone)
            line = journal.Line("split", None, "two entities")
            journal.write(db, [line], actor=actor, at=to_ms(now))


def _merge(db: apsw.Connection, kept: str, gone: str, now: int) -> None:
    known = {row[0] for row in select(db, _KNOWN, (kept, gone))}
    for entity in (kept, gone):
        if entity not in known:
            raise NotFound(f"no memory speaks of {entity!r}")
        if select(db, _GONE_ON, (entity,)):
            raise Refused(f"{entity} is merged into another already")
    if kept == gone:
        raise Refused(f"{kept} cannot be merged with itself")
    names = [row[0] for row in select(db, _NAMES, (gone,))]
    taken = {row[0] for row in select(db, _NAMES, (kept,))}
    db.executemany(_ADD_NAME, [(name, kept) for name in names])
    told = json.dumps({"names": names, "shared": sorted(taken & set(names))}, ensure_ascii=False)
    db.execute(_DROP_NAMES, (gone,))
    db.execute(_COPY_MENTIONS, (gone, kept))
    db.execute(_MARK_MENTIONS, (gone,))
    db.execute(_COPY_EDGES, (gone, kept))
    db.execute(_DROP_VECTOR, (gone,))
    db.execute(_ADD_SAME, (gone, kept, told, now))
    db.execute(_COUNT, (kept, gone))
    changed(db)


def forget_names(db: apsw.Connection, gone: str) -> None:
    """Takes back the names that an entity which is erased gave to the one it went into."""
    for kept, context in select(db, _INTO, (gone,)):
        told = json.loads(context)
        own = [(name, kept) for name in told["names"] if name not in told["shared"]]
        db.executemany(_DROP_NAME, own)


def _split(db: apsw.Connection, kept: str, gone: str) -> None:
    rows = select(db, _SAME, (gone, kept))
    if not rows:
        raise NotFound(f"{gone} was not merged into {kept}")
    if select(db, _GONE_ON, (kept,)):
        raise Refused(f"{kept} is merged into another itself", remedy="split that first")
    told = json.loads(rows[0][0])
    db.executemany(_ADD_NAME, [(name, gone) for name in told["names"]])
    own = [(name, kept) for name in told["names"] if name not in told["shared"]]
    db.executemany(_DROP_NAME, own)
    db.execute(_DROP_COPIES, (gone, kept))
    db.execute(_UNMARK_MENTIONS, (gone,))
    db.execute(_DROP_SAME, (gone, kept))
    db.execute(_COUNT, (kept, gone))
    changed(db)
